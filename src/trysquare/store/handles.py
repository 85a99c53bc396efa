"""StoredHandles: handles that several processes share, so that any of them can serve the next page."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from typing import Any

from trysquare.core.errors import ErrorCode, NotFound
from trysquare.core.result import jsonable
from trysquare.store.database import Database


class StoredHandles:
    """Handles in the state file. Values must be JSON, or they become it."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def put(self, value: Any, *, principal: str, ttl: float = 3600.0) -> str:
        handle, now = secrets.token_urlsafe(12), self._clock()
        text = json.dumps(jsonable(value))
        with self._database.write() as connection:
            connection.execute("DELETE FROM handles WHERE expires <= ?", (now,))
            connection.execute(
                "INSERT INTO handles (handle, principal, value, expires) VALUES (?, ?, ?, ?)",
                (handle, principal, text, now + ttl),
            )
        return handle

    def get(self, handle: str, *, principal: str) -> Any:
        query = "SELECT value FROM handles WHERE handle = ? AND principal = ? AND expires > ?"
        with self._database.read() as connection:
            found = connection.execute(query, (handle, principal, self._clock())).fetchone()
        if found is None:
            raise NotFound(
                f"No handle `{handle[:40]}`: it has expired or never existed.",
                code=ErrorCode.HANDLE_NOT_FOUND,
                instruction="Repeat the call that produced the handle.",
            )
        return json.loads(found[0])

    def drop(self, handle: str) -> None:
        with self._database.write() as connection:
            connection.execute("DELETE FROM handles WHERE handle = ?", (handle,))


class LazyHandles:
    """Handles that several processes share, with the state file opened at the first one."""

    def __init__(self, open_database: Callable[[], Database]) -> None:
        self._open = open_database

    def put(self, value: Any, *, principal: str, ttl: float = 3600.0) -> str:
        return self._handles().put(value, principal=principal, ttl=ttl)

    def get(self, handle: str, *, principal: str) -> Any:
        return self._handles().get(handle, principal=principal)

    def drop(self, handle: str) -> None:
        self._handles().drop(handle)

    def _handles(self) -> StoredHandles:
        return StoredHandles(self._open())
