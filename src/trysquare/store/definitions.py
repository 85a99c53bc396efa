"""Definitions of servers behind the gateway, as they were last agreed to: what is listed while nothing runs.

A server is known by the configuration file that names it and its name there, so that the same name in two files is
two servers. Its record is read and written whole, in one transaction, and its text stays the same byte for byte until
something in it changes.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from trysquare.core.types import JsonObject
from trysquare.store.audit import append, utc_now
from trysquare.store.lazy import Transactions


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerRecord:
    """What is kept of one server. `tools` is None for one whose tools were never seen."""

    tools: Sequence[JsonObject] | None = None
    held: Sequence[JsonObject] = ()
    gone: Sequence[JsonObject] = ()
    """Tools that the server has no more. One that comes back is compared with what it was."""
    offers: Mapping[str, Sequence[JsonObject]] = field(default_factory=dict[str, Sequence[JsonObject]])
    size: int = field(default=0, compare=False)
    """Characters that it took when it was read."""


RecordChange: TypeAlias = Callable[[ServerRecord], ServerRecord]
"""From a server's record as it is now to what it shall be."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditEvent:
    """What the audit keeps of a change of a record, beside the file and the server."""

    kind: str
    principal: str
    body: JsonObject


RecordAudit: TypeAlias = Callable[[ServerRecord, ServerRecord], AuditEvent | None]
"""From a record before and after a change to its row of the audit, if it has one."""


class StoredDefinitions:
    """The servers' records in one state file."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def changes(self) -> int:
        """How often anything was changed so far: the same number means the same records."""
        with self._database.read() as connection:
            found = connection.execute("SELECT count FROM gateway_changes").fetchone()
        return 0 if found is None else int(found[0])

    def find(self, file: str, server: str) -> ServerRecord:
        """A server's record; an empty one for a server that nobody has seen."""
        with self._database.read() as connection:
            return _find(connection, file, server)

    def change(self, file: str, server: str, change: RecordChange, *, audit: RecordAudit | None = None) -> ServerRecord:
        """Change a record as it is now, with its row of the audit. One that stays the same is not written."""
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
        """Forget a server, pins and all."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM gateway_servers WHERE file = ? AND server = ?", (file, server))
            _count(connection)


def _find(connection: sqlite3.Connection, file: str, server: str) -> ServerRecord:
    query = "SELECT tools, held, gone, offers FROM gateway_servers WHERE file = ? AND server = ?"
    row: Any = connection.execute(query, (file, server)).fetchone()
    if row is None:
        return ServerRecord()
    tools, held, gone, offers = row
    return ServerRecord(
        tools=None if tools is None else json.loads(tools),
        held=json.loads(held),
        gone=json.loads(gone),
        offers=json.loads(offers),
        size=sum(len(part or "") for part in row),
    )


def _write(connection: sqlite3.Connection, file: str, server: str, record: ServerRecord) -> None:
    tools = None if record.tools is None else _text(record.tools)
    connection.execute(
        "INSERT OR REPLACE INTO gateway_servers (file, server, tools, held, gone, offers, updated)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (file, server, tools, _text(record.held), _text(record.gone), _text(record.offers), utc_now()),
    )


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _count(connection: sqlite3.Connection) -> None:
    connection.execute(
        "INSERT INTO gateway_changes (id, count) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET count = count + 1"
    )
