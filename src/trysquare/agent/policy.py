"""Policy: what an agent may call. Deny stands over ask, and ask over allow, by tool, action, path and command.

A policy is a frozen value that comes from the agent's definition and the person's options. Nothing that a model, a file
or a tool's answer says can change it; where it says `ask`, the person is asked through the core's consent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from trysquare.agent.commands import CommandParts, split_command
from trysquare.agent.globs import matches, path_matches
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.shortening import short
from trysquare.core.types import JsonObject
from trysquare.models.model import ToolOffer

Effect: TypeAlias = Literal["deny", "ask", "allow"]
_ORDER: tuple[Effect, ...] = ("deny", "ask", "allow")
PATH_ARGUMENTS = frozenset({"path", "paths", "file", "files", "directory", "folder", "source", "destination", "target"})
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

    def decide(self, tool: str, arguments: JsonObject) -> Decision:
        """What may become of a call."""
        call = _Call.read(tool, arguments, self.root)
        if call.outside is not None:
            return Decision(effect="deny", why=f"`{short(call.outside)}` leads out of the folder of this run")
        for effect in _ORDER:
            for rule in self.rules:
                if rule.effect == effect and _fits(rule, call):
                    return Decision(effect=effect, why=rule.why or _described(rule))
        return Decision(effect=self.default, why=f"no rule names it, and the default is to {self.default}")

    def require(self, tool: str, arguments: JsonObject) -> Decision:
        """The decision about a call, or the error that refuses it."""
        decision = self.decide(tool, arguments)
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
    commands: tuple[CommandParts, ...] = ()
    outside: str | None = None

    @classmethod
    def read(cls, tool: str, arguments: JsonObject, root: Path | None) -> _Call:
        action = arguments.get("action")
        given = list(_texts(arguments, PATH_ARGUMENTS))
        inside = [(text, _beneath(text, root)) for text in given]
        return cls(
            tool=tool,
            action=action if isinstance(action, str) else None,
            paths=tuple(path for _, path in inside if path is not None),
            commands=tuple(split_command(text) for text in _texts(arguments, COMMAND_ARGUMENTS)),
            outside=next((text for text, path in inside if path is None), None),
        )


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
    return _fits_name(rule, call) and _fits_paths(rule, call.paths) and _fits_commands(rule, call.commands)


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


def _fits_paths(rule: Rule, paths: tuple[str, ...]) -> bool:
    """One path is enough to deny or ask, and all are needed to allow."""
    if not rule.paths:
        return True
    fits = [any(path_matches(path, pattern) for pattern in rule.paths) for path in paths]
    return bool(fits) and (all(fits) if rule.effect == "allow" else any(fits))


def _fits_commands(rule: Rule, commands: tuple[CommandParts, ...]) -> bool:
    """The same for commands: each part of a pipeline counts, and one that hides others is never allowed by a rule."""
    if not rule.commands:
        return True
    if rule.effect == "allow":
        return bool(commands) and all(command.all_match(rule.commands) for command in commands)
    return any(command.any_matches(rule.commands) for command in commands)


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
