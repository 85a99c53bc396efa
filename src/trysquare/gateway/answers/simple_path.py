"""Simple paths: JSONPaths of names, positions and `[*]` only, which need no library and no process of their own.

They visit each part of a value at most once, so that they take no longer than reading it did.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, cast

from trysquare.core.types import JsonObject

Step: TypeAlias = str | int | None
"""A name, a position, or None for every part."""

_STEP = re.compile(
    r"\.(?P<name>[A-Za-z_][A-Za-z0-9_]*)|\[(?P<position>-?(?:0|[1-9][0-9]{0,8}))\]"
    r"|\['(?P<single>[^'\\\x00-\x1f]*)'\]|\[\"(?P<double>[^\"\\\x00-\x1f]*)\"\]|(?P<every>\[\*\]|\.\*)"
)


def simple_path(path: str) -> tuple[Step, ...] | None:
    """The steps of a simple path, or None for one that is not simple, or no path at all."""
    if not path.startswith("$") or path.startswith("$-0"):
        return None
    steps: list[Step] = []
    position = 1
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None or match["position"] == "-0":
            return None
        steps.append(_step(match))
        position = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    if match["every"] is not None:
        return None
    if match["position"] is not None:
        return int(match["position"])
    return next(name for name in (match["name"], match["single"], match["double"]) if name is not None)


def is_singular(steps: Sequence[Step]) -> bool:
    """Whether a path can lead to one value only."""
    return None not in steps


def follow(steps: Sequence[Step], value: Any) -> Iterator[Any]:
    """The values that a path leads to, in their order."""
    found: Iterator[Any] = iter((value,))
    for step in steps:
        found = _next(step, found)
    return found


def _next(step: Step, values: Iterator[Any]) -> Iterator[Any]:
    for value in values:
        if step is None:
            yield from _parts(value)
        elif isinstance(step, int):
            if isinstance(value, list) and -len(cast(list[Any], value)) <= step < len(cast(list[Any], value)):
                yield value[step]
        elif isinstance(value, dict) and step in value:
            yield value[step]


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from cast(JsonObject, value).values()
    elif isinstance(value, list):
        yield from cast(list[Any], value)
