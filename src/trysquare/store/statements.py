"""What the tables' owners ask of a connection, so that the same statements run on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Rows(Protocol):
    """What a statement found."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed."""
        ...

    def fetchone(self) -> Any:
        """The next row, or None."""
        ...

    def fetchall(self) -> list[Any]:
        """The rows that are left."""
        ...


class Statements(Protocol):
    """An open transaction that runs statements with `?` for their parameters."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Rows:
        """Run one statement."""
        ...
