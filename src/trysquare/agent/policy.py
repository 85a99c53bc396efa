"""Policy: what an agent may call. Deny stands over ask, and ask over allow, by tool, action, path and command.

A policy is a frozen value that comes from the agent's definition and the person's options. Nothing that a model, a file
or a tool's answer says can change it; where it says `ask`, the person is asked through the core's consent.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from trysquare.agent.commands import CommandLine, read_command
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.shortening import short
from trysquare.core.types import JsonObject
from trysquare.files.globs import is_under, matches, path_matches
from trysquare.models.model import ToolOffer
from trysquare.workbench.kinds import KIND

Effect: TypeAlias = Literal["deny", "ask", "allow"]
_ORDER: tuple[Effect, ...] = ("deny", "ask", "allow")
PATH_ARGUMENTS = frozenset({"path", "paths", "file", "files", "directory", "folder", "source", "destination", "target"})
PATH_KINDS = frozenset({"existing_file", "workspace_path"})
_LONGEST_PATH = 4_096
COMMAND_ARGUMENTS = frozenset({"command", "commands", "script"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """Which calls have which effect. A part that is left out holds for all."""

    effect: Effect
    tool: str = "*"
    actions: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    why: str | None = None

    @property
    def is_general(self) -> bool:
        """Whether it holds for a tool or its actions, whatever their arguments."""
        return not self.paths and not self.commands

    @property
    def hides(self) -> bool:
        """Whether its paths are denied whatever is done with them, so that they have no place in an answer either."""
        return self.effect == "deny" and bool(self.paths) and not self.commands and not self.actions


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What a policy says of one call, and why."""

    effect: Effect
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """The rules of one run. Without a rule that fits, `default` holds."""

    default: Effect = "deny"
    rules: tuple[Rule, ...] = field(default=())
    root: Path | None = None
    """The folder that no path may lead out of."""

    def decide(self, tool: str, arguments: JsonObject, schema: JsonObject | None = None) -> Decision:
        """What may become of a call. The tool's schema says which arguments are paths, where it is known."""
        call = _Call.read(tool, arguments, self.root, schema or {})
        if call.outside is not None:
            return Decision(effect="deny", why=f"`{short(call.outside)}` leads out of the folder of this run")
        decision = self._ruled(call)
        return self._doubted(call) or decision if decision.effect == "allow" else decision

    def _ruled(self, call: _Call) -> Decision:
        for effect in _ORDER:
            for rule in self.rules:
                if rule.effect == effect and _fits(rule, call):
                    return Decision(effect=effect, why=rule.why or _described(rule))
        return Decision(effect=self.default, why=f"no rule names it, and the default is to {self.default}")

    def _doubted(self, call: _Call) -> Decision | None:
        """Ask about a command line in which a rule could not look for the commands that it denies or asks about."""
        for rule in self.rules:
            if rule.effect == "allow" or not rule.commands or not _fits_name(rule, call):
                continue
            if not all(line.is_clear for line in _lines(rule, call)):
                why = "the command line is more than simple commands, so no rule can tell what it runs"
                return Decision(effect="ask", why=why)
        return None

    def require(self, tool: str, arguments: JsonObject, schema: JsonObject | None = None) -> Decision:
        """The decision about a call, or the error that refuses it."""
        decision = self.decide(tool, arguments, schema)
        if decision.effect == "deny":
            raise ToolError(
                f"The policy of this run denies the call of `{tool}`: {decision.why}.",
                code=ErrorCode.POLICY_DENIED,
                instruction="Do not send the call again. Reach the goal with what is allowed, or give up and say why.",
            )
        return decision

    def may_offer(self, tool: str, action: str | None = None) -> bool:
        """Whether there is any call of a tool, or of one of its actions, that is not denied."""
        if any(rule.effect == "deny" and rule.is_general and _covers(rule, tool, action) for rule in self.rules):
            return False
        return self.default != "deny" or any(
            rule.effect != "deny" and _touches(rule, tool, action) for rule in self.rules
        )

    def stricter(self, rules: Iterable[Rule]) -> Policy:
        """The same with further rules, which may deny and ask; one that allows is refused."""
        added = tuple(rules)
        if any(rule.effect == "allow" for rule in added):
            raise ValueError("a policy is made stricter with `deny` and `ask` alone")
        return Policy(default=self.default, rules=(*self.rules, *added), root=self.root)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Call:
    """What rules look at in one call."""

    tool: str
    action: str | None = None
    paths: tuple[str, ...] = ()
    """Paths that the call certainly names."""
    perhaps: tuple[str, ...] = ()
    """Those that it may name beside them: enough to deny or ask, and nothing to allow by."""
    commands: tuple[CommandLine, ...] = ()
    texts: tuple[CommandLine, ...] = ()
    """Every text of the call, read as a command line, where no argument is known to be one."""
    outside: str | None = None

    @classmethod
    def read(cls, tool: str, arguments: JsonObject, root: Path | None, schema: JsonObject) -> _Call:
        action = arguments.get("action")
        marked = frozenset(_marked(schema))
        inside = [(text, _beneath(text, root)) for text in _texts(arguments, PATH_ARGUMENTS | marked)]
        commands = tuple(read_command(text) for text in _texts(arguments, COMMAND_ARGUMENTS))
        words = [word for line in commands for part in line.mentioned for word in part]
        # A tool of somebody else names its arguments as it likes, so any of them may be a path or a command.
        every = [] if marked else list(_leaves(arguments))
        return cls(
            tool=tool,
            action=action if isinstance(action, str) else None,
            paths=tuple(path for _, path in inside if path is not None),
            perhaps=tuple(_places([*(text for text, _ in inside), *words, *every], root)),
            commands=commands,
            texts=() if commands else tuple(map(read_command, every)),
            outside=next((text for text, path in inside if path is None), None),
        )


