"""Handles in the state file, so that any process can serve the next page."""

from __future__ import annotations

import json
import logging
import secrets
import sqlite3
import time
from collections.abc import Callable
from typing import Any

from trysquare.core.cache import KeepLimits, SweepTimer, no_handle
from trysquare.core.errors import ToolError
from trysquare.core.result import jsonable
from trysquare.store.database import Transactions

logger = logging.getLogger("trysquare.store")

_DROP_EXPIRED = "DELETE FROM handles WHERE expires <= ?"
_INCREMENTAL = 2
_FREED_PAGES = 20_000
"""Maximum pages returned to the disk at once, to bound the time."""


class StoredHandles:
    """Handles of JSON values in the state file, bounded in bytes."""

    def __init__(
        self, database: Transactions, *, limits: KeepLimits | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._limits = limits or KeepLimits()
        self._clock = clock

    def put(self, value: Any, *, principal: str, ttl: float = 3600.0) -> str:
        handle, now = secrets.token_urlsafe(12), self._clock()
        text = json.dumps(jsonable(value))
        self._limits.check(len(text))
        with self._database.write() as connection:
            connection.execute(_DROP_EXPIRED, (now,))
            connection.execute(
                "INSERT INTO handles (handle, principal, value, expires, size) VALUES (?, ?, ?, ?, ?)",
                (handle, principal, text, now + ttl, len(text)),
            )
            _evict(connection, self._limits.per_caller, principal)
            _evict(connection, self._limits.total)
        return handle

    def get(self, handle: str, *, principal: str) -> Any:
        query = "SELECT value FROM handles WHERE handle = ? AND principal = ? AND expires > ?"
        now = self._clock()
        with self._database.read() as connection:
            found = connection.execute(query, (handle, principal, now)).fetchone()
            is_any_old = connection.execute("SELECT 1 FROM handles WHERE expires <= ? LIMIT 1", (now,)).fetchone()
        if is_any_old is not None:
            self.sweep()
        if found is None:
            raise no_handle(handle)
        return json.loads(found[0])

    def drop(self, handle: str) -> None:
        with self._database.write() as connection:
            connection.execute("DELETE FROM handles WHERE handle = ?", (handle,))

    def sweep(self) -> float | None:
        """Drop expired handles; return the seconds until the next one expires."""
        now = self._clock()
        with self._database.write() as connection:
            connection.execute(_DROP_EXPIRED, (now,))
            _shrink(connection)
            [following] = connection.execute("SELECT min(expires) FROM handles").fetchone()
        return None if following is None else float(following) - now


def _evict(connection: sqlite3.Connection, limit: int, principal: str | None = None) -> None:
    """Delete the oldest handles, of one principal or of all, until the rest fits the limit."""
    chosen, values = ("WHERE principal = ?", (principal,)) if principal is not None else ("", ())
    [size] = connection.execute(f"SELECT coalesce(sum(size), 0) FROM handles {chosen}", values).fetchone()
    over = int(size) - limit
    if over <= 0:
        return
    oldest = connection.execute(f"SELECT rowid, size FROM handles {chosen} ORDER BY rowid", values).fetchall()
    for row, freed in oldest:
        if over <= 0:
            return
        connection.execute("DELETE FROM handles WHERE rowid = ?", (row,))
        over -= freed


def _shrink(connection: sqlite3.Connection) -> None:
    """Return free pages to the disk; a file of an older version keeps its size and reuses them."""
    if connection.execute("PRAGMA auto_vacuum").fetchone()[0] == _INCREMENTAL:
        free = int(connection.execute("PRAGMA freelist_count").fetchone()[0])
        for _ in range(min(free, _FREED_PAGES)):
            # One page per statement: the driver stops after the first.
            connection.execute("PRAGMA incremental_vacuum(1)")


class SweptHandles(StoredHandles):
    """Stored handles that are dropped soon after they expire, although nobody uses them."""

    def __init__(self, database: Transactions, *, limits: KeepLimits | None = None) -> None:
        super().__init__(database, limits=limits)
        self._timer = SweepTimer(self.sweep)

    def put(self, value: Any, *, principal: str, ttl: float = 3600.0) -> str:
        handle = super().put(value, principal=principal, ttl=ttl)
        self._timer.start(ttl)
        return handle

    def sweep(self) -> float | None:
        try:
            return super().sweep()
        except ToolError as error:
            # The file is closed or busy; the next use drops them.
            logger.debug("expired handles not dropped: %s", error)
            return None
