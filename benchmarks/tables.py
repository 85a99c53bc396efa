"""A table of figures, and a target with what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """One table of figures."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What we promise of one ratio, and what was found."""

    promise: str
    found: float
    limit: float
    at_least: bool = False

    @property
    def is_met(self) -> bool:
        """Whether the promise holds in this run."""
        return self.found >= self.limit if self.at_least else self.found <= self.limit

    def row(self) -> tuple[str, str, str, str]:
        """The target as cells of a table."""
        sign = "at least" if self.at_least else "at most"
        return self.promise, f"{sign} {self.limit:g}", f"{self.found:.2f}", "met" if self.is_met else "**missed**"
