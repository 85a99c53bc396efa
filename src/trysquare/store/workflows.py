"""Stored workflow runs of bots, on SQLite and PostgreSQL.

States, entries and answers are JSON. A run's row stays small; its history grows in a table of its own and is only
appended to. When a user edits the state file so that the history reads differently, a new generation of it begins and
the old one stays.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.store import audit
from trysquare.store.database import Statements, Transactions
from trysquare.store.idempotency import Claim, RecordedAnswer, claim, find_answer, finish


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredRun:
    name: str
    version: int
    generation: int
    entries: int
    """Number of lines of its current history."""
    state: str
    """JSON, not parsed here: a damaged record must not stop the other runs."""
    updated: str
    origin: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredEntry:
    """One line of a run's history, with the version of the run that added it."""

    seq: int
    version: int
    body: JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredEvent:
    """One change of a run, with the state after it."""

    version: int
    at: str
    kind: str
    principal: str
    generation: int
    entries: int
    state: str
    """JSON of the state, without the latest lines."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredBot:
    window: str
    """Path of its state file, relative to the project."""
    revision: int
    """Incremented with every change of any of its runs."""
    known: int | None
    """Revision of the state file last known to be on disk."""


class WorkflowRows:
    """Rows of one bot in one project, inside a transaction.

    In a state file the project has no name: the file belongs to one project and moves with its directory.
    """

    def __init__(self, statements: Statements, *, project: str = "", bot: str) -> None:
        self._statements = statements
        self._key = (project, bot)

    def bot(self) -> StoredBot | None:
        row = self._one("SELECT window_path, revision, known FROM workflow_bots WHERE project = ? AND bot = ?")
        return None if row is None else StoredBot(window=row[0], revision=row[1], known=row[2])

    def add_bot(self, window: str) -> None:
        self._run("INSERT INTO workflow_bots (project, bot, window_path, revision) VALUES (?, ?, ?, 0)", window)

    def windows(self) -> list[str]:
        """State files of all bots of this project."""
        query = "SELECT window_path FROM workflow_bots WHERE project = ? ORDER BY window_path"
        return [row[0] for row in self._statements.execute(query, self._key[:1]).fetchall()]

    def count_change(self) -> None:
        self._run("UPDATE workflow_bots SET revision = revision + 1 WHERE project = ? AND bot = ?")

    def run(self, name: str) -> StoredRun | None:
        row = self._one(f"{_RUNS} WHERE project = ? AND bot = ? AND run = ?", name)
        return None if row is None else _stored_run(row)

    def runs(self) -> list[StoredRun]:
        """All runs, by name."""
        return [_stored_run(row) for row in self._all(f"{_RUNS} WHERE project = ? AND bot = ? ORDER BY run")]

    def recent_runs(self, *, without: str, limit: int) -> list[StoredRun]:
        """The runs that changed last, newest first."""
        order = "AND run <> ? ORDER BY updated DESC, run DESC LIMIT ?"
        return [_stored_run(row) for row in self._all(f"{_RUNS} WHERE project = ? AND bot = ? {order}", without, limit)]

    def count_runs(self) -> int:
        row = self._one("SELECT count(*) FROM workflow_runs WHERE project = ? AND bot = ?")
        return 0 if row is None else int(row[0])

    def run_names(self, *, limit: int) -> list[str]:
        """Names of the first runs by name."""
        query = "SELECT run FROM workflow_runs WHERE project = ? AND bot = ? ORDER BY run LIMIT ?"
        return [row[0] for row in self._all(query, limit)]

    def names_like(self, name: str) -> list[str]:
        """Names of runs that are this one but for case."""
        query = "SELECT run FROM workflow_runs WHERE project = ? AND bot = ? AND lower(run) = ?"
        return [row[0] for row in self._all(query, name.lower())]

    def latest(self, run: str) -> dict[str, str]:
        """The latest lines of a run as JSON, by behavior."""
        query = "SELECT behavior, body FROM workflow_latest WHERE project = ? AND bot = ? AND run = ?"
        return dict(self._all(query, run))

    def put_latest(self, run: str, behavior: str, entries: list[JsonObject]) -> None:
        """Store the latest lines of one behavior of a run."""
        self._run(
            "INSERT INTO workflow_latest (project, bot, run, behavior, body) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (project, bot, run, behavior) DO UPDATE SET body = excluded.body",
            *(run, behavior, json.dumps(entries, separators=(",", ":"))),
        )

    def clear_latest(self, run: str) -> None:
        self._run("DELETE FROM workflow_latest WHERE project = ? AND bot = ? AND run = ?", run)

    def put_run(self, run: StoredRun, *, replaces: int | None) -> bool:
        """Store a run; False if the row does not have the version to replace."""
        values = (run.version, run.generation, run.entries, run.state, run.updated)
        if replaces is None:
            done = self._statements.execute(
                "INSERT INTO workflow_runs (project, bot, run, version, generation, entries, state, updated, origin)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (*self._key, run.name, *values, run.origin),
            )
        else:
            done = self._statements.execute(
                "UPDATE workflow_runs SET version = ?, generation = ?, entries = ?, state = ?, updated = ?"
                " WHERE project = ? AND bot = ? AND run = ? AND version = ?",
                (*values, *self._key, run.name, replaces),
            )
        return done.rowcount == 1

    def add_entries(self, run: StoredRun, first: int, entries: Iterable[JsonObject]) -> None:
        """Append lines to the history of a run, numbered from `first`."""
        for seq, body in enumerate(entries, start=first):
            self._run(
                "INSERT INTO workflow_entries (project, bot, run, generation, seq, version, body)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                *(run.name, run.generation, seq, run.version, _to_text(body)),
            )

    def copy_entries(self, source: StoredRun, target: StoredRun) -> None:
        """Copy the first lines of another run's history, as many as the row of the new run says."""
        given = (target.name, target.generation, target.version)
        taken = (source.name, source.generation, target.entries)
        self._statements.execute(
            "INSERT INTO workflow_entries (project, bot, run, generation, seq, version, body)"
            " SELECT project, bot, ?, ?, seq, ?, body FROM workflow_entries"
            " WHERE project = ? AND bot = ? AND run = ? AND generation = ? AND seq <= ?",
            (*given, *self._key, *taken),
        )

    def entries(
        self, run: str, generation: int, *, after: int = 0, until: int | None = None, limit: int | None = None
    ) -> list[StoredEntry]:
        """Lines of a generation of a run's history, in order."""
        rows = self._all(
            "SELECT seq, version, body FROM workflow_entries WHERE project = ? AND bot = ? AND run = ?"
            " AND generation = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
            *(run, generation, after),
            _MANY if until is None else until,
            _MANY if limit is None else limit,
        )
        return [
            StoredEntry(seq=seq, version=version, body=_read(run, body, f"line {seq} of its history"))
            for seq, version, body in rows
        ]

    def entries_until(self, run: str, generation: int, *, last: int, limit: int) -> list[StoredEntry]:
        """Lines of a generation of a run's history up to one, the latest first."""
        rows = self._all(
            "SELECT seq, version, body FROM workflow_entries WHERE project = ? AND bot = ? AND run = ?"
            " AND generation = ? AND seq <= ? ORDER BY seq DESC LIMIT ?",
            *(run, generation, last, limit),
        )
        return [
            StoredEntry(seq=seq, version=version, body=_read(run, body, f"line {seq} of its history"))
            for seq, version, body in rows
        ]

    def add_event(self, run: str, event: StoredEvent) -> None:
        self._run(
            "INSERT INTO workflow_events (project, bot, run, version, at, kind, principal, generation, entries, state)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(run, event.version, event.at, event.kind, event.principal, event.generation, event.entries),
            event.state,
        )

    def events(self, run: str, *, after: int = -1, limit: int = 100) -> list[StoredEvent]:
        """Changes of a run after a version, in order."""
        rows = self._all(f"{_EVENTS} AND version > ? ORDER BY version LIMIT ?", run, after, limit)
        return [_stored_event(row) for row in rows]

    def event_at(self, run: str, version: int) -> StoredEvent | None:
        """Last change of a run up to a version."""
        row = self._one(f"{_EVENTS} AND version <= ? ORDER BY version DESC LIMIT 1", run, version)
        return None if row is None else _stored_event(row)

    def notes(self, run: str) -> JsonObject:
        """Notes of a run: small values by name. Those of no run are left out where they are damaged."""
        rows = self._all("SELECT name, value FROM workflow_notes WHERE project = ? AND bot = ? AND run = ?", run)
        notes: JsonObject = {}
        for name, value in rows:
            try:
                notes[name] = _read(run, value, f"note `{name}`")
            except ToolError:
                if run:
                    raise
        return notes

    def put_note(self, run: str, name: str, value: Any) -> None:
        self._run(
            "INSERT INTO workflow_notes (project, bot, run, name, value) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (project, bot, run, name) DO UPDATE SET value = excluded.value",
            *(run, name, json.dumps(value)),
        )

    def export_revision(self, digest: str) -> int | None:
        """Revision of the state file with this digest, if known."""
        query = "SELECT revision FROM workflow_exports WHERE project = ? AND bot = ? AND digest = ?"
        row = self._one(query, digest)
        return None if row is None else row[0]

    def add_export(self, digest: str, revision: int) -> None:
        """Record the digest of a state file that is about to be written, or was just read."""
        self._run(
            "INSERT INTO workflow_exports (project, bot, digest, revision) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (project, bot, digest) DO UPDATE SET revision = excluded.revision",
            *(digest, revision),
        )

    def forget_window(self) -> None:
        """Record that no state file is on disk: it was deleted, or is about to be moved."""
        # Digests that another process may be writing stay.
        self._run(
            "DELETE FROM workflow_exports WHERE project = ? AND bot = ? AND revision <="
            " (SELECT known FROM workflow_bots WHERE project = workflow_exports.project AND bot = workflow_exports.bot)"
        )
        self._run("UPDATE workflow_bots SET known = NULL WHERE project = ? AND bot = ?")

    def know_export(self, revision: int) -> None:
        """Record that the file of a revision is on disk, and forget earlier ones."""
        self._statements.execute(
            "UPDATE workflow_bots SET known = ? WHERE project = ? AND bot = ? AND (known IS NULL OR known <= ?)",
            (revision, *self._key, revision),
        )
        self._run("DELETE FROM workflow_exports WHERE project = ? AND bot = ? AND revision < ?", revision)

    def claim(self, key: str, *, tool: str, principal: str, digest: str) -> Claim | RecordedAnswer:
        """Claim a request key, or return its stored answer."""
        scope = self._scope(tool)
        return claim(self._statements, key, tool=scope, principal=principal, digest=digest, now=time.time())

    def find_answer(self, key: str, *, tool: str, principal: str, digest: str) -> RecordedAnswer | None:
        scope = self._scope(tool)
        return find_answer(self._statements, key, tool=scope, principal=principal, digest=digest, now=time.time())

    def finish(self, claimed: Claim, answer: JsonObject) -> None:
        finish(self._statements, claimed, answer, now=time.time())

    def audit(self, *, kind: str, principal: str, body: JsonObject) -> None:
        audit.append(self._statements, kind=kind, principal=principal, body={"bot": self._key[1], **body})

    def audited(self, kind: str) -> list[JsonObject]:
        """Audit rows of this bot of one kind, in order."""
        found = self._statements.execute("SELECT body FROM audit WHERE kind = ? ORDER BY seq", (kind,)).fetchall()
        bodies = (json.loads(text) for (text,) in found)
        return [body for body in bodies if body.get("bot") == self._key[1]]

    def _scope(self, tool: str) -> str:
        return f"{self._key[0]}:{tool}" if self._key[0] else tool

    def _run(self, sql: str, *parameters: Any) -> None:
        self._statements.execute(sql, (*self._key, *parameters))

    def _one(self, sql: str, *parameters: Any) -> Any:
        return self._statements.execute(sql, (*self._key, *parameters)).fetchone()

    def _all(self, sql: str, *parameters: Any) -> list[Any]:
        return self._statements.execute(sql, (*self._key, *parameters)).fetchall()


