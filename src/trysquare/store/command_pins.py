"""Pins of command lines: how each server of a configuration was started when a person last agreed to it."""

from __future__ import annotations

from dataclasses import dataclass

from trysquare.store.audit import append, utc_now
from trysquare.store.lazy import Transactions

_COLUMNS = "file, server, digest, shown, pinned, by"


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandPin:
    """One pinned command line. The digest covers what `shown` masks."""

    file: str
    server: str
    digest: str
    shown: str
    pinned: str
    by: str


class CommandPins:
    """The pins of one state file, by configuration file and server."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def find(self, file: str, server: str) -> CommandPin | None:
        """The pin of a server, or None where it was never started."""
        query = f"SELECT {_COLUMNS} FROM command_pins WHERE file = ? AND server = ?"
        with self._database.read() as connection:
            row = connection.execute(query, (file, server)).fetchone()
        return None if row is None else _pin(row)

    def pin_first(self, file: str, server: str, *, digest: str, shown: str, by: str) -> CommandPin:
        """Pin a server that has no pin yet. Returns the pin there is, which may be one that stood before."""
        return self._pinned("INSERT OR IGNORE", "command.first_used", (file, server, digest, shown, utc_now(), by))

    def approve(self, file: str, server: str, *, digest: str, shown: str, by: str) -> CommandPin:
        """Pin what a person has agreed to, in place of the pin before."""
        return self._pinned("INSERT OR REPLACE", "command.approved", (file, server, digest, shown, utc_now(), by))

    def _pinned(self, insert: str, kind: str, row: tuple[str, ...]) -> CommandPin:
        file, server, _, shown, _, by = row
        query = f"SELECT {_COLUMNS} FROM command_pins WHERE file = ? AND server = ?"
        with self._database.write() as connection:
            changed = connection.execute(f"{insert} INTO command_pins ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", row)
            if changed.rowcount > 0:
                append(connection, kind=kind, principal=by, body={"file": file, "server": server, "shown": shown})
            return _pin(connection.execute(query, (file, server)).fetchone())


def _pin(row: tuple[str, ...]) -> CommandPin:
    file, server, digest, shown, pinned, by = row
    return CommandPin(file=file, server=server, digest=digest, shown=shown, pinned=pinned, by=by)
