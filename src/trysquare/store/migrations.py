"""Migrations of the state file, each from one version of the tables to the next."""

from __future__ import annotations

import sqlite3

from trysquare.core.errors import ConfigurationError

IDEMPOTENCY = """
    CREATE TABLE idempotency (
        principal TEXT NOT NULL, tool TEXT NOT NULL, request_key TEXT NOT NULL, digest TEXT NOT NULL,
        claim TEXT NOT NULL, started REAL NOT NULL, expires REAL NOT NULL, result TEXT,
        PRIMARY KEY (principal, tool, request_key)
    )
    """
_FIRST = (
    """
    CREATE TABLE audit (
        seq INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, principal TEXT NOT NULL, body TEXT NOT NULL,
        previous TEXT NOT NULL, hash TEXT NOT NULL
    )
    """,
    # One row with the length of the chain, so that rows cut from its end are missed.
    "CREATE TABLE audit_head (id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL, hash TEXT NOT NULL)",
    """
    CREATE TABLE approvals (
        code TEXT PRIMARY KEY, tool TEXT NOT NULL, principal TEXT NOT NULL, digest TEXT NOT NULL,
        question TEXT NOT NULL, arguments TEXT NOT NULL, remember_for REAL,
        state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'refused', 'used')), created REAL NOT NULL,
        expires REAL NOT NULL
    )
    """,
    "CREATE INDEX approvals_by_call ON approvals (principal, tool, digest)",
    "CREATE TABLE approval_misses (at REAL NOT NULL)",
    """
    CREATE TABLE receipts (
        id INTEGER PRIMARY KEY, tool TEXT NOT NULL, principal TEXT NOT NULL, digest TEXT NOT NULL,
        question TEXT NOT NULL, approved INTEGER NOT NULL, by TEXT NOT NULL, how TEXT NOT NULL, at TEXT NOT NULL,
        remembered_until REAL NOT NULL DEFAULT 0
    )
    """,
    "CREATE INDEX receipts_by_call ON receipts (principal, tool, digest)",
    IDEMPOTENCY,
    """
    CREATE TABLE tokens (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, scopes TEXT, created TEXT NOT NULL,
        expires REAL, last_used TEXT, revoked TEXT
    )
    """,
    # A revoked token stays as a trace, and its name is free again.
    "CREATE UNIQUE INDEX tokens_by_name ON tokens (name) WHERE revoked IS NULL",
    """
    CREATE TABLE handles (
        handle TEXT PRIMARY KEY, principal TEXT NOT NULL, value TEXT NOT NULL, expires REAL NOT NULL
    )
    """,
    "CREATE INDEX handles_by_end ON handles (expires)",
)

_GUIDE = (
    """
    CREATE TABLE flags (
        scope TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, updated TEXT NOT NULL, by TEXT NOT NULL,
        PRIMARY KEY (scope, name)
    )
    """,
    """
    CREATE TABLE documents (
        project TEXT NOT NULL, category TEXT NOT NULL, name TEXT NOT NULL COLLATE NOCASE, text TEXT NOT NULL,
        metadata TEXT NOT NULL, updated TEXT NOT NULL, by TEXT NOT NULL, PRIMARY KEY (project, category, name)
    )
    """,
    # Counts every change of the documents, so that a reader can tell whether its copy is current.
    "CREATE TABLE document_changes (project TEXT PRIMARY KEY, count INTEGER NOT NULL)",
    """
    CREATE TABLE projects (
        name TEXT PRIMARY KEY COLLATE NOCASE, root TEXT NOT NULL, folders TEXT NOT NULL, updated TEXT NOT NULL
    )
    """,
)

