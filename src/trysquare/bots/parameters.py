"""Parameters: what the tools of a bot take, in one closed object. A name that a tool does not take is refused.

Every parameter is described once, in `PARAMETERS`. A tool lists the names that it takes; the schema, the check and the
error that proposes the nearest name are made of the same list. An unknown name is never ignored: it may be a rejection
that is spelled differently.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from trysquare.bots.scope import read_scope
from trysquare.bots.state_file import MAIN
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.nearest import nearest
from trysquare.core.shortening import short
from trysquare.core.types import JsonObject

_LONGEST = 1_000
_MOST_NAMES = 8


def _of(kind: str, description: str) -> JsonObject:
    return {"type": kind, "description": description}


PARAMETERS: dict[str, JsonObject] = {
    "project": _of("string", "Project folder"),
    "run": _of("string", "Run (default: main)"),
    "request_key": _of("string", "Unique key; a repeated call changes nothing"),
    "expected_action": _of("string", "behavior.action that is meant"),
    "reject": _of("boolean", "Send back to work; needs reason"),
    "skip": _of("boolean", "Close without the work; needs reason"),
    "reason": _of("string", "Why it is rejected or skipped"),
    "confirm": _of("string", "true, or another folder, as the user agreed"),
    "scope": _of("object", "Lists of epic, story, increment, files"),
    "part": _of("string", "Handle of one part of the instructions, which is returned whole"),
    "fresh": _of("boolean", "true sends parts again that were delivered before"),
    "answers": _of("object", "Answers to the key questions, by question"),
    "evidence": _of("object", "Evidence that was found, by its name"),
    "decisions": _of("object", "Decisions, by the name of the criterion"),
    "assumptions": _of("array", "Assumptions, each a string"),
    "corrections": _of("array", "What the bot should have done differently, each a string"),
    "overwrite": _of("boolean", "true gives up edits of a rendered file that were not carried back"),
    "confirm_deletion": _of("boolean", "true carries large deletions back into the document"),
    "hard": _of("boolean", "true ends the server process, so that its client starts a new one"),
    "query": _of("string", "What is wanted, in a few words"),
    "tool": _of("string", "Name of the tool to call"),
}

OF_ACTION: dict[str, frozenset[str]] = {
    "gather_context": frozenset({"answers", "evidence"}),
    "decide_planning_criteria": frozenset({"decisions", "assumptions"}),
    "render_output": frozenset({"overwrite"}),
    "synchronize_output": frozenset({"confirm_deletion"}),
    "correct_bot": frozenset({"corrections"}),
}
"""The parameters that only one action understands."""

_ANYWHERE = ("project", "run")
_FORWARD = (*_ANYWHERE, "confirm", "scope", "part", "fresh", "request_key")
_TEXTS = ("project", "run", "request_key", "expected_action", "reason", "part", "query", "tool")
_FLAGS = ("hard", "fresh", "overwrite", "confirm_deletion")
_NOT_REASONS = frozenset({"", "true", "false", "yes", "no", "y", "n", "1", "0", "on", "off", "none", "null"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameters:
    """The parameters of one call. `given` holds all of them, also those that only an action understands."""

    given: JsonObject = field(default_factory=dict[str, Any])
    project: str | None = None
    run: str = MAIN
    request_key: str | None = None
    expected_action: str | None = None
    reason: str | None = None
    part: str | None = None
    confirm: bool | str | None = None
    reject: bool = False
    skip: bool = False
    hard: bool = False
    fresh: bool = False
    """Whether parts that were delivered before are to be sent whole again."""

    def repeated(self, **more: Any) -> JsonObject:
        """The arguments of a call that goes on where this one was: the same project, run and scope, and what is new."""
        kept = {name: self.given[name] for name in ("project", "run", "scope") if name in self.given}
        inner = {**kept, **{name: value for name, value in more.items() if value is not None}}
        return {"parameters": inner} if inner else {}


class BotArguments:
    """The arguments of one tool of a bot. What a model put beside `parameters` is read as if it stood inside."""

    def __init__(self, names: Iterable[str], *, listed: bool = False) -> None:
        """`listed` puts every parameter with its description on the wire, and not only the names."""
        self.names = tuple(names)
        self._listed = listed

    @property
    def wire(self) -> JsonObject:
        return self.exact if self._listed else self._short

    @property
    def exact(self) -> JsonObject:
        return self._exact

    @cached_property
    def _exact(self) -> JsonObject:
        return _wrapped(
            {
                "type": "object",
                "properties": {name: PARAMETERS[name] for name in self.names},
                "additionalProperties": False,
            }
        )

    @cached_property
    def _short(self) -> JsonObject:
        # Many tools share it, and a list of tools is read by a model in every conversation.
        own = [name for name in self.names if name not in _FORWARD] or ["scope"]
        return _wrapped({"type": "object", "description": ", ".join((*self.names[:2], own[0])) + " …"})

    def usage(self) -> str:
        """The parameters in words, for the full description of a tool."""
        told = "\n".join(f"- `{name}`: {PARAMETERS[name]['description']}." for name in self.names)
        return f"`parameters` is one object with any of these; other names are refused:\n{told}"

    def parse(self, tool: str, raw: JsonObject) -> Parameters:
        """The parameters, or an error that says what is wrong with which of them."""
        beside = {name: value for name, value in raw.items() if name != "parameters"}
        inside = _object(tool, raw.get("parameters"))
        for name in beside.keys() & inside.keys():
            if beside[name] != inside[name]:
                raise _wrong(tool, f"`{name}` stands inside `parameters` and beside it, with two values")
        return self.read(tool, {**beside, **inside})

    def read(self, tool: str, given: JsonObject) -> Parameters:
        """The same for parameters that stand in no object of their own."""
        unknown = [name for name in given if name not in self.names]
        if unknown:
            raise self._unknown(tool, given, unknown)
        return _read(tool, given)

    def _unknown(self, tool: str, given: JsonObject, unknown: list[str]) -> InvalidArguments:
        """The refusal, with the corrected call where every unknown name is near to one that is free."""
        corrected = {name: value for name, value in given.items() if name in self.names}
        told: list[str] = []
        for name in unknown:
            near = nearest(name, (each for each in self.names if each not in corrected))
            if near:
                corrected[near[0]] = given[name]
            meant = f" Did you mean `{near[0]}`?" if near else ""
            told.append(f"Unknown parameter `{short(name)}`.{meant}")
        known = ", ".join(f"`{name}`" for name in self.names)
        message = f"{' '.join(told[:_MOST_NAMES])} Nothing was done."
        if len(corrected) < len(given) or not _is_readable(tool, corrected):
            instruction = f"{tool} takes {known}.{self._rejecting()} Correct the names and call again."
            return InvalidArguments(message, code=ErrorCode.VALIDATION_UNKNOWN_PARAM, instruction=instruction)
        return InvalidArguments(
            message,
            code=ErrorCode.VALIDATION_UNKNOWN_PARAM,
            instruction=f"If that is meant, send the corrected call in `next`. {tool} takes {known}.",
            next={"tool": tool, "arguments": {"parameters": corrected}},
        )

    def _rejecting(self) -> str:
        return ' To reject an action, send {"reject": true, "reason": "…"}.' if "reject" in self.names else ""


BOT_LEVEL = BotArguments((*_FORWARD, *sorted(name for names in OF_ACTION.values() for name in names)))
"""What the bot tool and the behavior tools take: the current action may be any."""
CLOSE = BotArguments(
    ("expected_action", "reject", "skip", "reason", "request_key", *_ANYWHERE, "scope", "confirm"), listed=True
)
RESTART = BotArguments(("hard", *_ANYWHERE), listed=True)
FIND = BotArguments(("query", *_ANYWHERE))
DO = BotArguments(("tool", *dict.fromkeys((*BOT_LEVEL.names, *CLOSE.names, *RESTART.names))))


def action_arguments(action: str) -> BotArguments:
    """What the tool of an action takes."""
    return BotArguments((*_FORWARD, *sorted(OF_ACTION.get(action, ()))))


def require_understood(tool: str, given: Iterable[str], actions: Iterable[str], *, instead: Mapping[str, str]) -> None:
    """Refuse what only another action understands: it would be lost. `instead` names the tool of each action."""
    understood = {name for action in actions for name in OF_ACTION.get(action, ())}
    for name in given:
        owner = next((action for action, names in OF_ACTION.items() if name in names), None)
        if owner is None or name in understood:
            continue
        way = f" Send it to `{instead[owner]}`." if owner in instead else ""
        raise InvalidArguments(
            f"{tool}: `{name}` belongs to {owner}, and another action is current. Nothing was done.",
            code=ErrorCode.VALIDATION_UNKNOWN_PARAM,
            instruction=f"Leave `{name}` out.{way}",
        )


def _wrapped(parameters: JsonObject) -> JsonObject:
    return {"type": "object", "properties": {"parameters": parameters}, "additionalProperties": False}


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
        part=texts["part"],
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
        raw = _parsed(raw)
    if not isinstance(raw, Mapping):
        raise _wrong(tool, '`parameters` is one JSON object, such as {"run": "main"}')
    return dict(cast(Mapping[str, Any], raw))


def _parsed(text: str) -> Any:
    """Some models send the object as a text that holds it."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _text(tool: str, given: JsonObject, name: str) -> str | None:
    value = given.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise _wrong(tool, f"`{name}` is a string")
    if len(value) > _LONGEST:
        raise _wrong(tool, f"`{name}` has more than {_LONGEST} characters")
    return value


