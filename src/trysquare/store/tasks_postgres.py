"""Tasks on PostgreSQL, for servers on several machines.

A process that runs tasks holds an advisory lock on its name, on a connection of its own: the database drops it with
the connection, so that the next process knows which tasks nobody runs any more. A process that lost that connection
and lives changes none of its former tasks: they have another owner then.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from trysquare.store.database import Statements
from trysquare.store.location import find_project_id, get_project_id
from trysquare.store.migrations import TASKS
from trysquare.store.postgres import LOCK, READ, PostgresDatabase

_HELD: Final = "SELECT pg_try_advisory_xact_lock_shared(hashtextextended(?, 1))"
_TABLES = tuple(statement.replace("REAL", "DOUBLE PRECISION") for statement in TASKS)


class PostgresTasks:
    """Tasks of one project in a database that projects and machines may share."""

    is_used = True

    def __init__(self, url: str, project: Path, *, project_id: str | None = None) -> None:
        self._url, self._folder, self._id = url, project, project_id
        self._database = PostgresDatabase(url, _TABLES, "tasks_under_way")
        self._session: PostgresDatabase | None = None
        """Holds the lock on the name of this process."""

    @property
    def scope(self) -> str:
        self._id = self._id or find_project_id(self._folder)
        # Without an id the project has no tasks yet, and must not see those of another one.
        return f"{self._id or secrets.token_hex(16)}:"

    @contextmanager
    def read(self) -> Generator[Statements]:
        with self._database.transaction(READ) as statements:
            yield statements

    @contextmanager
    def write(self, *, durable: bool = True) -> Generator[Statements]:
        """Open a transaction, the only one on the tasks of the project."""
        with self._database.transaction("BEGIN") as statements:
            if not durable:
                statements.execute("SET LOCAL synchronous_commit = off")
            statements.execute(LOCK, (f"trysquare:tasks:{self.scope}",))
            yield statements

    @contextmanager
    def holding(self) -> Generator[str]:
        """Hold the name of this process, on a connection that does nothing else."""
        self._id = self._id or get_project_id(self._folder)
        name = f"{self.scope}{os.getpid()}-{secrets.token_hex(8)}"
        self._session = PostgresDatabase(self._url, (), "tasks_under_way")
        try:
            with self._session.transaction("BEGIN") as statements:
                statements.execute("SELECT pg_advisory_lock(hashtextextended(?, 1))", (name,))
            yield name
        finally:
            self._session.close()
            self._session = None

    def is_held(self, owner: str) -> bool:
        with self._database.transaction("BEGIN") as statements:
            return not statements.execute(_HELD, (owner,)).fetchone()[0]

    def holds(self) -> bool:
        return self._session is not None and self._session.is_connected()

    def close(self) -> None:
        self._database.close()