def _marked(schema: JsonObject) -> Iterator[str]:
    """The names of the arguments that a tool marks as paths of the workspace, at any depth of its schema."""
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            for name, part in cast(JsonObject, value).items():
                if isinstance(part, dict) and any(mark in _kinds(cast(JsonObject, part)) for mark in PATH_KINDS):
                    yield name
        parts: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
        for part in parts:
            if isinstance(part, dict):
                yield from _marked(cast(JsonObject, part))


def _kinds(schema: JsonObject) -> Iterator[Any]:
    """The marks of a schema, and of what its lists hold and its alternatives are."""
    yield schema.get(KIND)
    for part in (schema.get("items"), *schema.get("anyOf", ()), *schema.get("oneOf", ())):
        if isinstance(part, dict):
            yield from _kinds(cast(JsonObject, part))


def _places(texts: Iterable[str], root: Path | None) -> Iterator[str]:
    """Where texts lead beneath the root, if they are paths: as written, as an address, and behind links."""
    for text in texts:
        if not text or len(text) > _LONGEST_PATH or "\0" in text:
            continue
        plain = unquote(urlsplit(text).path) if text.startswith("file:") else text
        plain = os.path.expanduser(plain)
        yield from filter(None, (_beneath(plain, root), _resolved(plain, root)))


def _resolved(text: str, root: Path | None) -> str | None:
    if root is None:
        return None
    try:
        real = Path(os.path.realpath(root / text))
        return real.relative_to(os.path.realpath(root)).as_posix()
    except (OSError, ValueError):
        return None  # it leads elsewhere, or is no path at all


def _texts(arguments: JsonObject, names: frozenset[str]) -> Iterator[str]:
    """The texts of the arguments with these names, at any depth: a tool may take a list of edits."""
    for name, value in arguments.items():
        if name in names:
            yield from _leaves(value)
        elif isinstance(value, dict):
            yield from _texts(cast(JsonObject, value), names)
        elif isinstance(value, list):
            for part in cast(list[Any], value):
                if isinstance(part, dict):
                    yield from _texts(cast(JsonObject, part), names)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in cast(list[Any], value):
            yield from _leaves(part)
    elif isinstance(value, dict):
        for part in cast(JsonObject, value).values():
            yield from _leaves(part)


