"""Audit log: a hash chain in which no row can be changed or removed unnoticed.

Each row's hash covers the row and the hash before it. A separate row holds the length and the last hash, so that a
chain cut at its end does not verify either. Whoever can write the file can still rewrite the whole chain: export the
last hash now and then, where that matters.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from trysquare.core.json import JsonObject
from trysquare.store.database import Database, Statements

GENESIS = "0" * 64


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditRow:
    seq: int
    at: str
    kind: str
    principal: str
    body: JsonObject
    hash: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditReport:
    """Result of a verification. `broken` is the number of the first wrong row."""

    rows: int
    broken: int | None = None
    problem: str | None = None

    @property
    def sound(self) -> bool:
        return self.broken is None


def utc_now() -> str:
    """Current time in UTC, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def append(connection: Statements, *, kind: str, principal: str, body: JsonObject) -> int:
    """Add a row to the chain, inside the transaction of the change that it records; return its number."""
    head = connection.execute("SELECT seq, hash FROM audit_head").fetchone()
    row = next_row(head, kind=kind, principal=principal, body=body)
    connection.execute(
        "INSERT INTO audit (seq, at, kind, principal, body, previous, hash) VALUES (?, ?, ?, ?, ?, ?, ?)", row
    )
    connection.execute("INSERT OR REPLACE INTO audit_head (id, seq, hash) VALUES (1, ?, ?)", (row[0], row[-1]))
    return row[0]


def next_row(
    head: tuple[int, str] | None, *, kind: str, principal: str, body: JsonObject
) -> tuple[int, str, str, str, str, str, str]:
    """Columns of the row that follows the head of a chain: seq, at, kind, principal, body, previous, hash."""
    seq, previous = (head[0] + 1, head[1]) if head else (1, GENESIS)
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    at = utc_now()
    return seq, at, kind, principal, text, previous, chained_hash(seq, at, kind, principal, text, previous)


class Audit:
    """Audit log of one state file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, *, kind: str, principal: str, body: JsonObject) -> int:
        """Add a row in a transaction of its own."""
        with self._database.write() as connection:
            return append(connection, kind=kind, principal=principal, body=body)

    def rows(self, *, after: int = 0, limit: int = 100) -> list[AuditRow]:
        """Rows in order, after a number."""
        query = "SELECT seq, at, kind, principal, body, hash FROM audit WHERE seq > ? ORDER BY seq LIMIT ?"
        with self._database.read() as connection:
            found = connection.execute(query, (after, limit)).fetchall()
        return [
            AuditRow(seq=seq, at=at, kind=kind, principal=principal, body=json.loads(body), hash=digest)
            for seq, at, kind, principal, body, digest in found
        ]

    def verify(self) -> AuditReport:
        with self._database.read() as connection:
            return verify(connection)


def verify(connection: sqlite3.Connection) -> AuditReport:
    """Verify the chain of a file, inside a transaction of the caller."""
    head = connection.execute("SELECT seq, hash FROM audit_head").fetchone()
    rows = connection.execute("SELECT seq, at, kind, principal, body, previous, hash FROM audit ORDER BY seq")
    return verified(rows, head)


def verified(found: Iterable[Any], head: tuple[int, str] | None) -> AuditReport:
    """Verify rows against one another, and the last against the stored head."""
    count, last = 0, GENESIS
    for seq, at, kind, principal, body, previous, digest in found:
        problem = None
        if seq != count + 1:
            problem = f"row {count + 1} is missing; the next one is {seq}"
        elif previous != last:
            problem = f"row {seq} does not follow the row before it"
        elif digest != chained_hash(seq, at, kind, principal, body, last):
            problem = f"row {seq} was changed after it was written"
        if problem is not None:
            return AuditReport(rows=count, broken=count + 1, problem=problem)
        count, last = seq, digest
    if (head or (0, GENESIS)) != (count, last):
        return AuditReport(rows=count, broken=count + 1, problem=f"rows are missing at the end, after row {count}")
    return AuditReport(rows=count)


def chained_hash(seq: int, at: str, kind: str, principal: str, body: str, previous: str) -> str:
    """Hash of a row and the hash before it."""
    # `default`: a tampered row may hold any type.
    text = json.dumps([seq, at, kind, principal, body, previous], separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