def _flag(tool: str, given: JsonObject, name: str) -> bool:
    value = given.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise _wrong(tool, f"`{name}` is true or false")


def _decision(tool: str, given: JsonObject, name: str) -> str | bool:
    """Whether an action is rejected or skipped: a boolean, or the reason itself, which is what people write."""
    value = given.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    if not isinstance(value, str) or value.strip().lower() in _NOT_REASONS:
        raise _wrong(
            tool, f'`{name}` is true with a `reason`, or false. To {name}, send {{"{name}": true, "reason": "…"}}'
        )
    if len(value) > _LONGEST:
        raise _wrong(tool, f"`{name}` has more than {_LONGEST} characters")
    return value


def _reason(tool: str, text: str | None, reject: str | bool, skip: str | bool) -> str | None:
    """The reason of a rejection or a skip. On its own it may be a rejection that lacks its word, so it is refused."""
    if reject is not False and skip is not False:
        raise _wrong(tool, "`reject` and `skip` cannot both be meant")
    said = reject if isinstance(reject, str) else skip if isinstance(skip, str) else None
    if reject is False and skip is False and text is not None:
        raise _wrong(
            tool, '`reason` goes with `reject` or `skip`. To reject, add "reject": true; to close, leave `reason` out'
        )
    return text or said


def _confirm(tool: str, value: Any) -> bool | str | None:
    if value is None or isinstance(value, (bool, str)):
        return value or None
    raise _wrong(tool, "`confirm` is true, or the path of the project's folder")


def _wrong(tool: str, what: str) -> InvalidArguments:
    return InvalidArguments(f"{tool}: {what}. Nothing was done.", instruction="Correct that and send the call again.")
