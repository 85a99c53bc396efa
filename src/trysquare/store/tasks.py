"""Tasks in the state file: what was called, what it asks, and how it ended."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

from trysquare.core.json import JsonObject
from trysquare.store.lazy import LazyDatabase
from trysquare.store.watchers import holding, is_held

TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]
FINAL: frozenset[TaskStatus] = frozenset({"completed", "failed", "cancelled"})
MOST_OPEN = 64
"""Tasks of one principal that have not ended."""
MOST_KEPT = 1_000
"""Tasks of one principal, with those whose results are kept."""
_FOLDER = "tasks"


@dataclass(frozen=True, kw_only=True, slots=True)
class NewTask:
    """A call that becomes a task."""

    id: str
    principal: str
    tool: str
    request: JsonObject
    """What the call needs to run in another process."""
    ttl: float
    poll: float
    repeats: bool
    """Whether the tool may run again, after its process died while it ran."""
    state: str | None = None
    """The questions that were answered before it became a task."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskRecord:
    """A task as it is stored. Times are seconds since 1970."""

    id: str
    principal: str
    tool: str
    status: TaskStatus
    message: str | None
    version: int
    """Counts its changes."""
    created: float
    updated: float
    ttl: float
    poll: float
    request: JsonObject
    state: str | None
    questions: JsonObject
    """What the client has to answer, by key."""
    responses: JsonObject
    """What the client has answered since the questions were asked."""
    outcome: JsonObject | None
    """The result of a completed task, the error of a failed one."""


_COLUMNS = tuple(field.name for field in fields(TaskRecord))
_JSON = frozenset({"request", "questions", "responses", "outcome"})
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM tasks"
# Each change renews the time for which a task is kept.
_CHANGE = "UPDATE tasks SET version = version + 1, updated = :now, expires = :now + ttl"


