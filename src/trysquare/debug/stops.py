"""StopLog: what was seen at the stops of each session, and what differs between two of them, part by part."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from trysquare.debug.debugger import Debugger, Variable
from trysquare.debug.rendering import text_of
from trysquare.debug.session import Session
from trysquare.debug.snapshot import Snapshot, locals_of

KEPT = 50
_OPENED = 8
"""Objects of a stop that are looked into: each costs a question to the debugger."""
_PARTS = 40
_DEEPEST = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenStop:
    """One stop of a session: its place and its values, those of objects by path."""

    number: int
    location: str
    values: Mapping[str, str]


class StopLog:
    """The last stops of every session."""

    def __init__(self) -> None:
        self._stops: dict[str, dict[int, SeenStop]] = {}

    async def keep(self, session: Session, snapshot: Snapshot) -> None:
        """Remember where a session stands and with which values."""
        values = dict(snapshot.texts)
        if any(_is_opaque(text) for text in values.values()):
            for name, parts in (
                await _parts(session.debugger, await locals_of(session.debugger, snapshot.frame))
            ).items():
                values.pop(name, None)
                values.update({f"{name}.{part}": text for part, text in parts.items()})
        stops = self._stops.setdefault(session.key, {})
        stops[session.stop_count] = SeenStop(number=session.stop_count, location=snapshot.location, values=values)
        while len(stops) > KEPT:
            stops.pop(next(iter(stops)))

    def of(self, key: str) -> dict[int, SeenStop]:
        """The stops of a session, told by its `key`, by their numbers."""
        return self._stops.get(key, {})


def differences(one: SeenStop, other: SeenStop) -> dict[str, str]:
    """What differs, by the path to it: `old -> new`, `added`, `gone`."""
    found: dict[str, str] = {}
    for name in [*one.values, *(name for name in other.values if name not in one.values)]:
        before, after = one.values.get(name), other.values.get(name)
        if before is None:
            found[name] = f"new: {after}"
        elif after is None:
            found[name] = f"gone: {before}"
        elif before != after:
            found.update(_inner(name, before, after))
    return found


def _inner(path: str, before: str, after: str) -> dict[str, str]:
    old, new = _parsed(before), _parsed(after)
    if old is _UNREADABLE or new is _UNREADABLE:
        return {path: f"{before} -> {after}"}
    return dict(_compared(path, old, new, _DEEPEST))


_UNREADABLE = object()


def _parsed(text: str) -> Any:
    """A value from its text, where that is all of it."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return _UNREADABLE


def _compared(path: str, old: Any, new: Any, depth: int) -> Iterator[tuple[str, str]]:
    """The parts that differ, as deep as both are made alike."""
    if depth and isinstance(old, dict) and isinstance(new, dict):
        yield from _compared_parts(path, cast(dict[Any, Any], old), cast(dict[Any, Any], new), depth)
    elif depth and isinstance(old, list | tuple) and isinstance(new, list | tuple):
        before = dict(enumerate(cast(list[Any], old)))
        yield from _compared_parts(path, before, dict(enumerate(cast(list[Any], new))), depth)
    elif old != new:
        yield path, f"{old!r} -> {new!r}"


def _compared_parts(path: str, old: Mapping[Any, Any], new: Mapping[Any, Any], depth: int) -> Iterator[tuple[str, str]]:
    for key in [*old, *(key for key in new if key not in old)]:
        if key not in old:
            yield f"{path}[{key!r}]", f"new: {new[key]!r}"
        elif key not in new:
            yield f"{path}[{key!r}]", f"gone: {old[key]!r}"
        else:
            yield from _compared(f"{path}[{key!r}]", old[key], new[key], depth - 1)


def _is_opaque(text: str) -> bool:
    """Whether a text is that of an object, whose parts are compared one by one."""
    return text.startswith("<")


async def _parts(debugger: Debugger, variables: list[Variable]) -> dict[str, dict[str, str]]:
    """The attributes of the objects, by their names."""
    found: dict[str, dict[str, str]] = {}
    opaque = [each for each in variables if each.reference and _is_opaque(text_of(each))]
    for variable in opaque[:_OPENED]:
        for part in (await debugger.variables(variable.reference))[:_PARTS]:
            if not part.name.startswith("__") and "variables" not in part.name:
                found.setdefault(variable.name, {})[part.name] = text_of(part)
    return found
