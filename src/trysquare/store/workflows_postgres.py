"""Workflow runs on PostgreSQL, for servers on several machines.

One transaction at a time works on a bot of a project: it holds an advisory lock on the two until it ends, and every
update of a run still names the version that it replaces. Tables are created at first use.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.store import audit
from trysquare.store.database import Rows
from trysquare.store.location import find_project_id, get_project_id
from trysquare.store.migrations import IDEMPOTENCY, LATEST, WORKFLOW
from trysquare.store.workflows import WorkflowRows

try:
    import psycopg
except ImportError as missing:
    raise ConfigurationError(
        "State on PostgreSQL needs the package psycopg, which is not installed.",
        hint="Install it with: pip install 'trysquare[postgres]'",
    ) from missing

CONNECT_SECONDS = 10
LOCK_SECONDS = 10

_TABLES = (
    *WORKFLOW,
    IDEMPOTENCY.replace("REAL", "DOUBLE PRECISION"),
    # A chain for each bot of a project: one for all of them would make every writer wait for every other.
    """
    CREATE TABLE workflow_audit (
        project TEXT NOT NULL, bot TEXT NOT NULL, seq BIGINT NOT NULL, at TEXT NOT NULL, kind TEXT NOT NULL,
        principal TEXT NOT NULL, body TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL,
        PRIMARY KEY (project, bot, seq)
    )
    """,
    """
    CREATE TABLE workflow_audit_head (
        project TEXT NOT NULL, bot TEXT NOT NULL, seq BIGINT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (project, bot)
    )
    """,
    *LATEST,
)


class PostgresWorkflows:
    """Runs of one project in a database that projects and machines may share."""

    two_way = False

    def __init__(self, url: str, project: Path, *, project_id: str | None = None) -> None:
        self._url = url
        self._folder = project
        self._id = project_id
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    @contextmanager
    def read(self, bot: str) -> Generator[WorkflowRows]:
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as statements:
            yield _Rows(statements, project=self._known_id(), bot=bot)

    @contextmanager
    def write(self, bot: str, *, durable: bool = True) -> Generator[WorkflowRows]:
        project = self._id = self._id or get_project_id(self._folder)
        with self._transaction("BEGIN") as statements:
            statements.execute("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", (f"trysquare:{project}:{bot}",))
            yield _Rows(statements, project=project, bot=bot)

    def verify(self, bot: str) -> audit.AuditReport:
        key = (self._known_id(), bot)
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as statements:
            head = statements.execute(_HEAD, key).fetchone()
            rows = statements.execute(
                "SELECT seq, at, kind, principal, body, previous, hash FROM workflow_audit"
                " WHERE project = ? AND bot = ? ORDER BY seq",
                key,
            )
            return audit.verified(rows.fetchall(), head)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _known_id(self) -> str:
        """Id of the project; one that has none yet has no rows."""
        return self._id or find_project_id(self._folder) or ""

    @contextmanager
    def _transaction(self, beginning: str) -> Generator[_Statements]:
        with self._lock:
            connection = self._connected()
            statements = _Statements(connection)
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

    def _connected(self) -> psycopg.Connection[tuple[Any, ...]]:
        # A forked connection belongs to the parent: the child opens its own.
        if self._connection is None or self._connection.closed or self._process != os.getpid():
            self._process = os.getpid()
            self._connection = _connect(self._url)
        return self._connection


class _Statements:
    """Translate `?` parameters for psycopg."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Rows:
        return self._connection.execute(sql.replace("?", "%s").encode("utf-8"), parameters or None)


def _connect(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    try:
        connection = psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_SECONDS)
    except psycopg.Error as error:
        raise ToolError(
            f"Nothing was changed: cannot connect to the PostgreSQL database of the state ({_line(error)}).",
            code=ErrorCode.STATE_UNAVAILABLE,
            instruction="Ask the user to check the database and the setting `database`.",
        ) from error
    try:
        connection.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'".encode())
        _make_tables(_Statements(connection))
    except psycopg.Error as error:
        connection.close()
        raise _unavailable(error, in_doubt=False) from error
    return connection


def _make_tables(statements: _Statements) -> None:
    if statements.execute("SELECT to_regclass('workflow_latest')").fetchone()[0] is not None:
        return
    statements.execute("BEGIN")
    # Concurrent CREATE TABLE IF NOT EXISTS can fail, so one process at a time.
    statements.execute("SELECT pg_advisory_xact_lock(hashtextextended('trysquare:tables', 0))")
    for statement in _TABLES:
        kind = "TABLE" if "CREATE TABLE" in statement else "INDEX"
        statements.execute(statement.replace(f"CREATE {kind}", f"CREATE {kind} IF NOT EXISTS"))
    statements.execute("COMMIT")


_HEAD = "SELECT seq, hash FROM workflow_audit_head WHERE project = ? AND bot = ?"


class _Rows(WorkflowRows):
    """Rows with an audit log for each bot."""

    def audit(self, *, kind: str, principal: str, body: JsonObject) -> None:
        body = {"bot": self._key[1], **body}
        row = audit.next_row(self._one(_HEAD), kind=kind, principal=principal, body=body)
        self._run(
            "INSERT INTO workflow_audit (project, bot, seq, at, kind, principal, body, previous, hash)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *row,
        )
        self._run(
            "INSERT INTO workflow_audit_head (project, bot, seq, hash) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (project, bot) DO UPDATE SET seq = excluded.seq, hash = excluded.hash",
            *(row[0], row[-1]),
        )

    def audited(self, kind: str) -> list[JsonObject]:
        query = "SELECT body FROM workflow_audit WHERE project = ? AND bot = ? AND kind = ? ORDER BY seq"
        return [json.loads(text) for (text,) in self._all(query, kind)]


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
