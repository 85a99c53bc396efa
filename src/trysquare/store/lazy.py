"""State files that are opened at first use and created at the first write."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.store.database import Database, open_database
from trysquare.store.location import project_state, user_state
from trysquare.store.migrations import migrate


class LazyDatabase:
    """A state file by its path. Reading one that does not exist creates nothing on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._database: Database | None = None

    @contextmanager
    def read(self) -> Generator[sqlite3.Connection]:
        """Open a snapshot of the file, or of empty tables while there is no file."""
        # Checked each time: another process may have created the file.
        if self._database is None and not os.path.exists(self.path):
            with _empty_tables() as connection:
                yield connection
            return
        with self.database().read() as connection:
            yield connection

    @contextmanager
    def write(self, *, durable: bool = True) -> Generator[sqlite3.Connection]:
        """Open a transaction on the file, creating it if needed."""
        with self.database().write(durable=durable) as connection:
            yield connection

    def close(self) -> None:
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    def database(self) -> Database:
        """Open the file for a call that cannot do without it."""
        try:
            return self.open()
        except ConfigurationError as error:
            raise ToolError(
                f"The state file is unavailable: {error}",
                code=ErrorCode.STATE_UNAVAILABLE,
                instruction="Ask the user to fix it, then send the same call again.",
            ) from error

    def open(self) -> Database:
        """Open the file. Raises `ConfigurationError`."""
        with self._lock:
            if self._database is None:
                self._database = open_database(self.path)
            return self._database


class LazyDatabases:
    """State files by path, each opened once."""

    def __init__(self) -> None:
        self._by_path: dict[Path, LazyDatabase] = {}

    def of_project(self, root: Path) -> LazyDatabase:
        """State file of a project, with its flags and stored documents."""
        return self._find(project_state(root))

    def of_user(self) -> LazyDatabase:
        """State file of the user, for what belongs to no project."""
        return self._find(user_state())

    def close(self) -> None:
        for database in self._by_path.values():
            database.close()

    def _find(self, path: Path) -> LazyDatabase:
        return self._by_path.setdefault(path, LazyDatabase(path))


_EMPTY: list[sqlite3.Connection] = []
_EMPTY_LOCK = threading.RLock()


@contextmanager
def _empty_tables() -> Generator[sqlite3.Connection]:
    """Empty tables in memory, created once per process."""
    with _EMPTY_LOCK:
        if not _EMPTY:
            created = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            migrate(created, ":memory:")
            created.execute("PRAGMA query_only = ON")
            _EMPTY.append(created)
        yield _EMPTY[0]