class WorkflowStore(Protocol):
    """Database of the runs of one project."""

    @property
    def two_way(self) -> bool:
        """Whether edits of the state file are read; not with a database that machines share."""
        ...

    def read(self, bot: str) -> AbstractContextManager[WorkflowRows]:
        """Open a consistent snapshot of a bot's rows."""
        ...

    def write(self, bot: str, *, durable: bool = True) -> AbstractContextManager[WorkflowRows]:
        """Open a transaction that excludes others on the same bot.

        Without `durable` it survives a crash of the process, but perhaps not of the machine.
        """
        ...

    def verify(self, bot: str) -> audit.AuditReport: ...

    def close(self) -> None: ...


class SqliteWorkflows:
    """Runs of one project in its state file."""

    two_way = True

    def __init__(self, database: Transactions, *, on_close: Callable[[], None] | None = None) -> None:
        self._database = database
        self._on_close = on_close

    @contextmanager
    def read(self, bot: str) -> Generator[WorkflowRows]:
        with self._database.read() as connection:
            yield WorkflowRows(connection, bot=bot)

    @contextmanager
    def write(self, bot: str, *, durable: bool = True) -> Generator[WorkflowRows]:
        with self._database.write(durable=durable) as connection:
            yield WorkflowRows(connection, bot=bot)

    def verify(self, bot: str) -> audit.AuditReport:
        with self._database.read() as connection:
            return audit.verify(connection)

    def close(self) -> None:
        if self._on_close is not None:
            self._on_close()


_MANY = 2**53
_RUNS = "SELECT run, version, generation, entries, state, updated, origin FROM workflow_runs"
_EVENTS = (
    "SELECT version, at, kind, principal, generation, entries, state FROM workflow_events"
    " WHERE project = ? AND bot = ? AND run = ?"
)


def _read(run: str, text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise ToolError(
            f"A stored record of run `{run}` is damaged: {what}. Nothing was changed; other runs go on.",
            code=ErrorCode.STATE_UNAVAILABLE,
            instruction="Ask the user to start another run, or to restore the database from a backup.",
            fields={"run": run, "damaged": True},
        ) from None


def _stored_run(row: Any) -> StoredRun:
    name, version, generation, entries, state, updated, origin = row
    return StoredRun(
        name=name, version=version, generation=generation, entries=entries, state=state, updated=updated,
        origin=origin,
    )  # fmt: skip


def _stored_event(row: Any) -> StoredEvent:
    version, at, kind, principal, generation, entries, state = row
    return StoredEvent(
        version=version, at=at, kind=kind, principal=principal, generation=generation, entries=entries,
        state=state,
    )  # fmt: skip


def _to_text(value: JsonObject) -> str:
    return json.dumps(value, separators=(",", ":"))
