"""Database: one SQLite file that several threads and processes share, and that survives being killed.

Write-ahead log, `synchronous = FULL`, and every write in one `BEGIN IMMEDIATE` transaction: what was committed stays,
and what was not leaves no trace. A file that cannot be read is set aside, never deleted.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.store.location import prepare_folder
from trysquare.store.schema import migrate

logger = logging.getLogger("trysquare.store")

BUSY_SECONDS = 10.0
_TRY_MILLISECONDS = 8
"""How long SQLite itself waits for a lock: it sleeps longer each time, up to 100 ms, and would oversleep its turn."""
_KEPT_LOG_BYTES = 16 * 1024 * 1024
"""The size to which the write-ahead log shrinks again after a large write."""
_CHECKED_BYTES = 16 * 1024 * 1024
"""Files up to this size are checked whole when they are opened; it takes some milliseconds."""


class Database:
    """An open state file. Use `open_database`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._connection = _connect(path)

    @contextmanager
    def write(self, *, durable: bool = True) -> Generator[sqlite3.Connection]:
        """A transaction that is committed whole at the end of the block, or not at all if the block raises.

        One that is not durable does not wait for the disk: it survives the end of the process, but perhaps not that of
        the machine.
        """
        with self._lock, _clear_errors(self.path):
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
        """One consistent view of the file for the length of the block."""
        with self._lock, _clear_errors(self.path):
            connection = self._own_connection()
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def problems(self) -> list[str]:
        """What SQLite's own full check finds; empty for a sound file."""
        with self._lock, _clear_errors(self.path):
            rows = self._own_connection().execute("PRAGMA integrity_check").fetchall()
        return [str(row[0]) for row in rows if row[0] != "ok"]

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def _own_connection(self) -> sqlite3.Connection:
        # A connection that came through a fork would corrupt the file: the child opens its own.
        if self._process != os.getpid():
            self._process = os.getpid()
            self._connection = _connect(self.path)
        return self._connection


def open_database(path: Path) -> Database:
    """Open the state file, make it if there is none, and bring its tables up to date."""
    prepare_folder(path.parent)
    try:
        with _one_opener(path):
            return _opened(path)
    except (sqlite3.Error, OSError) as error:
        raise ConfigurationError(
            f"The state file cannot be opened: {error}.",
            where=str(path),
            hint="Make the file and its folder writable, free some disk space, or choose another --project.",
        ) from error


def _opened(path: Path) -> Database:
    try:
        return _checked(path)
    except sqlite3.DatabaseError as error:
        if not _is_damage(error):
            raise
        aside = set_aside(path)
        logger.warning("%s is damaged (%s). It was set aside as %s, and a new one begun.", path, error, aside.name)
        return _checked(path)


def _checked(path: Path) -> Database:
    os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    database = Database(path)
    try:
        connection = database._own_connection()  # pyright: ignore[reportPrivateUsage] - same file
        if path.stat().st_size <= _CHECKED_BYTES:
            _quick_check(connection)
        migrate(connection, str(path))
    except BaseException:
        database.close()
        raise
    return database


def _quick_check(connection: sqlite3.Connection) -> None:
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise sqlite3.DatabaseError(f"malformed: {found}")


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        if path.stat().st_size == 0:
            # Only a file that is made now takes it: what is deleted can be given back to the disk later.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA journal_size_limit = {_KEPT_LOG_BYTES}")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _begin_write(connection: sqlite3.Connection) -> None:
    """Begin to write as soon as nobody else does, within milliseconds also where the other one was killed."""
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
        # The whole change lies in the log, only unconfirmed: whoever opens the file next may find it there.
        raise ToolError(
            f"The disk failed while {path} was written ({error}), and nobody knows whether the change took effect.",
            code=ErrorCode.STATE_UNAVAILABLE,
            instruction="Tell the person to look at the disk. Then look at the state first, or send the same call with "
            "the same request_key.",
        ) from error


def set_aside(path: Path) -> Path:
    """Move a damaged file and its companions out of the way, under a name that tells when."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    aside = path.with_name(f"{path.name}.corrupt-{stamp}")
    for ending in ("", "-wal", "-shm"):
        part = path.with_name(path.name + ending)
        if part.exists():
            part.rename(aside.with_name(aside.name + ending))
    return aside


@contextmanager
def _one_opener(path: Path) -> Generator[None]:
    """Only one process at a time opens, migrates or sets aside."""
    lock = os.open(path.with_name(path.name + ".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT) or "malformed" in str(error)


@contextmanager
def _clear_errors(path: Path) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise _unavailable(error, path) from error


def _unavailable(error: sqlite3.Error, path: Path) -> ToolError:
    """SQLite's error as one that says what to do. The transaction was taken back before."""
    name = str(getattr(error, "sqlite_errorname", ""))
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        what, way_out = "is busy with other writers", "Send the same call again."
    elif name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        what, way_out = f"cannot be written ({error})", "Tell the person to free disk space, then send the call again."
    elif name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        what, way_out = f"is damaged ({error})", "Tell the person to restart the server, which sets the file aside."
    else:
        what, way_out = f"cannot be used ({error})", f"Tell the person to look at {path}."
    return ToolError(
        f"Nothing was changed: the state file {what}.", code=ErrorCode.STATE_UNAVAILABLE, instruction=way_out
    )
