"""LazyDatabase: a state file that is made at the first write. Until then, reading finds empty tables."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.store.database import Database, open_database
from trysquare.store.location import project_state, user_state
from trysquare.store.schema import migrate


class Transactions(Protocol):
    """What the tables' owners need of a database."""

    def read(self) -> AbstractContextManager[sqlite3.Connection]:
        """One consistent view for the length of the block."""
        ...

    def write(self, *, durable: bool = True) -> AbstractContextManager[sqlite3.Connection]:
        """A transaction that is committed whole, or not at all."""
        ...


class LazyDatabase:
    """A state file by its path. Whoever only reads leaves no trace on the disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._database: Database | None = None

    @contextmanager
    def read(self) -> Generator[sqlite3.Connection]:
        """The file's view, or that of empty tables where there is no file yet."""
        # Looked at each time: another process may have made the file meanwhile.
        if self._database is None and not os.path.exists(self.path):
            with _empty_tables() as connection:
                yield connection
            return
        with self._opened().read() as connection:
            yield connection

    @contextmanager
    def write(self, *, durable: bool = True) -> Generator[sqlite3.Connection]:
        """A transaction on the file, which is made if there is none."""
        with self._opened().write(durable=durable) as connection:
            yield connection

    def close(self) -> None:
        """Let go of the file, if it was opened."""
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    def _opened(self) -> Database:
        with self._lock:
            if self._database is None:
                self._database = self._open()
            return self._database

    def _open(self) -> Database:
        try:
            return open_database(self.path)
        except ConfigurationError as error:
            raise ToolError(
                f"The call needs its state file, which is not to be had: {error}",
                code=ErrorCode.STATE_UNAVAILABLE,
                instruction="Tell the person; once they mended it, the same call can be sent again.",
            ) from error


class LazyStates:
    """State files by path, each opened once, and made only when something is written."""

    def __init__(self) -> None:
        self._known: dict[Path, LazyDatabase] = {}

    def of_project(self, root: Path) -> LazyDatabase:
        """The state of a project, which holds its flags and stored documents."""
        return self._of(project_state(root))

    def of_user(self) -> LazyDatabase:
        """The state of the user, which holds what is not of one project."""
        return self._of(user_state())

    def close(self) -> None:
        """Let go of every file that was opened."""
        for database in self._known.values():
            database.close()

    def _of(self, path: Path) -> LazyDatabase:
        return self._known.setdefault(path, LazyDatabase(path))


_EMPTY: list[sqlite3.Connection] = []
_EMPTY_LOCK = threading.RLock()


@contextmanager
def _empty_tables() -> Generator[sqlite3.Connection]:
    """Tables without rows, in memory, made once for the process."""
    with _EMPTY_LOCK:
        if not _EMPTY:
            made = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            migrate(made, ":memory:")
            made.execute("PRAGMA query_only = ON")
            _EMPTY.append(made)
        yield _EMPTY[0]
