"""Tasks in a database: what was called, what it asks, and how it ended."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from trysquare.core.json import JsonObject
from trysquare.store.database import Statements
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
    checkpoints: JsonObject
    """What its function stored for its next run, in this process or another one."""


_COLUMNS = tuple(field.name for field in fields(TaskRecord))
_JSON = frozenset({"request", "questions", "responses", "outcome", "checkpoints"})
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM tasks"
_UNOWNED: Final[JsonObject] = {"owner": None, "started": 0}
# What the call needed is not kept.
_ENDED: Final[JsonObject] = {
    **_UNOWNED, "request": {}, "state": None, "questions": {}, "responses": {}, "checkpoints": {},
}  # fmt: skip


class TaskDatabase(Protocol):
    """Where tasks are kept, and which of the processes that run them are alive."""

    @property
    def scope(self) -> str:
        """Begins the stored names of principals and processes, where several projects share a database."""
        ...

    @property
    def is_used(self) -> bool:
        """Whether there may be tasks."""
        ...

    def read(self) -> AbstractContextManager[Statements]: ...

    def write(self, *, durable: bool = True) -> AbstractContextManager[Statements]: ...

    def holding(self) -> AbstractContextManager[str]:
        """Hold a name of this process, which begins with the scope, until the block ends or the process does."""
        ...

    def is_held(self, owner: str) -> bool:
        """Whether the process with a name is alive."""
        ...

    def holds(self) -> bool:
        """Whether the name of this process is still its own."""
        ...

    def close(self) -> None: ...


class TaskFile:
    """Tasks in the state file, for the processes of one machine. Each holds a locked file beside it."""

    scope = ""

    def __init__(self, database: LazyDatabase) -> None:
        self._database = database
        self._owners = database.path.parent / _FOLDER

    @property
    def is_used(self) -> bool:
        return self._database.path.exists()

    def read(self) -> AbstractContextManager[Statements]:
        return self._database.read()

    def write(self, *, durable: bool = True) -> AbstractContextManager[Statements]:
        return self._database.write(durable=durable)

    def holding(self) -> AbstractContextManager[str]:
        return holding(self._owners)

    def is_held(self, owner: str) -> bool:
        return is_held(self._owners / owner)

    def holds(self) -> bool:
        return True

    def close(self) -> None:
        """The state file belongs to whoever opened it."""


class Cancelled(NamedTuple):
    """What became of a cancelled task."""

    state: Literal["unknown", "ended", "running"]
    left: TaskRecord | None = None
    """The task as it was, where its function does not run and has left something to end elsewhere."""


class Adopted(NamedTuple):
    """What became of the tasks of processes that have died."""

    taken: Sequence[str]
    """Those that run here next, after `claim`."""
    cancelled: Sequence[TaskRecord]
    """Those that were cancelled before, and have left something to end elsewhere."""


class StoredTasks:
    """Tasks of every server on one database. What must not happen twice is one transaction, so it happens once."""

    def __init__(
        self,
        database: TaskDatabase,
        *,
        most_open: int = MOST_OPEN,
        most_kept: int = MOST_KEPT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self._limits = most_open, most_kept
        self._clock = clock
        self._held = ExitStack()
        self._owner: str | None = None
        self._lock = threading.Lock()

    @property
    def is_used(self) -> bool:
        """Whether there may be tasks."""
        return self._database.is_used

    def create(self, task: NewTask, *, started: bool) -> TaskRecord | None:
        """Store a task of this process; None where its principal has too many.

        `started` says that its function runs already; otherwise it runs after `claim`.
        """
        now, own = self._clock(), self._name()
        record = TaskRecord(
            id=task.id,
            principal=self._stored_name(task.principal),
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
            checkpoints={},
        )
        row = {name: _stored(name, getattr(record, name)) for name in _COLUMNS}
        row |= {"expires": now + task.ttl, "repeats": int(task.repeats), "owner": own, "started": int(started)}
        insert = f"INSERT INTO tasks ({', '.join(row)}, cancelling) VALUES ({', '.join('?' for _ in row)}, 0)"
        with self._database.write() as rows:
            rows.execute("DELETE FROM tasks WHERE expires <= ? AND status != 'working'", (now,))
            if _is_full(rows, record.principal, *self._limits):
                return None
            rows.execute(insert, tuple(row.values()))
        return record

    def find(self, id: str, principal: str) -> TaskRecord | None:
        """A task of this principal that is still kept."""
        with self._database.read() as rows:
            return self._find(rows, id, principal)

    def changed(self, known: Mapping[str, int]) -> Sequence[TaskRecord]:
        """Of tasks and their versions, those that have another version now."""
        if not known:
            return ()
        marks = ", ".join("?" for _ in known)
        with self._database.read() as rows:
            found = rows.execute(f"{_SELECT} WHERE id IN ({marks})", tuple(known)).fetchall()
        return [record for record in map(_read, found) if record.version != known[record.id]]

    def claim(self, id: str) -> TaskRecord | None:
        """Begin to run a task of this process; None if it was cancelled, or is run already."""
        begun = "UPDATE tasks SET started = 1 WHERE id = ? AND owner = ? AND status = 'working' AND started = 0"
        with self._database.write() as rows:
            if not rows.execute(begun, (id, self._name())).rowcount:
                return None
            return _read(rows.execute(f"{_SELECT} WHERE id = ?", (id,)).fetchone())

    def tell(self, id: str, message: str) -> None:
        """Say how far a running task is. It need not survive the machine."""
        with self._database.write(durable=False) as rows:
            self._change_own(rows, id, {"message": message})

    def checkpoint(self, id: str, checkpoints: JsonObject) -> bool:
        """Store what the next run of a task that runs here goes on from; from now on it may run again.

        False where it is gone, has ended, or was taken over.
        """
        with self._database.write() as rows:
            return self._change_own(rows, id, {"checkpoints": checkpoints, "repeats": 1})

    def finish(self, id: str, status: TaskStatus, outcome: JsonObject | None, message: str | None = None) -> None:
        """End a task that runs here."""
        with self._database.write() as rows:
            self._change_own(rows, id, {**_ENDED, "status": status, "outcome": outcome, "message": message})

    def ask(self, id: str, state: str, questions: JsonObject) -> TaskRecord | None:
        """Leave a task that ran here until its questions are answered. Any process may then go on with it.

        Returns the task where it was cancelled meanwhile, and has left something to end elsewhere.
        """
        asks = {**_UNOWNED, "status": "input_required", "state": state, "questions": questions, "responses": {}}
        with self._database.write() as rows:
            cancelled = rows.execute("SELECT cancelling FROM tasks WHERE id = ?", (id,)).fetchone()
            if not self._change_own(rows, id, asks) or not cancelled[0]:
                return None
            record = _read(rows.execute(f"{_SELECT} WHERE id = ?", (id,)).fetchone())
            self._cancel_unstarted(rows, id)
        return record if record.checkpoints else None

    def answer(self, id: str, principal: str, responses: JsonObject) -> Literal["unknown", "waits", "ready"]:
        """Take answers to open questions and ignore others. `ready` says that the task now belongs to this process."""
        if self.find(id, principal) is None:
            return "unknown"
        own = self._name()
        with self._database.write() as rows:
            record = self._find(rows, id, principal)
            if record is None:
                return "unknown"
            open_keys = record.questions.keys() - record.responses.keys()
            taken = {key: response for key, response in responses.items() if key in open_keys}
            if record.status != "input_required" or not taken:
                return "waits"
            values: JsonObject = {"responses": {**record.responses, **taken}}
            if is_ready := len(taken) == len(open_keys):
                values |= {"status": "working", "owner": own}
            self._change(rows, values, "id = ?", (id,))
        return "ready" if is_ready else "waits"

    def cancel(self, id: str, principal: str) -> Cancelled:
        """Cancel a task. One that runs is marked, and ends as its function does."""
        if self.find(id, principal) is None:
            return Cancelled("unknown")
        with self._database.write() as rows:
            record = self._find(rows, id, principal)
            if record is None:
                return Cancelled("unknown")
            if record.status in FINAL:
                return Cancelled("ended")
            if self._cancel_unstarted(rows, id):
                return Cancelled("ended", record if record.checkpoints else None)
            rows.execute("UPDATE tasks SET cancelling = 1 WHERE id = ?", (id,))
        return Cancelled("running")

    def cancelling(self) -> Collection[str]:
        """The tasks that run here and were cancelled."""
        query = "SELECT id FROM tasks WHERE owner = ? AND status = 'working' AND cancelling = 1"
        with self._database.read() as rows:
            return [id for (id,) in rows.execute(query, (self._owner,)).fetchall()]

    def adopt(self, has_tool: Callable[[str], bool], interrupted: JsonObject) -> Adopted:
        """Take over the tasks of processes that have died.

        A function that was under way, and may not run again, has an unknown outcome: its task fails with
        `interrupted`.
        """
        with self._database.read() as rows:
            found = rows.execute("SELECT DISTINCT owner FROM tasks WHERE status = 'working'").fetchall()
        scope = self._database.scope
        others = [owner for (owner,) in found if owner != self._owner and owner.startswith(scope)]
        dead = [owner for owner in others if not self._database.is_held(owner)]
        taken, cancelled = list[str](), list[TaskRecord]()
        if not dead:
            return Adopted(taken, cancelled)
        own, now = self._name(), self._clock()
        query = "SELECT id, tool, started, repeats, cancelling FROM tasks WHERE status = 'working' AND owner = ?"
        with self._database.write() as rows:
            for id, tool, started, repeats, is_cancelled in [
                row for owner in dead for row in rows.execute(query, (owner,)).fetchall()
            ]:
                if is_cancelled:
                    cancelled.append(_read(rows.execute(f"{_SELECT} WHERE id = ?", (id,)).fetchone()))
                    values = {**_ENDED, "status": "cancelled"}
                elif started and not repeats:
                    failed: JsonObject = {"status": "failed", "outcome": interrupted, "message": interrupted["message"]}
                    values = {**_ENDED, **failed}
                elif has_tool(tool):
                    values = {"owner": own, "started": 0}
                    taken.append(id)
                else:
                    rows.execute("DELETE FROM tasks WHERE id = ? AND expires <= ?", (id, now))
                    continue
                self._change(rows, values, "id = ?", (id,))
        return Adopted(taken, [record for record in cancelled if record.checkpoints])

    def close(self) -> None:
        """Leave the tasks of this process to others."""
        with self._lock:
            self._owner = None
            self._held.close()
            self._database.close()

    def _name(self) -> str:
        """The name of this process, as long as it lives; its lock is taken with its first task."""
        with self._lock:
            if self._owner is not None and not self._database.holds():
                # Others take its tasks over, as those of a dead process.
                self._held.close()
                self._owner = None
            if self._owner is None:
                self._owner = self._held.enter_context(self._database.holding())
            return self._owner

    def _stored_name(self, principal: str) -> str:
        return f"{self._database.scope}{principal}"

    def _find(self, rows: Statements, id: str, principal: str) -> TaskRecord | None:
        where = "WHERE id = ? AND principal = ? AND (expires > ? OR status = 'working')"
        row = rows.execute(f"{_SELECT} {where}", (id, self._stored_name(principal), self._clock())).fetchone()
        return None if row is None else _read(row)

    def _change(self, rows: Statements, values: JsonObject, where: str, parameters: Sequence[Any]) -> bool:
        """Change tasks, which renews the time for which they are kept. False where there are none."""
        now = self._clock()
        changes = ", ".join(f"{name} = ?" for name in values)
        given = [_stored(name, value) for name, value in values.items()]
        update = f"UPDATE tasks SET version = version + 1, updated = ?, expires = ? + ttl, {changes} WHERE {where}"
        return bool(rows.execute(update, (now, now, *given, *parameters)).rowcount)

    def _change_own(self, rows: Statements, id: str, values: JsonObject) -> bool:
        """Change a task that runs here; False where it is gone, has ended, or was taken over."""
        return self._change(rows, values, "id = ? AND owner = ? AND status = 'working'", (id, self._owner))

    def _cancel_unstarted(self, rows: Statements, id: str) -> bool:
        """Cancel a task whose function does not run."""
        where = "id = ? AND started = 0 AND status IN ('working', 'input_required')"
        return self._change(rows, {**_ENDED, "status": "cancelled"}, where, (id,))


def _is_full(rows: Statements, principal: str, most_open: int, most_kept: int) -> bool:
    query = "SELECT count(*), count(*) FILTER (WHERE status IN ('working', 'input_required')) FROM tasks"
    kept, unfinished = rows.execute(f"{query} WHERE principal = ?", (principal,)).fetchone()
    return kept >= most_kept or unfinished >= most_open


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