WORKFLOW = (
    # `project` is empty in the state file of a project; in a shared database it is the id of the project.
    """
    CREATE TABLE workflow_bots (
        project TEXT NOT NULL, bot TEXT NOT NULL, window_path TEXT NOT NULL, revision BIGINT NOT NULL, known BIGINT,
        PRIMARY KEY (project, bot)
    )
    """,
    """
    CREATE TABLE workflow_runs (
        project TEXT NOT NULL, bot TEXT NOT NULL, run TEXT NOT NULL, version BIGINT NOT NULL,
        generation BIGINT NOT NULL, entries BIGINT NOT NULL, state TEXT NOT NULL, updated TEXT NOT NULL,
        origin TEXT NOT NULL, PRIMARY KEY (project, bot, run)
    )
    """,
    """
    CREATE TABLE workflow_entries (
        project TEXT NOT NULL, bot TEXT NOT NULL, run TEXT NOT NULL, generation BIGINT NOT NULL, seq BIGINT NOT NULL,
        version BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (project, bot, run, generation, seq)
    )
    """,
    """
    CREATE TABLE workflow_events (
        project TEXT NOT NULL, bot TEXT NOT NULL, run TEXT NOT NULL, version BIGINT NOT NULL, at TEXT NOT NULL,
        kind TEXT NOT NULL, principal TEXT NOT NULL, generation BIGINT NOT NULL, entries BIGINT NOT NULL,
        state TEXT NOT NULL, PRIMARY KEY (project, bot, run, version)
    )
    """,
    """
    CREATE TABLE workflow_notes (
        project TEXT NOT NULL, bot TEXT NOT NULL, run TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
        PRIMARY KEY (project, bot, run, name)
    )
    """,
    # Digests of state files written, or about to be written, since the last one known to be on disk.
    """
    CREATE TABLE workflow_exports (
        project TEXT NOT NULL, bot TEXT NOT NULL, digest TEXT NOT NULL, revision BIGINT NOT NULL,
        PRIMARY KEY (project, bot, digest)
    )
    """,
)
"""Tables of workflows, the same on SQLite and PostgreSQL."""

_GATEWAY = (
    # Approved command line of a server behind the gateway.
    """
    CREATE TABLE command_pins (
        file TEXT NOT NULL, server TEXT NOT NULL, digest TEXT NOT NULL, shown TEXT NOT NULL, pinned TEXT NOT NULL,
        by TEXT NOT NULL, PRIMARY KEY (file, server)
    )
    """,
    """
    CREATE TABLE gateway_servers (
        file TEXT NOT NULL, server TEXT NOT NULL, tools TEXT, held TEXT NOT NULL, gone TEXT NOT NULL,
        offers TEXT NOT NULL, updated TEXT NOT NULL, PRIMARY KEY (file, server)
    )
    """,
    # Counts every change of the servers' definitions, so that a running gateway notices an approval.
    "CREATE TABLE gateway_changes (id INTEGER PRIMARY KEY CHECK (id = 1), count INTEGER NOT NULL)",
    """
    CREATE TABLE gateway_calls (
        id TEXT PRIMARY KEY, owner TEXT NOT NULL, started REAL NOT NULL, ended REAL, principal TEXT NOT NULL,
        server TEXT NOT NULL, tool TEXT NOT NULL, arguments TEXT NOT NULL, digest TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('sending', 'not_sent', 'sent_unknown', 'done')), is_error INTEGER,
        result_digest TEXT, result_bytes INTEGER, note TEXT, request_key TEXT, result BLOB
    )
    """,
    "CREATE INDEX gateway_calls_under_way ON gateway_calls (owner) WHERE state = 'sending'",
    "CREATE UNIQUE INDEX gateway_calls_by_key ON gateway_calls (principal, server, tool, request_key)"
    " WHERE request_key IS NOT NULL",
)

_BOUNDS_AND_ORIGINS = (
    # Existing rows have no known size and expire within the hour.
    "DELETE FROM handles",
    "ALTER TABLE handles ADD COLUMN size INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX handles_by_owner ON handles (principal, size)",
    # Who accepted a document that an agent wrote, and the digest of what they saw. Writing it again clears them.
    "ALTER TABLE documents ADD COLUMN accepted_by TEXT",
    "ALTER TABLE documents ADD COLUMN accepted_at TEXT",
    "ALTER TABLE documents ADD COLUMN accepted_digest TEXT",
)

_PRESTART = (
    # When a session's first call last went to the server, so that the next session can start it ahead.
    "ALTER TABLE command_pins ADD COLUMN first_called REAL",
)

