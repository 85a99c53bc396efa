"""Runs of a bot in one project: load, move, history."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from trysquare.bots.workflow import machine
from trysquare.bots.workflow.conflicts import NOTHING, OWN, EditGates, Notices, apply_edit, classify_edit
from trysquare.bots.workflow.exporter import Exporter
from trysquare.bots.workflow.machine import (
    STORED_STRENGTH,
    Entry,
    NeedsProof,
    Opened,
    Plan,
    Position,
    RunState,
    StateConflict,
    Strength,
)
from trysquare.bots.workflow.state_file import MAIN, is_run_name
from trysquare.bots.workflow.sync import StateFileSync
from trysquare.bots.workflow.transaction import (
    DamagedRecord,
    Holds,
    Home,
    Proofs,
    Receipts,
    RunTransaction,
    Signatures,
    Stamp,
    StateCache,
    read_entry,
)
from trysquare.core.errors import InvalidArguments
from trysquare.core.json import JsonObject, as_object
from trysquare.store import LazyDatabase, project_state
from trysquare.store.audit import AuditReport, utc_now
from trysquare.store.idempotency import RecordedAnswer
from trysquare.store.workflows import SqliteWorkflows, StoredEvent, StoredRun, WorkflowRows, WorkflowStore

T = TypeVar("T")
DEFINITION = "definition"
"""Key of a run's note on what its definition demanded."""
MAX_APPENDED = 20
_PAGE = 1_000
_LOOSEN = "loosen"
_BACKWARD = frozenset({"reject", _LOOSEN})
"""Moves that pass no gate, whatever the definition demands."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A request key with its call: a repeated call gets the recorded response."""

    key: str
    tool: str
    arguments: JsonObject = field(default_factory=dict[str, Any])

    @property
    def digest(self) -> str:
        text = json.dumps(self.arguments, sort_keys=True, default=repr)
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Loaded:
    state: RunState
    notices: Notices = NOTHING
    raised: bool = False
    """Whether the run becomes strict with its next move."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Transition:
    """A state after a move; `replayed` where the response was recorded earlier under the same request key."""

    state: RunState
    answer: JsonObject
    replayed: bool = False
    notices: Notices = NOTHING


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSummary:
    name: str
    state: RunState
    updated: str
    origin: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LatestRuns:
    runs: Sequence[RunSummary]
    damaged: Mapping[str, str]
    """What is wrong with each of them whose record is damaged."""
    total: int
    """How many runs there are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryLine:
    seq: int
    entry: Entry


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """Result of a move: the next state, the lines of history that it adds, and the response."""

    state: RunState
    added: tuple[Entry, ...] = ()
    answer: JsonObject = field(default_factory=dict[str, Any])
    notes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Small values stored with the run."""
    appended: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Values added to lists that are stored with the run; a list keeps its latest values."""
    audit: JsonObject = field(default_factory=dict[str, Any])

    @staticmethod
    def opened(opened: Opened, answer: JsonObject | None = None) -> Change:
        return Change(state=opened.state, added=opened.added, answer=answer or {}, audit={"jump": opened.jump})


Move: TypeAlias = Callable[[RunState], Change]
"""A pure function from the present state to a change. It raises `ToolError` to refuse."""


