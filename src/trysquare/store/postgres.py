"""PostgreSQL databases that projects and machines may share: one connection, transactions, tables at first use."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.store.database import Rows

try:
    import psycopg
except ImportError as missing:
    raise ConfigurationError(
        "State on PostgreSQL needs the package psycopg, which is not installed.",
        hint="Install it with: pip install 'trysquare[postgres]'",
    ) from missing

CONNECT_SECONDS = 10
LOCK_SECONDS = 10
READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))"
"""Held until the transaction ends; waited for at most `LOCK_SECONDS`."""


class PostgresStatements:
    """Translate `?` parameters for psycopg."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Rows:
        return self._connection.execute(sql.replace("?", "%s").encode("utf-8"), parameters or None)


class PostgresDatabase:
    """One connection to a database, opened at first use and again after it was lost. `tables` makes what is missing.

    The last of the tables tells whether they are there.
    """

    def __init__(self, url: str, tables: Sequence[str], last: str) -> None:
        self._url = url
        self._tables, self._last = tables, last
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    @contextmanager
    def transaction(self, beginning: str) -> Generator[PostgresStatements]:
        """Open a transaction that is committed at the end of the block, or rolled back if the block raises."""
        with self._lock:
            connection = self._connected()
            statements = PostgresStatements(connection)
            ending = False
            try:
                statements.execute(beginning)
                yield statements
                ending = True
                statements.execute("COMMIT")
            except psycopg.Error as error:
                raise _unavailable(error, in_doubt=ending and connection.broken) from error
            finally:
                if connection.closed or connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                    try:
                        connection.rollback()
                    except psycopg.Error:
                        connection.close()

    def is_connected(self) -> bool:
        """Whether its connection is the same as before, and works."""
        with self._lock:
            if self._connection is None or self._process != os.getpid():
                return False
            try:
                self._connection.execute("SELECT 1")
            except psycopg.Error:
                return False
            return True

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _connected(self) -> psycopg.Connection[tuple[Any, ...]]:
        # A forked connection belongs to the parent: the child opens its own.
        if self._connection is None or self._connection.closed or self._process != os.getpid():
            self._process = os.getpid()
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        try:
            connection = psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECT_SECONDS)
        except psycopg.Error as error:
            raise ToolError(
                f"Nothing was changed: cannot connect to the PostgreSQL database of the state ({_line(error)}).",
                code=ErrorCode.STATE_UNAVAILABLE,
                instruction="Ask the user to check the database and the setting `database`.",
            ) from error
        try:
            connection.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'".encode())
            self._make_tables(PostgresStatements(connection))
        except psycopg.Error as error:
            connection.close()
            raise _unavailable(error, in_doubt=False) from error
        return connection

    def _make_tables(self, statements: PostgresStatements) -> None:
        if statements.execute("SELECT to_regclass(?)", (self._last,)).fetchone()[0] is not None:
            return
        statements.execute("BEGIN")
        # Concurrent CREATE TABLE IF NOT EXISTS can fail, so one process at a time.
        statements.execute(LOCK, ("trysquare:tables",))
        for statement in self._tables:
            kind = "TABLE" if "CREATE TABLE" in statement else "INDEX"
            statements.execute(statement.replace(f"CREATE {kind}", f"CREATE {kind} IF NOT EXISTS"))
        statements.execute("COMMIT")


def _unavailable(error: psycopg.Error, *, in_doubt: bool) -> ToolError:
    if in_doubt:
        return ToolError(
            "The database connection was lost during the commit; the change may or may not have taken effect.",
            code=ErrorCode.STATE_UNAVAILABLE,
            instruction="Send the same call with the same request_key, or read the state first.",
        )
    return ToolError(
        f"Nothing was changed: the PostgreSQL database of the state failed ({_line(error)}).",
        code=ErrorCode.STATE_UNAVAILABLE,
        instruction="Send the same call again. If it fails again, ask the user to check the database.",
    )


def _line(error: psycopg.Error) -> str:
    return " ".join(str(error).split())[:200]
