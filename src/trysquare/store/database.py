"""SQLite database for several threads and processes.

Write-ahead log, `synchronous = FULL`, and every write in one `BEGIN IMMEDIATE` transaction. A damaged file is moved
aside, never deleted.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.files.edit import exclusive_lock
from trysquare.store.location import prepare_folder
from trysquare.store.migrations import migrate

logger = logging.getLogger("trysquare.store")

BUSY_SECONDS = 10.0
_TRY_MILLISECONDS = 8
"""Busy timeout of SQLite, whose own back-off of up to 100 ms would miss a free lock."""
_LOG_BYTES = 16 * 1024 * 1024
"""Size of the write-ahead log after a large write."""
_CHECKED_BYTES = 16 * 1024 * 1024
"""Largest file that is checked when it is opened, which takes some milliseconds."""


class Database:
    """An open state file; see `open_database`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._connection = _connect(path)

    @contextmanager
    def write(self, *, durable: bool = True) -> Generator[sqlite3.Connection]:
        """Open a transaction that is committed at the end of the block, or rolled back if the block raises.

        Without `durable` it does not wait for the disk: it survives a crash of the process, but perhaps not of the
        machine.
        """
        with self._lock, _translate_errors(self.path):
            connection = self._own_connection()
            if not durable:
                connection.execute("PRAGMA synchronous = NORMAL")
            try:
                _begin_write(connection)
                yield connection
                _commit(connection, self.path)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if not durable:
                    connection.execute("PRAGMA synchronous = FULL")

    @contextmanager
    def read(self) -> Generator[sqlite3.Connection]:
        """Open a consistent snapshot for the block."""
        with self._lock, _translate_errors(self.path):
            connection = self._own_connection()
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def problems(self) -> list[str]:
        """Problems found by SQLite's integrity check."""
        with self._lock, _translate_errors(self.path):
            rows = self._own_connection().execute("PRAGMA integrity_check").fetchall()
        return [str(row[0]) for row in rows if row[0] != "ok"]

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _own_connection(self) -> sqlite3.Connection:
        # A forked connection would corrupt the file: the child opens its own.
        if self._process != os.getpid():
            self._process = os.getpid()
            self._connection = _connect(self.path)
        return self._connection


def open_database(path: Path) -> Database:
    """Open a state file, creating or migrating it if needed."""
    prepare_folder(path.parent)
    try:
        # One process at a time opens, migrates or replaces the file.
        with exclusive_lock(path.with_name(path.name + ".lock")):
            return _open_or_replace(path)
    except (sqlite3.Error, OSError) as error:
        raise ConfigurationError(
            f"Cannot open the state file: {error}.",
            where=str(path),
            hint="Make the file and its directory writable, free disk space, or choose another --project.",
        ) from error


def _open_or_replace(path: Path) -> Database:
    try:
        return _open_checked(path)
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code not in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT) and "malformed" not in str(error):
            raise
        aside = set_aside(path)
        logger.warning("state file damaged; moved aside: path=%s error=%s moved_to=%s", path, error, aside.name)
        return _open_checked(path)


def _open_checked(path: Path) -> Database:
    os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    database = Database(path)
    try:
        connection = database._own_connection()  # pyright: ignore[reportPrivateUsage] - same file
        if path.stat().st_size <= _CHECKED_BYTES:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise sqlite3.DatabaseError(f"malformed: {found}")
        migrate(connection, str(path))
    except BaseException:
        database.close()
        raise
    return database


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        if path.stat().st_size == 0:
            # Takes effect in a new file only, and lets deleted pages be returned to the disk.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _begin_write(connection: sqlite3.Connection) -> None:
    """Begin a write transaction within milliseconds after the lock is free, even if its holder was killed."""
    end = time.monotonic() + BUSY_SECONDS
    connection.execute(f"PRAGMA busy_timeout = {_TRY_MILLISECONDS}")
    try:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")


def _commit(connection: sqlite3.Connection, path: Path) -> None:
    try:
        connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname != "SQLITE_IOERR_FSYNC":
            raise
        # The change is in the log but not confirmed: the next process may find it there.
        raise ToolError(
            f"The disk failed while {path} was written ({error}); the change may or may not have taken effect.",
            code=ErrorCode.STATE_UNAVAILABLE,
            instruction="Ask the user to check the disk. Then read the state, or send the same call with the same "
            "request_key.",
        ) from error


def set_aside(path: Path) -> Path:
    """Rename a damaged file and its companions, with a timestamp."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    aside = path.with_name(f"{path.name}.corrupt-{stamp}")
    for ending in ("", "-wal", "-shm"):
        part = path.with_name(path.name + ending)
        if part.exists():
            part.rename(aside.with_name(aside.name + ending))
    return aside


@contextmanager
def _translate_errors(path: Path) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise _unavailable(error, path) from error


def _unavailable(error: sqlite3.Error, path: Path) -> ToolError:
    name = str(getattr(error, "sqlite_errorname", ""))
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        what, instruction = "is busy with other writers", "Send the same call again."
    elif name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        what, instruction = f"cannot be written ({error})", "Ask the user to free disk space, then send the call again."
    elif name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        what, instruction = f"is damaged ({error})", "Ask the user to restart the server, which moves the file aside."
    else:
        what, instruction = f"cannot be used ({error})", f"Ask the user to check {path}."
    message = f"Nothing was changed: the state file {what}."
    return ToolError(message, code=ErrorCode.STATE_UNAVAILABLE, instruction=instruction)


class Rows(Protocol):
    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Statements(Protocol):
    """An open transaction that runs statements with `?` for their parameters."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Rows: ...


class Transactions(Protocol):
    """Database that offers transactions."""

    def read(self) -> AbstractContextManager[sqlite3.Connection]:
        """Open a consistent snapshot for the block."""
        ...

    def write(self, *, durable: bool = True) -> AbstractContextManager[sqlite3.Connection]:
        """Open a transaction that is committed whole, or not at all."""
        ...
