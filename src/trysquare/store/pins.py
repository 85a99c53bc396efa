"""Pinned tool definitions and launch commands."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from trysquare.core.json import JsonObject
from trysquare.store.audit import append, utc_now
from trysquare.store.database import Transactions

_COLUMNS = "file, server, digest, shown, pinned, by"
_SELECT = f"SELECT {_COLUMNS} FROM command_pins WHERE file = ? AND server = ?"


@dataclass(frozen=True, slots=True)
class CommandPin:
    """A pinned command line. `digest` covers what `shown` masks."""

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
        """The pin of a server, or None if it was never started."""
        with self._database.read() as connection:
            row = connection.execute(_SELECT, (file, server)).fetchone()
        return None if row is None else CommandPin(*row)

    def pin_first(self, file: str, server: str, *, digest: str, shown: str, by: str) -> CommandPin:
        """Pin a server unless it has a pin; return its pin."""
        return self._insert("INSERT OR IGNORE", "command.first_used", (file, server, digest, shown, utc_now(), by))

    def approve(self, file: str, server: str, *, digest: str, shown: str, by: str) -> CommandPin:
        """Replace the pin with an approved one."""
        return self._insert("INSERT OR REPLACE", "command.approved", (file, server, digest, shown, utc_now(), by))

    def record_first_call(self, file: str, server: str) -> None:
        """Record that a session's first call went to a server."""
        update = "UPDATE command_pins SET first_called = ? WHERE file = ? AND server = ?"
        with self._database.write(durable=False) as connection:
            connection.execute(update, (time.time(), file, server))

    def last_first_called(self, files: Iterable[str]) -> CommandPin | None:
        """The pin of the server that got the first call of the latest session with one of these files."""
        known = tuple(dict.fromkeys(files))
        places = ", ".join("?" * len(known))
        select = f"SELECT {_COLUMNS} FROM command_pins WHERE first_called IS NOT NULL AND file IN ({places})"
        with self._database.read() as connection:
            row = connection.execute(f"{select} ORDER BY first_called DESC LIMIT 1", known).fetchone()
        return None if row is None else CommandPin(*row)

    def _insert(self, insert: str, kind: str, row: tuple[str, ...]) -> CommandPin:
        file, server, _, shown, _, by = row
        with self._database.write() as connection:
            changed = connection.execute(f"{insert} INTO command_pins ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", row)
            if changed.rowcount > 0:
                append(connection, kind=kind, principal=by, body={"file": file, "server": server, "shown": shown})
            return CommandPin(*connection.execute(_SELECT, (file, server)).fetchone())


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerRecord:
    """Stored definitions of one server. `tools` is None if they were never listed; `held` wait for approval."""

    tools: Sequence[JsonObject] | None = None
    held: Sequence[JsonObject] = ()
    gone: Sequence[JsonObject] = ()
    """Tools that the server no longer lists. One that comes back is compared with its last definition."""
    offers: Mapping[str, Sequence[JsonObject]] = field(default_factory=dict[str, Sequence[JsonObject]])
    size: int = field(default=0, compare=False)
    """Characters in the database when it was read."""


RecordChange: TypeAlias = Callable[[ServerRecord], ServerRecord]
"""From the current record to the new one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditEvent:
    """Audit row of a changed record, without the file and the server."""

    kind: str
    principal: str
    body: JsonObject


RecordAudit: TypeAlias = Callable[[ServerRecord, ServerRecord], AuditEvent | None]
"""From the records before and after a change to its audit row, if it has one."""


class StoredDefinitions:
    """Records of the servers, by configuration file and name: the same name in two files is two servers."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def changes(self) -> int:
        """Counter of changes: the same number means the same records."""
        with self._database.read() as connection:
            found = connection.execute("SELECT count FROM gateway_changes").fetchone()
        return 0 if found is None else int(found[0])

    def find(self, file: str, server: str) -> ServerRecord:
        """Record of a server; empty if there is none."""
        with self._database.read() as connection:
            return _find(connection, file, server)

    def change(self, file: str, server: str, change: RecordChange, *, audit: RecordAudit | None = None) -> ServerRecord:
        """Change a record and audit it in one transaction. An unchanged record is not written."""
        with self._database.write() as connection:
            before = _find(connection, file, server)
            after = change(before)
            if after != before:
                _write(connection, file, server, after)
                if audit is not None and (event := audit(before, after)) is not None:
                    body = {"file": file, "server": server, **event.body}
                    append(connection, kind=event.kind, principal=event.principal, body=body)
                _count(connection)
        return after

    def forget(self, file: str, server: str) -> None:
        with self._database.write() as connection:
            connection.execute("DELETE FROM gateway_servers WHERE file = ? AND server = ?", (file, server))
            _count(connection)


def _find(connection: sqlite3.Connection, file: str, server: str) -> ServerRecord:
    query = "SELECT tools, held, gone, offers FROM gateway_servers WHERE file = ? AND server = ?"
    row: Any = connection.execute(query, (file, server)).fetchone()
    if row is None:
        return ServerRecord()
    tools, held, gone, offers = (json.loads(part or "null") for part in row)
    return ServerRecord(tools=tools, held=held, gone=gone, offers=offers, size=sum(len(part or "") for part in row))


def _write(connection: sqlite3.Connection, file: str, server: str, record: ServerRecord) -> None:
    values = (record.tools, record.held, record.gone, record.offers)
    texts = [None if value is None else json.dumps(value, separators=(",", ":")) for value in values]
    connection.execute(
        "INSERT OR REPLACE INTO gateway_servers (file, server, tools, held, gone, offers, updated)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (file, server, *texts, utc_now()),
    )


def _count(connection: sqlite3.Connection) -> None:
    connection.execute(
        "INSERT INTO gateway_changes (id, count) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET count = count + 1"
    )
