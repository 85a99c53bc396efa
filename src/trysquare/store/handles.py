"""StoredHandles: handles that several processes share, so that any of them can serve the next page."""

from __future__ import annotations

import json
import logging
import secrets
import sqlite3
import time
from collections.abc import Callable
from typing import Any

from trysquare.core.errors import ToolError
from trysquare.core.handles import KeepLimits, SweepTimer, no_handle
from trysquare.core.result import jsonable
from trysquare.store.database import Database

logger = logging.getLogger("trysquare.store")

_INCREMENTAL = 2
_FREED_PAGES = 20_000
"""Pages of the file that are given back to the disk at once, so that nobody waits long for it."""


class StoredHandles:
    """Handles in the state file, as many bytes as the limits say. Values must be JSON, or they become it."""

    def __init__(
        self, database: Database, *, limits: KeepLimits | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._limits = limits or KeepLimits()
        self._clock = clock

    def put(self, value: Any, *, principal: str, ttl: float = 3600.0) -> str:
        handle, now = secrets.token_urlsafe(12), self._clock()
        text = json.dumps(jsonable(value))
        self._limits.check(len(text))
        with self._database.write() as connection:
            _drop_expired(connection, now)
            connection.execute(
                "INSERT INTO handles (handle, principal, value, expires, size) VALUES (?, ?, ?, ?, ?)",
                (handle, principal, text, now + ttl, len(text)),
            )
            _make_room(connection, self._limits.per_caller, principal)
            _make_room(connection, self._limits.total)
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
        """Drop what has expired; returns the seconds until something else does, if anything is kept."""
        now = self._clock()
        with self._database.write() as connection:
            _drop_expired(connection, now)
            _give_back(connection)
            [following] = connection.execute("SELECT min(expires) FROM handles").fetchone()
        return None if following is None else float(following) - now


def _drop_expired(connection: sqlite3.Connection, now: float) -> None:
    connection.execute("DELETE FROM handles WHERE expires <= ?", (now,))


def _make_room(connection: sqlite3.Connection, most: int, principal: str | None = None) -> None:
    """Delete the oldest, of one principal or of all, until what is left is no more than may be kept."""
    chosen, values = ("WHERE principal = ?", (principal,)) if principal is not None else ("", ())
    [size] = connection.execute(f"SELECT coalesce(sum(size), 0) FROM handles {chosen}", values).fetchone()
    over = int(size) - most
    if over <= 0:
        return
    oldest = connection.execute(f"SELECT rowid, size FROM handles {chosen} ORDER BY rowid", values).fetchall()
    for row, freed in oldest:
        if over <= 0:
            return
        connection.execute("DELETE FROM handles WHERE rowid = ?", (row,))
        over -= freed


def _give_back(connection: sqlite3.Connection) -> None:
    """Shrink the file by what was deleted. A file of an older version keeps its size, and its free pages are reused."""
    if connection.execute("PRAGMA auto_vacuum").fetchone()[0] == _INCREMENTAL:
        free = int(connection.execute("PRAGMA freelist_count").fetchone()[0])
        for _ in range(min(free, _FREED_PAGES)):
            # One page at a time: the driver would stop after the first of several.
            connection.execute("PRAGMA incremental_vacuum(1)")


class LazyHandles:
    """Handles that several processes share, with the state file opened at the first one."""

    def __init__(self, open_database: Callable[[], Database], *, limits: KeepLimits | None = None) -> None:
        self._open = open_database
        self._limits = limits
        self._timer = SweepTimer(self)

    def put(self, value: Any, *, principal: str, ttl: float = 3600.0) -> str:
        handle = self._handles().put(value, principal=principal, ttl=ttl)
        self._timer.start(ttl)
        return handle

    def get(self, handle: str, *, principal: str) -> Any:
        return self._handles().get(handle, principal=principal)

    def drop(self, handle: str) -> None:
        self._handles().drop(handle)

    def sweep(self) -> float | None:
        """Drop what has expired; returns the seconds until something else does, if anything is kept."""
        try:
            return self._handles().sweep()
        except ToolError as error:
            # The file is closed or busy; whoever uses it next drops what has expired.
            logger.debug("expired handles were not dropped: %s", error)
            return None

    def _handles(self) -> StoredHandles:
        return StoredHandles(self._open(), limits=self._limits)
