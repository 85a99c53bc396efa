"""Pairing: which item of an edited list was which item of the list before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TypeVar

ALIKE = 0.6
"""From here on, two names are taken for one that was reworded."""

_Item = TypeVar("_Item")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pairs:
    """Positions in the list before, for each position in the list after; None for a new item."""

    before_of: tuple[int | None, ...]
    removed: tuple[int, ...]


def pair(before: Sequence[_Item], after: Sequence[_Item], name: Callable[[_Item], str]) -> Pairs:
    """Pair by the same name, then by the likeness of names, then by place where nothing was added or removed.

    An item that was reworded beyond likeness keeps what belongs to it as long as it stays in its place.
    """
    found: dict[int, int] = {}
    free = list(range(len(before)))

    def take(new: int, old: int) -> None:
        found[new] = old
        free.remove(old)

    for new, item in enumerate(after):
        same = next((old for old in free if name(before[old]) == name(item)), None)
        if same is not None:
            take(new, same)
    for new in [each for each in range(len(after)) if each not in found]:
        alike = max(free, key=lambda old: likeness(name(before[old]), name(after[new])), default=None)
        if alike is not None and likeness(name(before[alike]), name(after[new])) >= ALIKE:
            take(new, alike)
    if len(before) == len(after):
        for new in [each for each in range(len(after)) if each not in found and each in free]:
            take(new, new)
    return Pairs(before_of=tuple(found.get(new) for new in range(len(after))), removed=tuple(free))


def likeness(one: str, other: str) -> float:
    """How much two names have in common, from 0 to 1."""
    return SequenceMatcher(None, one.casefold(), other.casefold(), autojunk=False).ratio()


def same_order(pairs: Pairs) -> bool:
    """Whether the items that stayed still follow one another as before."""
    kept = [each for each in pairs.before_of if each is not None]
    return kept == sorted(kept)
