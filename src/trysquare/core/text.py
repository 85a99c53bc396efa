"""Text helpers: did-you-mean, edit distance, truncation, lone surrogates."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any, cast

from trysquare.core.json import map_strings


def is_encodable(text: str) -> bool:
    """Whether the text can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def encodable(text: str) -> str:
    """Replace lone surrogates, which JSON escapes allow and UTF-8 does not, by U+FFFD."""
    if text.isascii() or is_encodable(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def encodable_value(value: Any) -> Any:
    """Replace lone surrogates in every string and key of a JSON value."""
    return map_strings(value, encodable)


def closest_names(name: str, names: Iterable[str], *, count: int = 1) -> list[str]:
    """Return the closest names (did-you-mean candidates), best first: by spelling, then names that contain it."""
    # Imported here, since it is for mistakes only.
    import difflib

    wanted = _fold(name[:100])
    known = list(names)
    folded = {_fold(candidate): candidate for candidate in reversed(known)}
    close = difflib.get_close_matches(wanted, folded, n=count, cutoff=0.6)
    found = [folded[match] for match in close]
    if len(wanted) > 2:
        holding = [candidate for candidate in known if wanted in _fold(candidate)]
        found.extend(candidate for candidate in holding if candidate not in found)
    return found[:count]


def _fold(name: str) -> str:
    return name.lower().replace("-", "_").replace(" ", "_")


def edit_distance(one: str, other: str, limit: int) -> int:
    """Count inserted, deleted, changed and transposed letters; anything above `limit` is `limit + 1`."""
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        current = [row]
        for column, against in enumerate(other, start=1):
            cost = min(last[column] + 1, current[-1] + 1, last[column - 1] + (letter != against))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == against:
                cost = min(cost, before[column - 2] + 1)
            current.append(cost)
        if min(current) > limit:
            return limit + 1
        before, last = last, current
    return min(last[-1], limit + 1)


MAX_SHOWN = 80


def truncate(text: str, limit: int = MAX_SHOWN) -> str:
    """Shorten a text to a limit, without lone surrogates."""
    return encodable(text if len(text) <= limit else text[: limit - 1] + "…")


def truncated_repr(value: Any) -> str:
    """Return the repr of a value, shortened where it is long or deep."""
    return truncate(_BRIEF.repr(value))


def is_short(value: Any, limit: int = 2_000, depth: int = 20) -> bool:
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
