"""Spread: the probability of each of several names, found token by token."""

from __future__ import annotations

from collections.abc import Sequence

_SMALL_SHARE = 0.1
"""Names that begin alike and together have less than this share it equally: a look at the model costs more."""


class Spread:
    """How likely each name is, as far as it is known."""

    def __init__(self, names: Sequence[str]) -> None:
        # Shortest first: where a text ends at a name that others continue, that name is meant.
        self._names = sorted(names, key=len)
        self.shares = dict.fromkeys(names, 0.0)

    def left(self, written: bytes) -> list[str]:
        """The names that a text may become."""
        begun = written.decode("utf-8", errors="ignore")
        if fitting := [name for name in self._names if name.startswith(begun)]:
            return fitting
        # The text has gone beyond a name, such as to its closing quote.
        return [name for name in self._names if begun.startswith(name)][-1:]

    def is_settled(self, names: Sequence[str], share: float) -> bool:
        """Whether there is nothing to divide, or too little."""
        return len(names) <= 1 or (share < _SMALL_SHARE and len(names) < len(self._names))

    def give(self, names: Sequence[str], share: float) -> None:
        """Divide a share equally."""
        for name in names:
            self.shares[name] += share / len(names)
