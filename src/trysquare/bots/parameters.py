"""Parameters of bot tools, and the scope of a call."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from trysquare.bots.scanners.base import Rule
from trysquare.bots.workflow.state_file import MAIN
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.json import JsonObject
from trysquare.core.text import closest_names, truncate

_NODE_KINDS = ("epic", "story", "increment")
KINDS = (*_NODE_KINDS, "files")
_NOT_IN = {
    "story": frozenset({"epic", "sub_epic", "increment"}),
    "epic": frozenset({"increment"}),
    "increment": frozenset[str](),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """Names of epics, stories or increments, or globs of files; empty means everything."""

    epic: tuple[str, ...] = ()
    story: tuple[str, ...] = ()
    increment: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.epic or self.story or self.increment or self.files)

    @property
    def names_nodes(self) -> bool:
        return bool(self.epic or self.story or self.increment)

    @property
    def nodes(self) -> dict[str, tuple[str, ...]]:
        """The named nodes by their kind."""
        return {kind: tuple(map(str, getattr(self, kind))) for kind in _NODE_KINDS}

    def to_json(self) -> JsonObject:
        return {kind: list(names) for kind in KINDS if (names := getattr(self, kind))}

    def holds(self, rule: Rule) -> bool:
        """Whether a rule can find anything in this scope."""
        if not self or rule.scanner is None:
            return True
        kind = rule.scanner.target.kind
        if self.files and not self.names_nodes:
            return kind == "file"
        named = [each for each in _NODE_KINDS if getattr(self, each)]
        return any(kind not in _NOT_IN[each] for each in named)


def read_scope(raw: Any) -> Scope:
    """Parse the scope of a call: `{"story": ["Book a table"]}`, or `all`."""
    if raw is None or raw in ("", "all"):
        return Scope()
    if not isinstance(raw, Mapping):
        raise _invalid_scope("`scope` must be an object")
    given = cast(Mapping[str, Any], raw)
    unknown = sorted(str(name) for name in given if name not in KINDS)
    if unknown:
        raise _invalid_scope(f"Unknown key `{unknown[0][:40]}` in `scope`")
    return Scope(**{kind: _names(kind, given.get(kind)) for kind in KINDS})


def _names(kind: str, raw: Any) -> tuple[str, ...]:
    if raw is None:
        return ()
    names = cast(list[Any], raw) if isinstance(raw, list) else [raw]
    if not all(isinstance(name, str) for name in names):
        raise _invalid_scope(f"`scope.{kind}` must be a list of names")
    return tuple(names)


def _invalid_scope(what: str) -> InvalidArguments:
    return InvalidArguments(
        f"{what}.",
        instruction='Send {"scope": {"story": ["Name of a story"]}}; the keys are ' + ", ".join(KINDS) + ".",
    )


_MAX_TEXT = 1_000
_MAX_NAMES = 8


def _spec(kind: str, description: str) -> JsonObject:
    return {"type": kind, "description": description}


PARAMETERS: dict[str, JsonObject] = {
    "project": _spec("string", "Project directory"),
    "run": _spec("string", "Run (default: main)"),
    "request_key": _spec("string", "Unique key; a repeated call changes nothing"),
    "expected_action": _spec("string", "behavior.action to close"),
    "reject": _spec("boolean", "Send back to work; needs reason"),
    "skip": _spec("boolean", "Close without the work; needs reason"),
    "reason": _spec("string", "For reject or skip"),
    "confirm": _spec("string", "true, or another directory, as the user agreed"),
    "scope": {
        **_spec("object", "Only these; empty means everything"),
        "properties": {kind: {"type": "array", "items": {"type": "string"}} for kind in KINDS},
        "additionalProperties": False,
    },
    "comment": _spec("string", "For whoever works on it next"),
    "preset": _spec("string", "Depth of a new run, such as quick; the user chooses"),
    "action": _spec("string", "Default: the current one"),
    "delivery": _spec("string", "Your last data.delivery.handle"),
    "part": _spec("string", "Handle of one part of the instructions"),
    "fresh": _spec("boolean", "true sends delivered parts again"),
    "answers": _spec("object", "By key question"),
    "evidence": _spec("object", "By name"),
    "decisions": _spec("object", "By criterion"),
    "assumptions": _spec("array", "Texts"),
    "corrections": _spec("array", "Texts, or objects of text, file, old and new"),
    "apply": _spec("integer", "Number of a correction to apply; the user is asked"),
    "take_back": _spec("integer", "Number of an applied correction to take back; the user is asked"),
    "overwrite": _spec("boolean", "true discards edits of a rendered file that were not merged"),
    "confirm_deletion": _spec("boolean", "true merges large deletions into the document"),
    "hard": _spec("boolean", "true ends the server process; its client starts a new one"),
    "query": _spec("string", "Task in a few words"),
    "tool": _spec("string", "Name of the tool to call"),
}

OF_ACTION: dict[str, frozenset[str]] = {
    "gather_context": frozenset({"answers", "evidence"}),
    "decide_planning_criteria": frozenset({"decisions", "assumptions"}),
    "render_output": frozenset({"overwrite"}),
    "synchronize_output": frozenset({"confirm_deletion"}),
    "correct_bot": frozenset({"corrections", "apply", "take_back"}),
}

_ANYWHERE = ("project", "run")
_DECIDING = ("apply", "take_back")
_FORWARD = (*_ANYWHERE, "confirm", "scope", "part", "fresh", "delivery", "request_key", "comment", "preset")
_TEXTS = (
    *("action", "comment", "delivery", "project", "run", "request_key", "expected_action", "reason", "part", "query"),
    *("tool", "preset"),
)
_FLAGS = ("hard", "fresh", "overwrite", "confirm_deletion")
_NOT_REASONS = frozenset({"", "true", "false", "yes", "no", "y", "n", "1", "0", "on", "off", "none", "null"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameters:
    """Parameters of one call; `given` has all of them, including those of a single action."""

    given: JsonObject = field(default_factory=dict[str, Any])
    project: str | None = None
    run: str = MAIN
    request_key: str | None = None
    expected_action: str | None = None
    reason: str | None = None
    comment: str | None = None
    part: str | None = None
    action: str | None = None
    preset: str | None = None
    delivery: str | None = None
    confirm: bool | str | None = None
    reject: bool = False
    skip: bool = False
    hard: bool = False
    fresh: bool = False

    def repeated(self, **more: Any) -> JsonObject:
        """Arguments of a follow-up call: the same project, run, scope and delivery, and `more`."""
        repeated = {name: self.given[name] for name in ("project", "run", "scope", "delivery") if name in self.given}
        inner = {**repeated, **{name: value for name, value in more.items() if value is not None}}
        return {"parameters": inner} if inner else {}


def _schema(parameters: JsonObject) -> JsonObject:
    return {"type": "object", "properties": {"parameters": parameters}, "additionalProperties": False}


def _flat(schema: JsonObject) -> JsonObject:
    """A property without what is inside of it."""
    return {name: value for name, value in schema.items() if name not in ("properties", "additionalProperties")}


class BotArguments:
    """Arguments of one bot tool: an object `parameters`; top-level names are read as if they were inside it."""

    def __init__(
        self,
        names: Iterable[str],
        *,
        described: Iterable[str] = (),
        about: str | None = None,
        enums: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """`described` are listed with their descriptions; `about` stands for the others (default: their names).

        `enums` are the allowed values of some.
        """
        self.names = tuple(names)
        self._enums = enums or {}
        properties = {name: self._property(name) for name in self.names}
        self.exact = _schema({"type": "object", "properties": properties, "additionalProperties": False})
        # What is listed is part of every conversation with a model, for many tools.
        own = {name: _flat(properties[name]) for name in described}
        rest = ", ".join(name for name in self.names if name not in own)
        short: JsonObject = {"type": "object", "description": rest if about is None else about}
        whole: JsonObject = {"type": "object", "properties": own, "additionalProperties": False}
        self.wire = _schema(({**short, "properties": own} if own else short) if rest else whole)

    def _property(self, name: str) -> JsonObject:
        values = self._enums.get(name)
        return PARAMETERS[name] if values is None else {**PARAMETERS[name], "enum": list(values)}

    def usage(self) -> str:
        lines = "\n".join(f"- `{name}`: {PARAMETERS[name]['description']}." for name in self.names)
        return f"`parameters` is one object with any of these; other names are refused:\n{lines}"

    def parse(self, tool: str, raw: JsonObject) -> Parameters:
        outer = {name: value for name, value in raw.items() if name != "parameters"}
        inner = _object(tool, raw.get("parameters"))
        for name in outer.keys() & inner.keys():
            if outer[name] != inner[name]:
                raise _invalid(tool, f"`{name}` has two values, inside and outside `parameters`")
        return self.read(tool, {**outer, **inner})

    def read(self, tool: str, given: JsonObject) -> Parameters:
        """Parse parameters without the enclosing object."""
        unknown = [name for name in given if name not in self.names]
        if unknown:
            raise self._unknown(tool, given, unknown)
        for name, values in self._enums.items():
            if given.get(name) not in (None, "", *values):
                near = closest_names(str(given[name]), values)
                meant = f" Did you mean `{near[0]}`?" if near else f" Known are {', '.join(values)}."
                raise InvalidArguments(
                    f"{tool}: unknown {name} `{truncate(str(given[name]))}`.{meant} Nothing was done.",
                    instruction="Correct that and send the call again.",
                )
        return _read(tool, given)

    def _unknown(self, tool: str, given: JsonObject, unknown: list[str]) -> InvalidArguments:
        """The error for unknown names, with the corrected call where each has a close match."""
        corrected = {name: value for name, value in given.items() if name in self.names}
        errors: list[str] = []
        for name in unknown:
            near = closest_names(name, (each for each in self.names if each not in corrected))
            if near:
                corrected[near[0]] = given[name]
            meant = f" Did you mean `{near[0]}`?" if near else ""
            errors.append(f"Unknown parameter `{truncate(name)}`.{meant}")
        known = ", ".join(f"`{name}`" for name in self.names)
        message = f"{' '.join(errors[:_MAX_NAMES])} Nothing was done."
        if len(corrected) < len(given) or not _is_readable(tool, corrected):
            example = ' To reject an action, send {"reject": true, "reason": "…"}.' if "reject" in self.names else ""
            instruction = f"{tool} takes {known}.{example} Correct the names and call again."
            return InvalidArguments(message, code=ErrorCode.VALIDATION_UNKNOWN_PARAM, instruction=instruction)
        return InvalidArguments(
            message,
            code=ErrorCode.VALIDATION_UNKNOWN_PARAM,
            instruction=f"If that is correct, send `next`. {tool} takes {known}.",
            next={"tool": tool, "arguments": {"parameters": corrected}},
        )


_DECISIONS = ("expected_action", "reject", "skip", "reason")
BOT_LEVEL = BotArguments((*_FORWARD, *sorted(name for names in OF_ACTION.values() for name in names)))
_CLOSING = (*_DECISIONS, "request_key", *_ANYWHERE, "scope", "confirm", "delivery", "comment")
CLOSE = BotArguments(_CLOSING, described=_CLOSING)
RESTART = BotArguments(("hard", *_ANYWHERE), described=("hard",))
FIND = BotArguments(("query", *_ANYWHERE), described=("query",))
DO = BotArguments(
    ("tool", "action", *dict.fromkeys((*BOT_LEVEL.names, *CLOSE.names, *RESTART.names))),
    described=("tool",),
    about="and those of that tool",
)


def behavior_arguments(actions: Sequence[str]) -> BotArguments:
    """The arguments of a behavior's tool, which opens any of its actions."""
    names = (*BOT_LEVEL.names, "action")
    return BotArguments(names, described=("action",), about="and those of the bot's tool", enums={"action": actions})