class WorkflowRuns:
    """The runs of one bot in one project.

    A move reads the state inside a transaction, applies a pure change and writes everything that belongs to it at once:
    the run's row, its history, the response under its request key, and the audit. The state file is read before and
    written after it; a failed write of the file never fails a call, and the next call repeats it.
    """

    def __init__(
        self,
        *,
        plan: Plan,
        store: WorkflowStore,
        sync: StateFileSync,
        needs_proof: NeedsProof = lambda _: False,
        strict: bool = False,
        strength: Strength | None = None,
        receipts: Receipts | None = None,
        home: Callable[[], Home] = Home,
    ) -> None:
        """`needs_proof` selects the actions that only a human can close: an edit of the state file does not pass them.

        `strict` makes every run strict that a call works on, permanently. `strength` is that of the bot's definition:
        it is audited, and compared with the one that a run was worked on with. `receipts` prove the completions of
        strict runs where the project has approvers. `home` is the run at the top of the state file.
        """
        self.plan = plan
        self.strength = strength
        self._strict = strict
        self._signatures = Signatures(receipts=receipts, strict=strict)
        self._home = home
        self._needs_proof = needs_proof
        self._store = store
        self._sync = sync
        self._exporter = Exporter(store, sync, is_complete=self._is_complete)
        self._cache = StateCache()
        self._audited: str | None = None

    def use_definition(self, plan: Plan, strength: Strength, *, principal: str) -> None:
        """Continue with a reloaded definition; `principal` is who had it reloaded."""
        self.plan, self.strength = plan, strength
        with self._store.read(plan.bot) as rows:
            is_known = rows.bot() is not None
        if is_known:
            with self._store.write(plan.bot) as rows:
                self._audit_definition(rows, principal=principal, again=True)

    def accept_definition(self, run: str, *, digest: str, principal: str, body: JsonObject) -> None:
        """Continue a run with a weaker definition, as a human agreed to exactly this one."""
        if self.strength is None or self.strength.digest != digest:
            return
        with self._store.write(self.plan.bot) as rows:
            rows.put_note(run, DEFINITION, STORED_STRENGTH.dump_python(self.strength, mode="json"))
            accepted = {"run": run, "digest": self.strength.digest, **body}
            rows.audit(kind="workflow.definition_accepted", principal=principal, body=accepted)

    def loosen(self, run: str, *, principal: str, audit: JsonObject) -> Transition:
        """Take a run out of strict mode. The caller has made sure that a human agreed."""

        def change(state: RunState) -> Change:
            return Change(state=replace(state, version=state.version + 1, strict=False), audit=audit)

        return self.move(change, kind=_LOOSEN, principal=principal, run=run)

    def close(self) -> None:
        self._store.close()

    def load(self, run: str = MAIN) -> Loaded:
        """The state of a run. Nothing is written, unless the state file was edited or is stale."""
        with self._store.read(self.plan.bot) as rows:
            state, notices = self._transaction(rows).state(run), NOTHING
            in_sync = self._is_in_sync(rows)
        if not in_sync:
            state, notices = self._write(lambda transaction: transaction.state(run))
        raised = self._strict and not state.strict
        return Loaded(state=replace(state, strict=True) if raised else state, notices=notices, raised=raised)

    def move(
        self,
        change: Move,
        *,
        kind: str,
        principal: str,
        run: str = MAIN,
        expected_version: int | None = None,
        request: Request | None = None,
    ) -> Transition:
        """Apply a change to the present state once, completely or not at all."""
        require_run_name(run)
        stamp = Stamp(kind=kind, principal=principal, at=utc_now())
        moved, notices = self._write(
            lambda transaction: self._apply(transaction, run, change, stamp, expected_version, request)
        )
        return replace(moved, notices=notices)

    def was_answered(self, request: Request, principal: str) -> bool:
        """Whether a response to this call is recorded under its request key."""
        with self._store.read(self.plan.bot) as rows:
            found = rows.find_answer(request.key, tool=request.tool, principal=principal, digest=request.digest)
        return found is not None

    def record(self, kind: str, principal: str, body: JsonObject, *, run: str = MAIN) -> None:
        """Audit an event that changes no state, such as an independent action."""
        with self._store.write(self.plan.bot) as rows:
            rows.audit(kind=f"workflow.{kind}", principal=principal, body={"run": run, **body})

    def bot_notes(self) -> JsonObject:
        """The small values that belong to no run."""
        with self._store.read(self.plan.bot) as rows:
            return rows.notes(OWN)

    def update_bot_note(
        self, name: str, change: Callable[[Any], Any], *, kind: str, principal: str, body: JsonObject
    ) -> Any:
        """Change one of them in a transaction of its own, with a row of the audit; returns what is stored."""
        with self._store.write(self.plan.bot) as rows:
            value = change(rows.notes(OWN).get(name))
            rows.put_note(OWN, name, value)
            rows.audit(kind=f"workflow.{kind}", principal=principal, body=body)
        return value

    def notes(self, run: str = MAIN) -> JsonObject:
        """The small values stored with a run."""
        with self._store.read(self.plan.bot) as rows:
            return rows.notes(run)

    def runs(self) -> list[RunSummary]:
        """All runs that can be read, by name; `damaged` names the others."""
        with self._store.read(self.plan.bot) as rows:
            transaction = self._transaction(rows)
            found = ((row, _readable(transaction, row)) for row in rows.runs())
            return [_summary(row, state) for row, state in found if isinstance(state, RunState)]

    def latest_runs(self, *, limit: int) -> LatestRuns:
        """The runs that changed last, newest first, without reading the others."""
        with self._store.read(self.plan.bot) as rows:
            transaction = self._transaction(rows)
            found = [(row, _readable(transaction, row)) for row in rows.recent_runs(without="", limit=limit)]
            return LatestRuns(
                runs=tuple(_summary(row, state) for row, state in found if isinstance(state, RunState)),
                damaged={row.name: str(error) for row, error in found if isinstance(error, DamagedRecord)},
                total=rows.count_runs(),
            )

    def summary(self, run: str) -> RunSummary | None:
        """One run with what is known beside its state; None for one that has not started."""
        with self._store.read(self.plan.bot) as rows:
            row = rows.run(run)
            return None if row is None else _summary(row, self._transaction(rows).read(row))

    def recorded(self) -> dict[str, RunState]:
        """The runs as the records say, whatever proves it."""
        with self._store.read(self.plan.bot) as rows:
            transaction = RunTransaction(self.plan, rows)
            found = {row.name: _readable(transaction, row) for row in rows.runs()}
        return {name: state for name, state in found.items() if isinstance(state, RunState)}

    def recorded_at(self, run: str, version: int) -> RunState:
        """A run at a version as the records say, whatever proves it."""
        with self._store.read(self.plan.bot) as rows:
            return RunTransaction(self.plan, rows).state_at(run, version)

    def damaged(self) -> dict[str, str]:
        """What is wrong with each run whose record is damaged."""
        with self._store.read(self.plan.bot) as rows:
            transaction = self._transaction(rows)
            found = {row.name: _readable(transaction, row) for row in rows.runs()}
        return {name: str(error) for name, error in found.items() if isinstance(error, DamagedRecord)}

    def peek(self, run: str = MAIN) -> RunState:
        """The stored state of a run. An edit of the state file is left to the next call."""
        with self._store.read(self.plan.bot) as rows:
            return self._transaction(rows).state(run)

    def recent(self, *, limit: int) -> list[str]:
        """Names of the runs that changed last, newest first, without the main run."""
        with self._store.read(self.plan.bot) as rows:
            return [row.name for row in rows.recent_runs(without=MAIN, limit=limit)]

    def has_runs(self) -> bool:
        with self._store.read(self.plan.bot) as rows:
            return bool(rows.run_names(limit=1))

    def origin(self, run: str) -> str:
        """The run and version that a run was forked from; empty without one."""
        with self._store.read(self.plan.bot) as rows:
            row = rows.run(run)
        return "" if row is None else row.origin

    def recover(self, run: str, *, principal: str) -> tuple[RunState, int]:
        """Rebuild the damaged record of a run; returns its state and the version that it was built from."""
        stamp = Stamp(kind="recover", principal=principal, at=utc_now())
        found, _ = self._write(lambda transaction: transaction.recover(run, stamp))
        return found

    def fork(
        self,
        run: str,
        to: str,
        *,
        principal: str,
        at_version: int | None = None,
        holds: Holds = lambda _: False,
        prepare: Callable[[], None] = lambda: None,
    ) -> Transition:
        """Start a run from the present state of another run, or from its state at a version.

        `prepare` writes the files of the new run. `holds` checks a proof against them; an invalid one is reopened.
        """
        stamp = Stamp(kind="fork", principal=principal, at=utc_now())

        def fork(transaction: RunTransaction) -> RunState:
            require_distinct(transaction, to)
            proofs = Proofs(needs_proof=self._needs_proof, holds=holds, signatures=self._signatures)
            return transaction.fork(run, to, at_version, stamp, proofs, prepare)

        return self._change_runs(to, fork)

    def rewind(
        self, run: str, version: int, *, principal: str, reason: str | None = None, holds: Holds = lambda _: False
    ) -> Transition:
        """Return a run to its state at a version. Nothing is deleted or proven by it.

        A proof is restored with its own time, and only where `holds` finds that it matches the present files.
        """
        stamp = Stamp(kind="rewind", principal=principal, at=utc_now())
        proofs = Proofs(needs_proof=self._needs_proof, holds=holds, signatures=self._signatures)
        return self._change_runs(run, lambda transaction: transaction.rewind(run, version, stamp, reason, proofs))

    def history(self, run: str = MAIN, *, after: int = 0, limit: int = 100) -> list[HistoryLine]:
        """Lines of a run's present history after a number, in order."""
        with self._store.read(self.plan.bot) as rows:
            row = rows.run(run)
            found = [] if row is None else rows.entries(run, row.generation, after=after, limit=limit)
        return [HistoryLine(seq=each.seq, entry=read_entry(each.body)) for each in found]

    def latest_history(self, run: str, *, limit: int) -> list[HistoryLine]:
        """The last lines of a run's present history, newest first."""
        with self._store.read(self.plan.bot) as rows:
            row = rows.run(run)
            after = 0 if row is None else max(0, row.entries - limit)
        return self.history(run, after=after, limit=limit)[::-1]

    def export(self, run: str) -> Iterator[JsonObject]:
        """Every change of a run with the lines that it added to the history, in order, a page at a time.

        Earlier generations of the history, which a deleted state file ended, are part of it.
        """
        version, ends = -1, dict[int, int]()
        while events := self.events(run, after=version, limit=_PAGE):
            for event in events:
                yield self._exported(run, event, ends.get(event.generation, 0))
                ends[event.generation] = event.entries
            version = events[-1].version

    def _exported(self, run: str, event: StoredEvent, before: int) -> JsonObject:
        with self._store.read(self.plan.bot) as rows:
            lines = rows.entries(run, event.generation, after=before, until=event.entries)
        return {
            "run": run,
            "version": event.version,
            "at": event.at,
            "what": event.kind,
            "by": event.principal,
            "generation": event.generation,
            "state": event_state(event),
            "history": [line.body for line in lines],
        }

    def events(self, run: str = MAIN, *, after: int = -1, limit: int = 100) -> list[StoredEvent]:
        """The changes of a run after a version, in order, edits and resets included."""
        with self._store.read(self.plan.bot) as rows:
            return rows.events(run, after=after, limit=limit)

    def state_at(self, run: str, version: int) -> RunState:
        with self._store.read(self.plan.bot) as rows:
            return self._transaction(rows).state_at(run, version)

    def audited(self, kind: str) -> list[JsonObject]:
        """The audit records of one kind for all runs of this bot, in order."""
        with self._store.read(self.plan.bot) as rows:
            return rows.audited(kind)

    def verify(self) -> AuditReport:
        return self._store.verify(self.plan.bot)

    def _apply(
        self,
        transaction: RunTransaction,
        run: str,
        change: Move,
        stamp: Stamp,
        expected_version: int | None,
        request: Request | None,
    ) -> Transition:
        before, rows, claim = transaction.state(run), transaction.rows, None
        require_distinct(transaction, run)
        if request is not None:
            claim = rows.claim(request.key, tool=request.tool, principal=stamp.principal, digest=request.digest)
        if isinstance(claim, RecordedAnswer):
            return Transition(state=before, answer=claim.result, replayed=True)
        if expected_version not in (None, before.version):
            current = before.current.path(self.plan.bot)
            problem = f"the state has version {before.version}, not {expected_version}"
            raise StateConflict(
                f"Nothing was changed: {problem}. The current action is `{current}`.",
                instruction="Check the current action, and send the call again if it still applies.",
                fields={"current_action": current, "version": before.version},
            )
        start = replace(before, strict=True) if self._strict and stamp.kind != _LOOSEN else before
        self._remember_definition(rows, run, start, stamp)
        made = change(start)
        if made.state == start != before:
            # The only change is that the run becomes strict.
            made = replace(made, state=replace(start, version=start.version + 1))
        check_step(before, made.state, made.added)
        if made.state != before:
            transaction.save(run, made.state, made.added, stamp, audit=made.audit)
        elif made.audit:
            rows.audit(kind=f"workflow.{stamp.kind}", principal=stamp.principal, body={"run": run, **made.audit})
        for name, value in made.notes.items():
            rows.put_note(run, name, value)
        for name, value in made.appended.items():
            rows.put_note(run, name, [*rows.notes(run).get(name, ()), value][-MAX_APPENDED:])
        if claim is not None:
            rows.finish(claim, made.answer)
        return Transition(state=made.state, answer=made.answer)

    def _change_runs(self, run: str, change: Callable[[RunTransaction], RunState]) -> Transition:
        require_run_name(run)
        state, notices = self._write(change)
        return Transition(state=state, answer={}, notices=notices)

    def _is_in_sync(self, rows: WorkflowRows) -> bool:
        bot, home = rows.bot(), self._home()
        if home.is_alone and bot is not None and rows.notes(OWN).get("home") not in (None, home.run):
            return False
        if bot is not None and not self._store.two_way:
            return self._exporter.is_current(bot, home)
        path = self._sync.choose(rows.windows()) if bot is None else bot.window
        status = classify_edit(rows, bot, self._sync.read(path))
        return status == "current" and (bot is not None or self._sync.read_legacy() is None)

    def _write(self, work: Callable[[RunTransaction], T]) -> tuple[T, Notices]:
        """Import an edit of the state file, do the work, and export the result; a failed export is only a warning."""
        plan = self.plan
        with self._cached(), self._exporter.lock() as problem:
            with self._store.write(plan.bot) as rows:
                transaction = self._transaction(rows)
                decision = apply_edit(transaction, self._sync, two_way=self._store.two_way, gates=self._gates(rows))
                self._audit_definition(rows)
                result = work(transaction)
                pending = None if problem else self._exporter.prepare(transaction, decision)
            warnings = self._exporter.write(plan, pending) if problem is None else (problem,)
        return result, decision.notices + Notices(warnings=warnings)

    @contextmanager
    def _cached(self) -> Generator[None]:
        try:
            yield
        except BaseException:
            # What a rolled-back transaction wrote must not be found again.
            self._cache.clear()
            raise

    def _is_complete(self, state: RunState) -> bool:
        return next(machine.open_actions(self.plan, state, self._needs_proof), None) is None

    def weakened(self, notes: JsonObject, *, strict: bool) -> tuple[str, ...]:
        """What the definition no longer demands of a run with these notes."""
        known = notes.get(DEFINITION)
        if known is None or self.strength is None or known["digest"] == self.strength.digest:
            return ()
        return machine.weakenings(STORED_STRENGTH.validate_python(known), self.strength, strict=strict)

    def _remember_definition(self, rows: WorkflowRows, run: str, state: RunState, stamp: Stamp) -> None:
        """Note with the run what its definition demands; a weaker one needs a human's agreement first."""
        if self.strength is None:
            return
        known = rows.notes(run).get(DEFINITION)
        if known is not None and known["digest"] == self.strength.digest:
            return
        if not self.weakened({DEFINITION: known}, strict=state.strict):
            rows.put_note(run, DEFINITION, STORED_STRENGTH.dump_python(self.strength, mode="json"))
        elif stamp.kind not in _BACKWARD:
            raise StateConflict(
                "The bot's definition was changed meanwhile and demands less of this run. Nothing was changed.",
                instruction="Send the same call again; the user is asked whether the definition may be used.",
            )

    def _audit_definition(self, rows: WorkflowRows, *, principal: str = "server", again: bool = False) -> None:
        """Audit the definition in use whenever it changed or was reloaded."""
        if self.strength is None or (self._audited == self.strength.digest and not again):
            return
        before = rows.notes(OWN).get(DEFINITION)
        if before != self.strength.digest or again:
            body = {"digest": self.strength.digest, "before": before}
            rows.audit(kind="workflow.definition", principal=principal, body=body)
            rows.put_note(OWN, DEFINITION, self.strength.digest)
        self._audited = self.strength.digest

    def _gates(self, rows: WorkflowRows) -> EditGates:
        return EditGates(
            needs_proof=self._needs_proof,
            strict=self._strict,
            weakened=lambda run, strict: bool(self.weakened(rows.notes(run), strict=strict)),
            signatures=self._signatures,
        )

    def _transaction(self, rows: WorkflowRows) -> RunTransaction:
        return RunTransaction(self.plan, rows, cache=self._cache, home=self._home(), signatures=self._signatures)


