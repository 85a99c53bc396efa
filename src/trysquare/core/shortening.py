"""Texts and values cut to a length that a reader can use, whatever was sent."""

from __future__ import annotations

import reprlib
from typing import Any, cast

from trysquare.core.result import clean

MAX_SHOWN = 80


def short(text: str, limit: int = MAX_SHOWN) -> str:
    """A text, cut where it is long, that can be sent."""
    return clean(text if len(text) <= limit else text[: limit - 1] + "…")


def short_repr(value: Any) -> str:
    """A value as Python writes it, cut where it is long or deep."""
    return short(_BRIEF.repr(value))


def fits(value: Any, limit: int = 2_000, depth: int = 20) -> bool:
    """Whether a JSON value is small and shallow enough to be repeated to the caller."""
    left = limit
    waiting: list[tuple[Any, int]] = [(value, 0)]
    while waiting:
        part, level = waiting.pop()
        left -= len(cast(str, part)) if isinstance(part, (str, list, dict)) else 8
        if left < 0 or level > depth or (isinstance(part, int) and part.bit_length() > limit):
            return False
        if isinstance(part, dict):
            waiting.extend((inner, level + 1) for pair in cast(dict[str, Any], part).items() for inner in pair)
        elif isinstance(part, list):
            waiting.extend((inner, level + 1) for inner in cast(list[Any], part))
    return True


class _Brief(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxstring = self.maxother = MAX_SHOWN

    def repr_int(self, x: int, level: int) -> str:
        return f"a number of {x.bit_length()} bits" if x.bit_length() > 256 else repr(x)


_BRIEF = _Brief()