def action_arguments(action: str) -> BotArguments:
    own = sorted(OF_ACTION.get(action, ()))
    described = [name for name in own if name not in _DECIDING]
    about = ", ".join((*(name for name in own if name in _DECIDING), *_ANYWHERE)) + " …"
    return BotArguments((*_FORWARD, *own), described=described, about=about)


def _read(tool: str, given: JsonObject) -> Parameters:
    texts = {name: _text(tool, given, name) for name in _TEXTS}
    flags = {name: _flag(tool, given, name) for name in _FLAGS}
    reject, skip = _decision(tool, given, "reject"), _decision(tool, given, "skip")
    read_scope(given.get("scope"))
    return Parameters(
        given=given,
        project=texts["project"],
        run=texts["run"] or MAIN,
        request_key=texts["request_key"],
        expected_action=texts["expected_action"],
        reason=_reason(tool, texts["reason"], reject, skip),
        comment=texts["comment"],
        part=texts["part"],
        action=texts["action"],
        preset=texts["preset"],
        delivery=texts["delivery"],
        confirm=_confirm(tool, given.get("confirm")),
        reject=reject is not False,
        skip=skip is not False,
        hard=flags["hard"],
        fresh=flags["fresh"],
    )


def _is_readable(tool: str, given: JsonObject) -> bool:
    try:
        _read(tool, given)
    except InvalidArguments:
        return False
    return True


