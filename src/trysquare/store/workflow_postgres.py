"""The same runs on PostgreSQL, for servers on several machines. The only file that knows psycopg.

One transaction at a time works on a bot of a project: it holds an advisory lock on the two until it ends, and every
update of a run still names the version that it replaces. Tables are made at the first use.
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
from trysquare.core.types import JsonObject
from trysquare.store import audit
from trysquare.store.project_id import known_id, made_id
from trysquare.store.schema import WORKFLOW
from trysquare.store.statements import Rows
from trysquare.store.workflow import WorkflowRows

try:
    import psycopg
except ImportError as missing:
    raise ConfigurationError(
        "State on PostgreSQL needs the package psycopg, which is not installed.",
        hint="Install it with: pip install 'trysquare[postgres]'",
    ) from missing

CONNECT_SECONDS = 10
LOCK_SECONDS = 10
_NO_PROJECT = ""
"""What no project is called: one that has no id yet has no rows."""

_TABLES = (
    *WORKFLOW,
    """
    CREATE TABLE idempotency (
        principal TEXT NOT NULL,
        tool TEXT NOT NULL,
        request_key TEXT NOT NULL,
        digest TEXT NOT NULL,
        claim TEXT NOT NULL,
        started DOUBLE PRECISION NOT NULL,
        expires DOUBLE PRECISION NOT NULL,
        result TEXT,
        PRIMARY KEY (principal, tool, request_key)
    )
    """,
    # A chain for each bot of a project: one for all of them would make every writer wait for every other.
    """
    CREATE TABLE workflow_audit (
        project TEXT NOT NULL,
        bot TEXT NOT NULL,
        seq BIGINT NOT NULL,
        at TEXT NOT NULL,
        kind TEXT NOT NULL,
        principal TEXT NOT NULL,
        body TEXT NOT NULL,
        previous TEXT NOT NULL,
        hash TEXT NOT NULL,
        PRIMARY KEY (project, bot, seq)
    )
    """,
    """
    CREATE TABLE workflow_audit_head (
        project TEXT NOT NULL,
        bot TEXT NOT NULL,
        seq BIGINT NOT NULL,
        hash TEXT NOT NULL,
        PRIMARY KEY (project, bot)
    )
    """,
)


class PostgresWorkflows:
    """The runs of one project in a database that many projects and machines may share."""

    two_way = False

    def __init__(self, url: str, project: Path, *, project_id: str | None = None) -> None:
        """`project_id` names the project; without it the id counts that is kept in its folder."""
        self._url = url
        self._folder = project
        self._id = project_id
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    @contextmanager
    def read(self, bot: str) -> Generator[WorkflowRows]:
        """One consistent view of a bot's rows."""
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as statements:
            yield self._rows(statements, self._id or known_id(self._folder) or _NO_PROJECT, bot)

    @contextmanager
    def write(self, bot: str, *, durable: bool = True) -> Generator[WorkflowRows]:
        """A transaction that excludes every other one on the same bot and project; always durable."""
        project = self._id = self._id or made_id(self._folder)
        with self._transaction("BEGIN") as statements:
            statements.execute("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", (f"trysquare:{project}:{bot}",))
            yield self._rows(statements, project, bot)

    def verify(self, bot: str) -> audit.AuditReport:
        """Check the bot's chain of hashes."""
        key = (self._id or known_id(self._folder) or _NO_PROJECT, bot)
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as statements:
            head = statements.execute(f"{_HEAD}", key).fetchone()
            rows = statements.execute(
                "SELECT seq, at, kind, principal, body, previous, hash FROM workflow_audit"
                " WHERE project = ? AND bot = ? ORDER BY seq",
                key,
            )
            return audit.verified(rows.fetchall(), head)

    def close(self) -> None:
        """Let go of the database."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _rows(self, statements: _Statements, project: str, bot: str) -> WorkflowRows:
        def append(*, kind: str, principal: str, body: JsonObject) -> int:
            return _append(statements, (project, bot), kind=kind, principal=principal, body=body)

        def read(kind: str) -> list[str]:
            query = "SELECT body FROM workflow_audit WHERE project = ? AND bot = ? AND kind = ? ORDER BY seq"
            return [row[0] for row in statements.execute(query, (project, bot, kind)).fetchall()]

        return WorkflowRows(statements, project=project, bot=bot, append_audit=append, read_audit=read)

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
                self._end(connection)

    def _end(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        """Leave no transaction open; a connection that cannot do so is given up."""
        if not connection.closed and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            return
        try:
            connection.rollback()
        except psycopg.Error:
            connection.close()

    def _connected(self) -> psycopg.Connection[tuple[Any, ...]]:
        # A connection that came through a fork belongs to the parent: the child opens its own.
        if self._connection is None or self._connection.closed or self._process != os.getpid():
            self._process = os.getpid()
            self._connection = _connect(self._url)
        return self._connection


class _Statements:
    """Statements with `?` for their parameters, as psycopg wants them."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Rows:
        """Run one statement."""
        return self._connection.execute(sql.replace("?", "%s").encode("utf-8"), parameters or None)


def _connect(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    try:
        connection = psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_SECONDS)
    except psycopg.Error as error:
        raise ToolError(
            f"Nothing was changed: the PostgreSQL database of the state cannot be reached ({_line(error)}).",
            code=ErrorCode.STATE_UNAVAILABLE,
            instruction="Tell the person to look at the database and at the setting `database`.",
        ) from error
    try:
        connection.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'".encode())
        _make_tables(_Statements(connection))
    except psycopg.Error as error:
        connection.close()
        raise _unavailable(error, in_doubt=False) from error
    return connection


def _make_tables(statements: _Statements) -> None:
    if statements.execute("SELECT to_regclass('workflow_audit_head')").fetchone()[0] is not None:
        return
    statements.execute("BEGIN")
    # Two processes that make the same table at once would get in each other's way.
    statements.execute("SELECT pg_advisory_xact_lock(hashtextextended('trysquare:tables', 0))")
    for table in _TABLES:
        statements.execute(table.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
    statements.execute("COMMIT")


_HEAD = "SELECT seq, hash FROM workflow_audit_head WHERE project = ? AND bot = ?"


def _append(statements: _Statements, key: tuple[str, str], *, kind: str, principal: str, body: JsonObject) -> int:
    head = statements.execute(_HEAD, key).fetchone()
    seq, previous = (head[0] + 1, head[1]) if head else (1, audit.GENESIS)
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    at = audit.utc_now()
    digest = audit.chained_hash(seq, at, kind, principal, text, previous)
    statements.execute(
        "INSERT INTO workflow_audit (project, bot, seq, at, kind, principal, body, previous, hash)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*key, seq, at, kind, principal, text, previous, digest),
    )
    statements.execute(
        "INSERT INTO workflow_audit_head (project, bot, seq, hash) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (project, bot) DO UPDATE SET seq = excluded.seq, hash = excluded.hash",
        (*key, seq, digest),
    )
    return seq


def _unavailable(error: psycopg.Error, *, in_doubt: bool) -> ToolError:
    if in_doubt:
        return ToolError(
            "The database went away while the change was committed, and nobody knows whether it took effect.",
            code=ErrorCode.STATE_UNAVAILABLE,
            instruction="Send the same call with the same request_key, or look at the state first.",
        )
    return ToolError(
        f"Nothing was changed: the PostgreSQL database of the state cannot be used ({_line(error)}).",
        code=ErrorCode.STATE_UNAVAILABLE,
        instruction="Send the same call again; if it fails again, tell the person to look at the database.",
    )


def _line(error: psycopg.Error) -> str:
    return " ".join(str(error).split())[:200]