def require_run_name(run: str) -> None:
    """Refuse an invalid run name. It is a part of paths, so it contains nothing that leads elsewhere."""
    if not is_run_name(run):
        raise InvalidArguments(
            f"Invalid run name `{run[:80]}`.",
            instruction="Use 1 to 64 letters, digits, `_`, `-` and `.`, starting with a letter or digit.",
        )


def require_distinct(transaction: RunTransaction, run: str) -> None:
    """Refuse a new run whose name differs from another's only in case: some file systems would mix up their files."""
    if run == MAIN or transaction.rows.run(run) is not None:
        return
    same = transaction.rows.names_like(run)
    if same or run.casefold() == MAIN:
        raise StateConflict(
            f"Run `{same[0] if same else MAIN}` already exists and differs from `{run}` only in case.",
            instruction="Use that run, or choose another name.",
        )


def _summary(row: StoredRun, state: RunState) -> RunSummary:
    return RunSummary(name=row.name, state=state, updated=row.updated, origin=row.origin)


def _readable(transaction: RunTransaction, row: StoredRun) -> RunState | DamagedRecord:
    try:
        return transaction.read(row)
    except DamagedRecord as error:
        return error


def refers_to(plan: Plan, path: str, position: Position) -> bool:
    """Whether `action`, `behavior.action` or `bot.behavior.action` is this position."""
    return path in (position.action, str(position), position.path(plan.bot))


def check_step(before: RunState, after: RunState, added: Sequence[Entry]) -> None:
    """Require that a change increments the version, so that no two states share one."""
    if after != before and after.version <= before.version:
        raise ValueError("a change of a state must increment its version")
    if added and after == before:
        raise ValueError("lines of history need a change of the state")


def event_state(event: StoredEvent) -> JsonObject:
    """The state that a change left; a damaged one as the text that is stored."""
    try:
        return as_object(json.loads(event.state))
    except ValueError:
        return {"damaged": event.state}


def open_workflows(url: str | None, project: Path, *, project_id: str | None = None) -> WorkflowStore:
    """The store of a project: its own database, or the PostgreSQL database of a URL."""
    if url is None or url.startswith("sqlite:"):
        database = LazyDatabase(project_state(project))
        return SqliteWorkflows(database, on_close=database.close)
    from trysquare.store.workflows_postgres import PostgresWorkflows

    return PostgresWorkflows(url, project.resolve(), project_id=project_id)
