"""Points at which a call can be made to end: before and after every write that it makes."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trysquare.bots.window import ProjectWindow
from trysquare.files.sealed_folder import Pieces, SealedFolder
from trysquare.store.lazy import LazyDatabase


class Crash(BaseException):
    """The process ends here. Nothing in the program catches it."""


class Faults:
    """Counts the points that are passed, and lets the call end at one of them, or the disk fail there."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self._left: int | None = None
        self._kind = "crash"

    def arm(self, points: int, kind: str = "crash") -> None:
        """Fail at the point after so many others."""
        self._left, self._kind, self.passed = points, kind, []

    def disarm(self) -> bool:
        """Stop failing; whether it did."""
        failed, self._left = self._left == -1, None
        return failed

    def point(self, name: str, *, disk: bool = False) -> None:
        """A place where the call may end; at some of them the disk may fail instead."""
        self.passed.append(name)
        if self._left is None or self._left < 0 or (self._kind != "crash" and not disk):
            return
        if self._left > 0:
            self._left -= 1
            return
        self._left = -1
        if self._kind == "crash":
            raise Crash(name)
        if name.startswith("file"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise sqlite3.OperationalError("database or disk is full")


class _Connection:
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
            yield _Connection(connection, self._faults)
            self._faults.point("before commit", disk=True)
        self._faults.point("after commit")

    def close(self) -> None:
        self.database.close()


class FaultyFolder(SealedFolder):
    """A folder whose writes can be made to fail, also half-way."""

    def __init__(self, root: Path, faults: Faults) -> None:
        super().__init__(root)
        self._faults = faults

    def write_bytes(
        self, path: str, data: bytes | Pieces, *, mode: int = 0o644, modified_ns: int | None = None
    ) -> None:
        self._faults.point("file before write", disk=True)
        half = self.root / os.path.dirname(path) / f".{os.path.basename(path)}.half.tmp"
        whole = data if isinstance(data, bytes) else b"".join(data)
        half.write_bytes(whole[: len(whole) // 2])
        self._faults.point("file half written", disk=True)
        half.unlink()
        super().write_bytes(path, data, mode=mode, modified_ns=modified_ns)
        self._faults.point("file after write")


class FaultyWindow(ProjectWindow):
    """A window whose file operations can be made to fail."""

    def __init__(self, project: Path, bot: str, faults: Faults) -> None:
        super().__init__(project, bot, open_folder=lambda root: FaultyFolder(root, faults))
        self._faults = faults

    def set_aside(self, path: str) -> str:
        self._faults.point("file before set aside", disk=True)
        name = super().set_aside(path)
        self._faults.point("file after set aside")
        return name
