"""Points at which a call can be made to end: before and after every write that it makes."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from trysquare.bots.workflow.sync import StateFileSync
from trysquare.files import root as sealed_folder
from trysquare.files.root import Pieces
from trysquare.store import LazyDatabase

ONCE = ("crash", "full")


class Crash(BaseException):
    """The process ends here. Nothing in the program catches it."""


class Faults:
    """Counts the points that are passed, and lets the call end at one of them, or the disk fail there.

    `crash` ends the call, `full` fails one write, `filled` that one and all that come after it, and `shut` lets the
    state be stored and no file be written.
    """

    def __init__(self) -> None:
        self.passed: list[str] = []
        self._left: int | None = None
        self._kind = "crash"

    def arm(self, points: int, kind: str = "crash") -> None:
        """Fail at the point after so many others."""
        self._left, self._kind, self.passed = 0 if kind == "shut" else points, kind, []

    def disarm(self) -> bool:
        """Stop failing; whether it did."""
        failed, self._left = self._left == -1, None
        return failed

    def point(self, name: str, *, disk: bool = False) -> None:
        """A place where the call may end; at some of them the disk may fail instead."""
        self.passed.append(name)
        if self._left is None or (self._kind != "crash" and not disk):
            return
        if (self._kind == "shut" and not name.startswith("file")) or (self._left < 0 and self._kind in ONCE):
            return
        if self._left > 0:
            self._left -= 1
            return
        self._left = -1
        self._fail(name)

    def _fail(self, name: str) -> None:
        if self._kind == "crash":
            raise Crash(name)
        if name.startswith("file"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise sqlite3.OperationalError("database or disk is full")


class Connection:
    """A connection that passes a point before and after each statement that writes."""

    def __init__(self, connection: sqlite3.Connection, faults: Faults) -> None:
        self._connection = connection
        self._faults = faults

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
        word = sql.split(maxsplit=3)[:3]
        if word[0] not in ("INSERT", "UPDATE", "DELETE"):
            return self._connection.execute(sql, parameters)
        self._faults.point(f"before {' '.join(word)}", disk=True)
        cursor = self._connection.execute(sql, parameters)
        self._faults.point(f"after {' '.join(word)}")
        return cursor


class FaultyDatabase:
    """A state file whose writes can be made to fail."""

    def __init__(self, path: Path, faults: Faults) -> None:
        self.database = LazyDatabase(path)
        self._faults = faults

    @contextmanager
    def read(self) -> Generator[Any]:
        with self.database.read() as connection:
            yield connection

    @contextmanager
    def write(self, *, durable: bool = True) -> Generator[Any]:
        with self.database.write(durable=durable) as connection:
            yield Connection(connection, self._faults)
            self._faults.point("before commit", disk=True)
        self._faults.point("after commit")

    def close(self) -> None:
        self.database.close()


@contextmanager
def failing_files(faults: Faults) -> Generator[None]:
    """Let every file that the program writes or moves in a project pass the points, also half-way."""
    replace, set_aside = sealed_folder._replace, StateFileSync.quarantine  # pyright: ignore[reportPrivateUsage]

    def write(folder: int, name: str, data: bytes | Pieces, mode: int, modified_ns: int | None) -> None:
        faults.point("file before write", disk=True)
        half = f".{name}.half.tmp"
        with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=folder), "wb") as file:
            whole = data if isinstance(data, bytes) else b"".join(data)
            file.write(whole[: len(whole) // 2])
        faults.point("file half written", disk=True)
        os.unlink(half, dir_fd=folder)
        replace(folder, name, data, mode, modified_ns)
        faults.point("file after write")

    def move(window: StateFileSync, path: str) -> str:
        faults.point("file before set aside", disk=True)
        name = set_aside(window, path)
        faults.point("file after set aside")
        return name

    with mock.patch.object(sealed_folder, "_replace", write), mock.patch.object(StateFileSync, "quarantine", move):
        yield