_CHOICES = (
    "CREATE TABLE search_choices (term TEXT NOT NULL, tool TEXT NOT NULL, count INTEGER NOT NULL, at REAL NOT NULL,"
    " PRIMARY KEY (term, tool))",
)
LATEST = (
    # The latest line of each action, one row for each behavior, so that a close writes no more than its behavior.
    """
    CREATE TABLE workflow_latest (
        project TEXT NOT NULL, bot TEXT NOT NULL, run TEXT NOT NULL, behavior TEXT NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (project, bot, run, behavior)
    )
    """,
    "CREATE INDEX workflow_runs_by_update ON workflow_runs (project, bot, updated, run)",
    # Names that differ only in case would share files on some file systems.
    "CREATE INDEX workflow_runs_by_name ON workflow_runs (project, bot, lower(run))",
    "CREATE INDEX idempotency_by_expiry ON idempotency (expires)",
)
"""Bounds what a close reads and writes, the same on SQLite and PostgreSQL."""
_DECISIONS = (
    # The program that asks, as a page shows it, and what the human wrote with the decision.
    "ALTER TABLE approvals ADD COLUMN client TEXT",
    "ALTER TABLE approvals ADD COLUMN reason TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE receipts ADD COLUMN reason TEXT NOT NULL DEFAULT ''",
)
_SIGNATURES = (
    # What an approver signed. The columns without a signature are what a terminal shows and signs.
    "ALTER TABLE approvals ADD COLUMN gate INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE approvals ADD COLUMN signs INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE approvals ADD COLUMN statement TEXT",
    "ALTER TABLE approvals ADD COLUMN signature TEXT",
    "ALTER TABLE receipts ADD COLUMN statement TEXT",
    "ALTER TABLE receipts ADD COLUMN signature TEXT",
)
_TASKS = (
    # `owner` is the process that has the task; `started` whether its function was begun and has not ended.
    """
    CREATE TABLE tasks (
        id TEXT PRIMARY KEY, principal TEXT NOT NULL, tool TEXT NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('working', 'input_required', 'completed', 'failed', 'cancelled')),
        message TEXT, version INTEGER NOT NULL, created REAL NOT NULL, updated REAL NOT NULL, ttl REAL NOT NULL,
        expires REAL NOT NULL, poll REAL NOT NULL, request TEXT NOT NULL, state TEXT, questions TEXT NOT NULL,
        responses TEXT NOT NULL, outcome TEXT, repeats INTEGER NOT NULL, owner TEXT, started INTEGER NOT NULL,
        cancelling INTEGER NOT NULL
    )
    """,
    "CREATE INDEX tasks_by_principal ON tasks (principal, status)",
    "CREATE INDEX tasks_by_expiry ON tasks (expires)",
    "CREATE INDEX tasks_under_way ON tasks (owner) WHERE status = 'working'",
)
_CHECKPOINTS = (
    # What the function of a task goes on from, after its process died.
    "ALTER TABLE tasks ADD COLUMN checkpoints TEXT NOT NULL DEFAULT '{}'",
)
_JOBS_OF_CALLS = (
    # The job of the agent that makes a call, for whoever decides on it.
    "ALTER TABLE approvals ADD COLUMN job TEXT",
)
TASKS = (
    _TASKS[0].replace("cancelling INTEGER NOT NULL", "cancelling INTEGER NOT NULL, checkpoints TEXT NOT NULL"),
    *_TASKS[1:],
)
"""The tables of tasks as they are now, for PostgreSQL."""
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    _FIRST, _GUIDE, WORKFLOW, _GATEWAY, _BOUNDS_AND_ORIGINS, _PRESTART, _CHOICES, LATEST, _DECISIONS,
    _SIGNATURES, _TASKS, _CHECKPOINTS, _JOBS_OF_CALLS,
)  # fmt: skip
"""Never change a released migration: add another."""


def migrate(connection: sqlite3.Connection, where: str) -> None:
    """Apply the missing migrations in one transaction; several processes may try at once."""
    if _version(connection, where) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Read again inside the transaction: another process may have been faster.
        for statements in MIGRATIONS[_version(connection, where) :]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _version(connection: sqlite3.Connection, where: str) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > len(MIGRATIONS):
        raise ConfigurationError(
            f"The state file has version {version}; this Trysquare supports versions up to {len(MIGRATIONS)}.",
            where=where,
            hint="Upgrade Trysquare, or choose another project directory with --project.",
        )
    return version
