"""Which tools were chosen after a search, by the terms of its query: bounded, inspectable, erasable."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from trysquare.store.database import Transactions

MOST_CHOICES = 2_000
"""Pairs of a term and a tool; those that were not chosen for longest are dropped first."""
_MOST_COUNTED = 5


@dataclass(frozen=True, slots=True)
class Choice:
    """How often a tool was chosen after a search with this term."""

    term: str
    tool: str
    count: int


class StoredChoices:
    """The choices of one project's state file."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def record(self, terms: Iterable[str], tool: str) -> None:
        """Count one choice for each term of the query."""
        now = time.time()
        with self._database.write(durable=False) as connection:
            connection.executemany(
                "INSERT INTO search_choices (term, tool, count, at) VALUES (?, ?, 1, ?)"
                " ON CONFLICT (term, tool) DO UPDATE SET count = count + 1, at = excluded.at",
                [(term, tool, now) for term in sorted(set(terms))],
            )
            connection.execute(
                "DELETE FROM search_choices WHERE rowid NOT IN"
                " (SELECT rowid FROM search_choices ORDER BY at DESC, rowid DESC LIMIT ?)",
                (MOST_CHOICES,),
            )

    def shares(self, terms: Iterable[str]) -> dict[str, float]:
        """How well each tool is known for these terms: 1 if it was chosen several times for all of them."""
        wanted = sorted(set(terms))
        if not wanted:
            return {}
        marks = ", ".join("?" * len(wanted))
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT tool, SUM(MIN(count, ?)) FROM search_choices WHERE term IN ({marks}) GROUP BY tool",
                (_MOST_COUNTED, *wanted),
            ).fetchall()
        return {tool: total / (_MOST_COUNTED * len(wanted)) for tool, total in rows}

    def all(self) -> list[Choice]:
        """Every choice, the most frequent first."""
        with self._database.read() as connection:
            rows = connection.execute("SELECT term, tool, count FROM search_choices ORDER BY count DESC, term, tool")
            return [Choice(*row) for row in rows.fetchall()]

    def clear(self) -> int:
        """Forget all choices; how many there were."""
        with self._database.write() as connection:
            return connection.execute("DELETE FROM search_choices").rowcount