def _beneath(text: str, root: Path | None) -> str | None:
    """A path as it stands beneath the root, without `.` and `..`; None where it leads out.

    This looks at the text alone, for the rules and the model's sake. That no link leads out is the tools' own care,
    when they open the file.
    """
    if "\0" in text:
        return None
    plain = text.replace("\\", "/")
    if plain.startswith("/"):
        base = None if root is None else root.as_posix().rstrip("/")
        if base is None or not (plain == base or plain.startswith(base + "/")):
            return None
        plain = plain[len(base) :].lstrip("/")
    parts: list[str] = []
    for part in plain.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) or "."


def _fits(rule: Rule, call: _Call) -> bool:
    return _fits_name(rule, call) and _fits_paths(rule, call) and _fits_commands(rule, call)


def _fits_name(rule: Rule, call: _Call) -> bool:
    if not matches(call.tool, rule.tool):
        return False
    if rule.actions and call.action is None:
        # An action that is not named could be any, so no rule for some actions allows it.
        return rule.effect != "allow"
    return not rule.actions or any(matches(call.action or "", pattern) for pattern in rule.actions)


def _covers(rule: Rule, tool: str, action: str | None) -> bool:
    """Whether a rule holds for every call of a tool, or of one of its actions."""
    if not matches(tool, rule.tool):
        return False
    return not rule.actions or (action is not None and any(matches(action, pattern) for pattern in rule.actions))


def _touches(rule: Rule, tool: str, action: str | None) -> bool:
    """Whether a rule holds for some call of a tool, or of one of its actions."""
    return matches(tool, rule.tool) and (action is None or _covers(rule, tool, action))


def _fits_paths(rule: Rule, call: _Call) -> bool:
    """One path is enough to deny or ask, and all are needed to allow."""
    if not rule.paths:
        return True
    if rule.effect == "allow":
        return bool(call.paths) and all(
            any(path_matches(path, pattern) for pattern in rule.paths) for path in call.paths
        )
    return any(is_under(path, rule.paths) for path in (*call.paths, *call.perhaps))


def _fits_commands(rule: Rule, call: _Call) -> bool:
    """To allow, every line is one simple command that fits; to deny or ask, it is enough that a line mentions one."""
    if not rule.commands:
        return True
    if rule.effect == "allow":
        return bool(call.commands) and all(line.is_allowed_by(rule.commands) for line in call.commands)
    return any(line.mentions(rule.commands) for line in _lines(rule, call))


def _lines(rule: Rule, call: _Call) -> tuple[CommandLine, ...]:
    """The command lines of a call. A rule that names a tool means some argument of it, whatever that is called."""
    return call.commands or (call.texts if rule.tool != "*" else ())


def _described(rule: Rule) -> str:
    parts = [f"tool {rule.tool}"]
    for label, patterns in (("action", rule.actions), ("path", rule.paths), ("command", rule.commands)):
        if patterns:
            parts.append(f"{label} {' or '.join(patterns)}")
    return f"the rule {rule.effect}: {', '.join(parts)}"


def offered(offer: ToolOffer, policy: Policy) -> ToolOffer | None:
    """An offer without the actions that the policy denies; None where it denies the whole tool."""
    if not policy.may_offer(offer.name):
        return None
    options = cast("list[JsonObject] | None", offer.schema.get("oneOf"))
    if options is None:
        return offer
    kept = [option for option in options if all(policy.may_offer(offer.name, action) for action in _actions(option))]
    if not kept:
        return None
    if len(kept) == len(options):
        return offer
    schema = {**offer.schema, "oneOf": kept}
    return ToolOffer(name=offer.name, description=offer.description, schema=schema, flat=_flat(offer.flat, kept))


def _actions(option: JsonObject) -> list[str]:
    part = option.get("properties", {}).get("action", {})
    return [str(part["const"])] if "const" in part else [str(one) for one in part.get("enum", ())]


def _flat(flat: JsonObject, kept: list[JsonObject]) -> JsonObject:
    """The flat schema with only the fields and actions that are left."""
    names = {name for option in kept for name in option["properties"]}
    actions = [action for option in kept for action in _actions(option)]
    properties = {name: part for name, part in flat["properties"].items() if name in names}
    properties["action"] = {**properties["action"], "enum": actions}
    if properties["action"].get("default") not in actions:
        properties["action"].pop("default", None)
    return {**flat, "properties": properties}