class StoredTasks:
    """Tasks of every server on one state file. What must not happen twice is one transaction, so it happens once."""

    def __init__(
        self,
        database: LazyDatabase,
        *,
        most_open: int = MOST_OPEN,
        most_kept: int = MOST_KEPT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self._owners = database.path.parent / _FOLDER
        self._limits = most_open, most_kept
        self._clock = clock
        self._held = ExitStack()
        self._owner: str | None = None
        self._lock = threading.Lock()

    @property
    def is_used(self) -> bool:
        """Whether there may be tasks."""
        return self._database.path.exists()

    def create(self, task: NewTask, *, started: bool) -> TaskRecord | None:
        """Store a task of this process; None where its principal has too many.

        `started` says that its function runs already; otherwise it runs after `claim`.
        """
        now, own = self._clock(), self._name()
        record = TaskRecord(
            id=task.id,
            principal=task.principal,
            tool=task.tool,
            status="working",
            message=None,
            version=1,
            created=now,
            updated=now,
            ttl=task.ttl,
            poll=task.poll,
            request=task.request,
            state=task.state,
            questions={},
            responses={},
            outcome=None,
        )
        row = {name: _stored(name, getattr(record, name)) for name in _COLUMNS}
        row |= {"expires": now + task.ttl, "repeats": task.repeats, "owner": own, "started": started, "cancelling": 0}
        insert = f"INSERT INTO tasks ({', '.join(row)}) VALUES ({', '.join(f':{name}' for name in row)})"
        with self._database.write() as connection:
            connection.execute("DELETE FROM tasks WHERE expires <= ? AND status != 'working'", (now,))
            if _is_full(connection, task.principal, *self._limits):
                return None
            connection.execute(insert, row)
        return record

    def find(self, id: str, principal: str) -> TaskRecord | None:
        """A task of this principal that is still kept."""
        with self._database.read() as connection:
            return _find(connection, id, principal, self._clock())

    def changed(self, known: Mapping[str, int]) -> Sequence[TaskRecord]:
        """Of tasks and their versions, those that have another version now."""
        marks = ", ".join("?" for _ in known)
        with self._database.read() as connection:
            rows = connection.execute(f"{_SELECT} WHERE id IN ({marks})", tuple(known)).fetchall()
        return [record for record in map(_read, rows) if record.version != known[record.id]]

    def claim(self, id: str) -> TaskRecord | None:
        """Begin to run a task of this process; None if it was cancelled, or is run already."""
        begun = "UPDATE tasks SET started = 1 WHERE id = ? AND owner = ? AND status = 'working' AND started = 0"
        with self._database.write() as connection:
            if not connection.execute(begun, (id, self._name())).rowcount:
                return None
            return _read(connection.execute(f"{_SELECT} WHERE id = ?", (id,)).fetchone())

    def tell(self, id: str, message: str) -> None:
        """Say how far a running task is. It need not survive the machine."""
        with self._database.write(durable=False) as connection:
            self._change(connection, id, "message = :message", {"message": message})

    def finish(self, id: str, status: TaskStatus, outcome: JsonObject | None, message: str | None = None) -> None:
        """End a task that runs here. What the call needed is not kept."""
        values = {"status": status, "outcome": _stored("outcome", outcome), "message": message}
        change = "status = :status, outcome = :outcome, message = :message, owner = NULL, started = 0, request = '{}'"
        with self._database.write() as connection:
            self._change(connection, id, change + ", state = NULL, questions = '{}', responses = '{}'", values)

    def ask(self, id: str, state: str, questions: JsonObject) -> None:
        """Leave a task that ran here until its questions are answered. Any process may then go on with it."""
        values = {"state": state, "questions": _dump(questions)}
        change = "status = 'input_required', state = :state, questions = :questions, responses = '{}', owner = NULL"
        with self._database.write() as connection:
            cancelled = connection.execute("SELECT cancelling FROM tasks WHERE id = ?", (id,)).fetchone()
            self._change(connection, id, change + ", started = 0", values)
            if cancelled is not None and cancelled[0]:
                self._cancel_unstarted(connection, id)

    def answer(self, id: str, principal: str, responses: JsonObject) -> Literal["unknown", "waits", "ready"]:
        """Take answers to open questions and ignore others. `ready` says that the task now belongs to this process."""
        if self.find(id, principal) is None:
            return "unknown"
        own, now = self._name(), self._clock()
        with self._database.write() as connection:
            record = _find(connection, id, principal, now)
            if record is None:
                return "unknown"
            open_keys = record.questions.keys() - record.responses.keys()
            taken = {key: response for key, response in responses.items() if key in open_keys}
            if record.status != "input_required" or not taken:
                return "waits"
            values = {"id": id, "now": now, "responses": _dump({**record.responses, **taken}), "owner": own}
            is_ready = len(taken) == len(open_keys)
            ready = ", status = 'working', owner = :owner" if is_ready else ""
            connection.execute(f"{_CHANGE}, responses = :responses{ready} WHERE id = :id", values)
        return "ready" if is_ready else "waits"

    def cancel(self, id: str, principal: str) -> Literal["unknown", "ended", "running"]:
        """Cancel a task. One that runs is marked, and ends as its function does."""
        if self.find(id, principal) is None:
            return "unknown"
        with self._database.write() as connection:
            record = _find(connection, id, principal, self._clock())
            if record is None:
                return "unknown"
            if record.status in FINAL or self._cancel_unstarted(connection, id):
                return "ended"
            connection.execute("UPDATE tasks SET cancelling = 1 WHERE id = ?", (id,))
        return "running"

    def cancelling(self) -> Collection[str]:
        """The tasks that run here and were cancelled."""
        query = "SELECT id FROM tasks WHERE owner = ? AND status = 'working' AND cancelling = 1"
        with self._database.read() as connection:
            return [id for (id,) in connection.execute(query, (self._owner,)).fetchall()]

    def adopt(self, has_tool: Callable[[str], bool], interrupted: JsonObject) -> Sequence[str]:
        """Take over the tasks of processes that have died: those that run here next, after `claim`.

        A function that was under way, and may not run again, has an unknown outcome: its task fails with
        `interrupted`.
        """
        with self._database.read() as connection:
            found = connection.execute("SELECT DISTINCT owner FROM tasks WHERE status = 'working'").fetchall()
        dead = [owner for (owner,) in found if owner != self._owner and not is_held(self._owners / owner)]
        if not dead:
            return ()
        own, now, taken = self._name(), self._clock(), list[str]()
        query = (
            "SELECT id, tool, started, repeats, cancelling, expires FROM tasks WHERE status = 'working' AND owner = ?"
        )
        with self._database.write() as connection:
            for owner in dead:
                for id, tool, started, repeats, cancelling, _ in connection.execute(query, (owner,)).fetchall():
                    values: JsonObject = {"owner": own}
                    if cancelling:
                        change = "status = 'cancelled', owner = NULL, started = 0, request = '{}'"
                    elif started and not repeats:
                        change = "status = 'failed', outcome = :outcome, message = :message, owner = NULL, started = 0"
                        change += ", request = '{}', state = NULL, responses = '{}'"
                        values = {"outcome": _dump(interrupted), "message": interrupted["message"]}
                    elif has_tool(tool):
                        change = "owner = :owner, started = 0"
                        taken.append(id)
                    else:
                        connection.execute("DELETE FROM tasks WHERE id = ? AND expires <= ?", (id, now))
                        continue
                    connection.execute(f"{_CHANGE}, {change} WHERE id = :id", {**values, "id": id, "now": now})
        return taken

    def close(self) -> None:
        """Leave the tasks of this process to others."""
        with self._lock:
            self._owner = None
            self._held.close()

    def _name(self) -> str:
        """The name of this process, as long as it lives; its lock is taken with its first task."""
        with self._lock:
            if self._owner is None:
                self._owner = self._held.enter_context(holding(self._owners))
            return self._owner

    def _change(self, connection: sqlite3.Connection, id: str, change: str, values: JsonObject) -> None:
        """Change a task that runs here; nothing where it is gone, has ended, or was taken over."""
        where = "WHERE id = :id AND owner = :owner AND status = 'working'"
        given = {**values, "id": id, "owner": self._owner, "now": self._clock()}
        connection.execute(f"{_CHANGE}, {change} {where}", given)

    def _cancel_unstarted(self, connection: sqlite3.Connection, id: str) -> bool:
        """Cancel a task whose function does not run."""
        change = f"{_CHANGE}, status = 'cancelled', owner = NULL, request = '{{}}', questions = '{{}}'"
        where = "WHERE id = :id AND started = 0 AND status IN ('working', 'input_required')"
        return bool(connection.execute(f"{change} {where}", {"id": id, "now": self._clock()}).rowcount)


def _find(connection: sqlite3.Connection, id: str, principal: str, now: float) -> TaskRecord | None:
    where = "WHERE id = ? AND principal = ? AND (expires > ? OR status = 'working')"
    row = connection.execute(f"{_SELECT} {where}", (id, principal, now)).fetchone()
    return None if row is None else _read(row)


def _is_full(connection: sqlite3.Connection, principal: str, most_open: int, most_kept: int) -> bool:
    query = "SELECT count(*), sum(status IN ('working', 'input_required')) FROM tasks WHERE principal = ?"
    kept, unfinished = connection.execute(query, (principal,)).fetchone()
    return kept >= most_kept or (unfinished or 0) >= most_open


def _dump(value: JsonObject) -> str:
    return json.dumps(value, separators=(",", ":"))


def _stored(name: str, value: Any) -> Any:
    return _dump(value) if name in _JSON and value is not None else value


def _read(row: Sequence[Any]) -> TaskRecord:
    read: JsonObject = {
        name: json.loads(value) if name in _JSON and value is not None else value
        for name, value in zip(_COLUMNS, row, strict=True)
    }
    return TaskRecord(**read)