def _object(tool: str, raw: Any) -> JsonObject:
    if raw is None or raw == "":
        return {}
    if isinstance(raw, str):
        # Some models send the object as a string.
        with contextlib.suppress(ValueError, RecursionError):
            raw = json.loads(raw)
    if not isinstance(raw, Mapping):
        raise _invalid(tool, '`parameters` must be one JSON object, such as {"run": "main"}')
    return dict(cast(Mapping[str, Any], raw))


def _text(tool: str, given: JsonObject, name: str) -> str | None:
    value = given.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise _invalid(tool, f"`{name}` must be a string")
    if len(value) > _MAX_TEXT:
        raise _invalid(tool, f"`{name}` has more than {_MAX_TEXT} characters")
    return value


def _flag(tool: str, given: JsonObject, name: str) -> bool:
    value = given.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise _invalid(tool, f"`{name}` must be a boolean")


def _decision(tool: str, given: JsonObject, name: str) -> str | bool:
    """Whether an action is rejected or skipped: a boolean, or directly the reason."""
    value = given.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    if not isinstance(value, str) or value.strip().lower() in _NOT_REASONS:
        raise _invalid(
            tool, f'`{name}` must be true with a `reason`, or false. To {name}, send {{"{name}": true, "reason": "…"}}'
        )
    if len(value) > _MAX_TEXT:
        raise _invalid(tool, f"`{name}` has more than {_MAX_TEXT} characters")
    return value


def _reason(tool: str, text: str | None, reject: str | bool, skip: str | bool) -> str | None:
    """The reason of a rejection or skip. A reason alone is refused: it may be a rejection without its flag."""
    if reject is not False and skip is not False:
        raise _invalid(tool, "`reject` and `skip` cannot be combined")
    given = reject if isinstance(reject, str) else skip if isinstance(skip, str) else None
    if reject is False and skip is False and text is not None:
        raise _invalid(
            tool, '`reason` needs `reject` or `skip`. To reject, add "reject": true; to close, remove `reason`'
        )
    return text or given


def _confirm(tool: str, value: Any) -> bool | str | None:
    if value is None or isinstance(value, (bool, str)):
        return value or None
    raise _invalid(tool, "`confirm` must be true, or the path of the project directory")


def _invalid(tool: str, what: str) -> InvalidArguments:
    return InvalidArguments(f"{tool}: {what}. Nothing was done.", instruction="Correct that and send the call again.")
