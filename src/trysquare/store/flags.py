"""Flags: named values that a project or a user sets, each change whole and at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TypeAlias

from trysquare.store.lazy import Transactions

FlagValue: TypeAlias = bool | int | float | str | list[str]


class StoredFlags:
    """The flags of one scope in a state file."""

    def __init__(self, database: Transactions, scope: str) -> None:
        self._database = database
        self._scope = scope

    def all(self) -> Mapping[str, FlagValue]:
        """Every flag with its value, in order of name."""
        with self._database.read() as connection:
            rows = connection.execute("SELECT name, value FROM flags WHERE scope = ? ORDER BY name", (self._scope,))
            return {str(name): json.loads(value) for name, value in rows}

    def get(self, name: str) -> FlagValue | None:
        """The value of one flag, or None where it is not set."""
        with self._database.read() as connection:
            query = "SELECT value FROM flags WHERE scope = ? AND name = ?"
            found = connection.execute(query, (self._scope, name)).fetchone()
        return None if found is None else json.loads(found[0])

    def set(self, name: str, value: FlagValue | None, *, by: str) -> FlagValue | None:
        """Set a flag, or remove it with None. Returns the value it had before."""
        with self._database.write() as connection:
            query = "SELECT value FROM flags WHERE scope = ? AND name = ?"
            before = connection.execute(query, (self._scope, name)).fetchone()
            if value is None:
                connection.execute("DELETE FROM flags WHERE scope = ? AND name = ?", (self._scope, name))
            else:
                connection.execute(
                    "INSERT OR REPLACE INTO flags (scope, name, value, updated, by) VALUES (?, ?, ?, ?, ?)",
                    (self._scope, name, json.dumps(value), datetime.now(UTC).isoformat(), by),
                )
        return None if before is None else json.loads(before[0])
