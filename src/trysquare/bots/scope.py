"""Scope: the part of the work that a call is about. It filters what is said and what is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from trysquare.bots.rules import Rule
from trysquare.core.errors import InvalidArguments
from trysquare.core.types import JsonObject

KINDS = ("epic", "story", "increment", "files")
_NOT_IN = {
    "story": frozenset({"epic", "sub_epic", "increment"}),
    "epic": frozenset({"increment"}),
    "increment": frozenset[str](),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """Names of epics, stories or increments, or patterns of files. All of them empty: everything."""

    epic: tuple[str, ...] = ()
    story: tuple[str, ...] = ()
    increment: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.epic or self.story or self.increment or self.files)

    def to_json(self) -> JsonObject:
        """The scope as a call gives it."""
        return {kind: list(names) for kind in KINDS if (names := getattr(self, kind))}

    def holds(self, rule: Rule) -> bool:
        """Whether a rule can find anything in this scope."""
        if not self or rule.scanner is None:
            return True
        kind = rule.scanner.target.kind
        if self.files and not (self.epic or self.story or self.increment):
            return kind == "file"
        named = [each for each in ("epic", "story", "increment") if getattr(self, each)]
        return any(kind not in _NOT_IN[each] for each in named)


def read_scope(raw: Any) -> Scope:
    """The scope of a call: `{"story": ["Book a table"]}`, or the word `all`."""
    if raw is None or raw in ("", "all"):
        return Scope()
    if not isinstance(raw, Mapping):
        raise _wrong("`scope` is an object")
    given = cast(Mapping[str, Any], raw)
    unknown = sorted(str(name) for name in given if name not in KINDS)
    if unknown:
        raise _wrong(f"`scope` has no `{unknown[0][:40]}`")
    return Scope(**{kind: _names(kind, given.get(kind)) for kind in KINDS})


def _names(kind: str, raw: Any) -> tuple[str, ...]:
    if raw is None:
        return ()
    names = cast(list[Any], raw) if isinstance(raw, list) else [raw]
    if not all(isinstance(name, str) for name in names):
        raise _wrong(f"`scope.{kind}` is a list of names")
    return tuple(names)


def _wrong(what: str) -> InvalidArguments:
    return InvalidArguments(
        f"{what}.",
        instruction='Write it as {"scope": {"story": ["Name of a story"]}}; the keys are ' + ", ".join(KINDS) + ".",
    )
