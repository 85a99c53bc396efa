"""Workflow runs on PostgreSQL, for servers on several machines.

One transaction at a time works on a bot of a project: it holds an advisory lock on the two until it ends, and every
update of a run still names the version that it replaces. Tables are created at first use.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from trysquare.core.json import JsonObject
from trysquare.store import audit
from trysquare.store.location import find_project_id, get_project_id
from trysquare.store.migrations import IDEMPOTENCY, LATEST, WORKFLOW
from trysquare.store.postgres import LOCK, READ, PostgresDatabase
from trysquare.store.workflows import WorkflowRows

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
        self._database = PostgresDatabase(url, _TABLES, "workflow_latest")
        self._folder = project
        self._id = project_id

    @contextmanager
    def read(self, bot: str) -> Generator[WorkflowRows]:
        with self._database.transaction(READ) as statements:
            yield _Rows(statements, project=self._known_id(), bot=bot)

    @contextmanager
    def write(self, bot: str, *, durable: bool = True) -> Generator[WorkflowRows]:
        project = self._id = self._id or get_project_id(self._folder)
        with self._database.transaction("BEGIN") as statements:
            statements.execute(LOCK, (f"trysquare:{project}:{bot}",))
            yield _Rows(statements, project=project, bot=bot)

    def verify(self, bot: str) -> audit.AuditReport:
        key = (self._known_id(), bot)
        with self._database.transaction(READ) as statements:
            head = statements.execute(_HEAD, key).fetchone()
            rows = statements.execute(
                "SELECT seq, at, kind, principal, body, previous, hash FROM workflow_audit"
                " WHERE project = ? AND bot = ? ORDER BY seq",
                key,
            )
            return audit.verified(rows.fetchall(), head)

    def close(self) -> None:
        self._database.close()

    def _known_id(self) -> str:
        """Id of the project; one that has none yet has no rows."""
        return self._id or find_project_id(self._folder) or ""


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
