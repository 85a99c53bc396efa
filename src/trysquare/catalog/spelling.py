"""Spelling: the known terms that a misspelt one probably means."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

_SHORTEST_MEANT, _SHORTEST_TYPED = 4, 5
"""Shorter words are one slip away from too many others."""
_TWO_SLIPS = 8
_SHORT = 5
"""A word of so few letters with one too many or another one is rather another word: `coast` is no slip for `cost`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Guess:
    """A known term that may have been meant, and how near it is: 1 is the same."""

    term: str
    nearness: float


class Spelling:
    """Known terms by their trigrams, so that near ones are found without comparing with all."""

    def __init__(self) -> None:
        self._by_trigram: dict[str, set[str]] = {}

    def add(self, term: str) -> None:
        """Learn a term."""
        for trigram in _trigrams(term):
            self._by_trigram.setdefault(trigram, set()).add(term)

    def remove(self, term: str) -> None:
        """Forget a term."""
        for trigram in _trigrams(term):
            holders = self._by_trigram.get(trigram, set())
            holders.discard(term)
            if not holders:
                self._by_trigram.pop(trigram, None)

    def guesses(self, term: str, *, count: int = 3) -> list[Guess]:
        """The nearest known terms within one slip, or two for long words; nearest first."""
        if len(term) < _SHORTEST_TYPED:
            return []
        allowed = 2 if len(term) >= _TWO_SLIPS else 1
        found: list[tuple[int, str]] = []
        for candidate in self._candidates(term):
            distance = slips(term, candidate, allowed)
            if distance <= allowed and (len(term) > _SHORT or _is_likely_slip(term, candidate)):
                found.append((distance, candidate))
        found.sort()
        return [Guess(term=known, nearness=1.0 - 0.25 * distance) for distance, known in found[:count]]

    def _candidates(self, term: str) -> list[str]:
        shared: Counter[str] = Counter()
        for trigram in _trigrams(term):
            shared.update(self._by_trigram.get(trigram, ()))
        return [known for known, _ in shared.most_common(40) if len(known) >= _SHORTEST_MEANT and known[0] == term[0]]


def _is_likely_slip(typed: str, meant: str) -> bool:
    """Whether a letter was left out, or two letters were swapped."""
    return len(typed) < len(meant) or sorted(typed) == sorted(meant)


def _trigrams(term: str) -> set[str]:
    padded = f"^{term}$"
    return {padded[start : start + 3] for start in range(len(padded) - 2)}


def slips(one: str, other: str, limit: int) -> int:
    """How many letters were left out, added, changed or swapped; more than `limit` is told as `limit + 1`."""
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
