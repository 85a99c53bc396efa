"""BotState: the state of one bot in one project, for every tool, client and process that works on it.

A move re-reads the state inside a transaction, applies a pure change and writes everything that belongs to it at once:
the run's row, its history, the answer under its request key, and the audit. The window is read before and written
after it; a window that cannot be written never fails a call, and is made good by the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from trysquare.bots.export import Exporter
from trysquare.bots.ledger import Holds, KnownState, Ledger, Proofs, Stamp
from trysquare.bots.plan import Plan, Position
from trysquare.bots.run_record import read_entry, read_state
from trysquare.bots.state_checks import (
    EventLine,
    Expectation,
    HistoryLine,
    Loaded,
    Moved,
    Request,
    RunSummary,
    begun,
    check_expected,
    check_step,
    claimed_key,
    require_distinct,
    require_run_name,
)
from trysquare.bots.state_file import MAIN
from trysquare.bots.strength import Strength, weakenings
from trysquare.bots.window import ProjectWindow
from trysquare.bots.window_rules import NOTHING, OWN, EditGates, Notices, judge, settle
from trysquare.bots.workflow import Closed, Entry, NeedsProof, Opened, RunState, open_actions
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.store.audit import AuditReport, utc_now
from trysquare.store.idempotency import EarlierAnswer
from trysquare.store.lazy import LazyDatabase
from trysquare.store.location import project_state
from trysquare.store.workflow import SqliteWorkflows, StoredRun, WorkflowRows, WorkflowStore

T = TypeVar("T")
DEFINITION = "definition"
"""The note of a run that holds what its definition demanded."""
_TAKES_BACK = frozenset({"reject", "loosen"})
"""Moves that pass no gate, whatever the definition demands."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What a move makes of a state: the next one, what it adds to the history, and what is answered."""

    state: RunState
    added: tuple[Entry, ...] = ()
    answer: JsonObject = field(default_factory=dict[str, Any])
    notes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Small values to remember for the run."""
    audit: JsonObject = field(default_factory=dict[str, Any])

    @staticmethod
    def opened(opened: Opened, answer: JsonObject | None = None) -> Change:
        """The change of an action that was opened."""
        return Change(state=opened.state, added=opened.added, answer=answer or {}, audit={"jump": opened.jump})

    @staticmethod
    def closed(closed: Closed, answer: JsonObject | None = None) -> Change:
        """The change of an action that was closed."""
        return Change(state=closed.state, added=closed.added, answer=answer or {})


Move: TypeAlias = Callable[[RunState], Change]
"""A pure function from the state as it is to what becomes of it. It raises `ToolError` to refuse."""


class BotState:
    """The state of one bot in one project."""

    def __init__(
        self,
        *,
        plan: Plan,
        store: WorkflowStore,
        window: ProjectWindow | None,
        needs_proof: NeedsProof = lambda _: False,
        strict: bool = False,
        strength: Strength | None = None,
    ) -> None:
        """`needs_proof` says which actions only a human can close: an edit of the window does not pass them.

        `strict` makes every run strict that a call works on, for good. `strength` is that of the bot's definition: it
        is audited, and compared with the one that a run was worked on with.
        """
        self.plan = plan
        self.strength = strength
        self._strict = strict
        self._needs_proof = needs_proof
        self._store = store
        self._window = window
        self._exporter = None if window is None else Exporter(store, window, is_complete=self._is_complete)
        self._known: dict[str, KnownState] = {}
        self._audited: str | None = None

    def use(self, plan: Plan, strength: Strength | None = None, *, principal: str | None = None) -> None:
        """Go on with another plan, after the bot's definition was read again; `principal` is who had it read."""
        self.plan, self.strength = plan, strength
        if principal is None or strength is None:
            return
        with self._store.read(plan.bot) as rows:
            is_known = rows.bot() is not None
        if is_known:
            with self._store.write(plan.bot) as rows:
                self._audit_definition(rows, principal=principal, again=True)

    def accept_definition(self, run: str, *, digest: str, principal: str, body: JsonObject) -> None:
        """Have a run go on with a definition that demands less, as a human agreed to that very one."""
        if self.strength is None or self.strength.digest != digest:
            return
        with self._store.write(self.plan.bot) as rows:
            rows.put_note(run, DEFINITION, self.strength.to_json())
            told = {"run": run, "digest": self.strength.digest, **body}
            rows.audit(kind="workflow.definition_accepted", principal=principal, body=told)

    def loosen(self, run: str, *, principal: str, audit: JsonObject) -> Moved:
        """Take a run out of strict mode. Whoever calls this has made sure that a human agreed."""

        def change(state: RunState) -> Change:
            return Change(state=replace(state, version=state.version + 1, strict=False), audit=audit)

        require_run_name(run)
        stamp = Stamp(kind="loosen", principal=principal, at=utc_now())
        moved, notices = self._changed(
            lambda ledger: self._moved(ledger, run, change, stamp, Expectation(), None, raise_=False)
        )
        return replace(moved, notices=notices)

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    def load(self, run: str = MAIN) -> Loaded:
        """Where a run stands. Nothing is written, unless the window was touched or is behind."""
        with self._store.read(self.plan.bot) as rows:
            state = self._ledger(rows).state(run)
            at_rest = self._is_at_rest(rows)
        if at_rest:
            return self._loaded(state)
        state, notices = self._changed(lambda ledger: ledger.state(run))
        return self._loaded(state, notices)

    def _loaded(self, state: RunState, notices: Notices = NOTHING) -> Loaded:
        raised = self._strict and not state.strict
        return Loaded(state=replace(state, strict=True) if raised else state, notices=notices, raised=raised)

    def move(
        self,
        change: Move,
        *,
        kind: str,
        principal: str,
        run: str = MAIN,
        expected_action: str | None = None,
        expected_version: int | None = None,
        request: Request | None = None,
    ) -> Moved:
        """Apply a change to the state as it is now, once, and write all of it or nothing."""
        require_run_name(run)
        expected = Expectation(action=expected_action, version=expected_version)
        stamp = Stamp(kind=kind, principal=principal, at=utc_now())
        moved, notices = self._changed(lambda ledger: self._moved(ledger, run, change, stamp, expected, request))
        return replace(moved, notices=notices)

    def was_answered(self, request: Request, principal: str) -> bool:
        """Whether this very call was made before under its request key: a move with it gets the first answer."""
        with self._store.read(self.plan.bot) as rows:
            found = rows.find_answer(request.key, tool=request.tool, principal=principal, digest=request.digest)
        return found is not None

    def record(self, kind: str, principal: str, body: JsonObject, *, run: str = MAIN) -> None:
        """Note in the audit what changes no state, such as an independent action."""
        with self._store.write(self.plan.bot) as rows:
            rows.audit(kind=f"workflow.{kind}", principal=principal, body={"run": run, **body})

    def notes(self, run: str = MAIN) -> JsonObject:
        """The small values that are remembered for a run."""
        with self._store.read(self.plan.bot) as rows:
            return rows.notes(run)

    def runs(self) -> list[RunSummary]:
        """All runs, in order of name."""
        with self._store.read(self.plan.bot) as rows:
            ledger = self._ledger(rows)
            return [
                RunSummary(name=row.name, state=ledger.read(row), updated=row.updated, origin=row.origin)
                for row in rows.runs()
            ]

    def create_run(self, name: str, *, principal: str) -> Moved:
        """Begin a run at the first action."""
        stamp = Stamp(kind="create_run", principal=principal, at=utc_now())
        return self._change_runs(name, lambda ledger: begun(ledger, name, stamp))

    def fork(
        self,
        run: str,
        to: str,
        *,
        principal: str,
        at_version: int | None = None,
        holds: Holds = lambda _: False,
        prepare: Callable[[], None] = lambda: None,
    ) -> Moved:
        """Begin a run where another one stands, or stood at a version.

        `prepare` gives the new run its files. `holds` says whether a proof fits them; one that does not is open again.
        """
        stamp = Stamp(kind="fork", principal=principal, at=utc_now())

        def forked(ledger: Ledger) -> RunState:
            require_distinct(ledger, to)
            return ledger.fork(run, to, at_version, stamp, Proofs(needs_proof=self._needs_proof, holds=holds), prepare)

        return self._change_runs(to, forked)

    def rewind(
        self, run: str, version: int, *, principal: str, reason: str | None = None, holds: Holds = lambda _: False
    ) -> Moved:
        """Set a run back to where it stood at a version. Nothing is deleted by it, and nothing is proven by it.

        A proof comes back with its own time, and only where `holds` says that it fits the files as they are.
        """
        stamp = Stamp(kind="rewind", principal=principal, at=utc_now())
        proofs = Proofs(needs_proof=self._needs_proof, holds=holds)
        return self._change_runs(run, lambda ledger: ledger.rewind(run, version, stamp, reason, proofs))

    def history(self, run: str = MAIN, *, after: int = 0, limit: int = 100) -> list[HistoryLine]:
        """Lines of a run's present history, in order, from behind a number on."""
        with self._store.read(self.plan.bot) as rows:
            row = rows.run(run)
            found = [] if row is None else rows.entries(run, row.generation, after=after, limit=limit)
        return [HistoryLine(seq=each.seq, entry=read_entry(each.body)) for each in found]

    def events(self, run: str = MAIN, *, after: int = -1, limit: int = 100) -> list[EventLine]:
        """The changes of a run, in order, from behind a version on; edits and resets are among them."""
        with self._store.read(self.plan.bot) as rows:
            found = rows.events(run, after=after, limit=limit)
        return [
            EventLine(
                version=each.version,
                at=each.at,
                kind=each.kind,
                principal=each.principal,
                current=Position(behavior=each.state["current"][0], action=each.state["current"][1]),
            )
            for each in found
        ]

    def state_at(self, run: str, version: int) -> RunState:
        """Where a run stood at a version."""
        with self._store.read(self.plan.bot) as rows:
            return self._ledger(rows).state_at(run, version)

    def audited(self, kind: str) -> list[JsonObject]:
        """What the audit tells of this bot under one kind, in order, for all runs."""
        with self._store.read(self.plan.bot) as rows:
            return rows.audited(kind)

    def verify(self) -> AuditReport:
        """Check the chain of the audit."""
        return self._store.verify(self.plan.bot)

    def _moved(
        self,
        ledger: Ledger,
        run: str,
        change: Move,
        stamp: Stamp,
        expected: Expectation,
        request: Request | None,
        *,
        raise_: bool = True,
    ) -> Moved:
        before = ledger.state(run)
        require_distinct(ledger, run)
        claimed = claimed_key(ledger.rows, request, stamp.principal)
        if isinstance(claimed, EarlierAnswer):
            return Moved(state=before, answer=claimed.result, replayed=True)
        check_expected(self.plan, before, expected)
        start = replace(before, strict=True) if self._strict and raise_ else before
        self._remember_definition(ledger.rows, run, start, stamp)
        made = change(start)
        if made.state == start != before:
            # Nothing happened but that the run is strict from now on.
            made = replace(made, state=replace(start, version=start.version + 1))
        check_step(before, made.state, made.added)
        if made.state != before:
            ledger.save(run, made.state, made.added, stamp, audit=made.audit)
        elif made.audit:
            ledger.rows.audit(kind=f"workflow.{stamp.kind}", principal=stamp.principal, body={"run": run, **made.audit})
        for name, value in made.notes.items():
            ledger.rows.put_note(run, name, value)
        if claimed is not None:
            ledger.rows.finish(claimed, made.answer)
        return Moved(state=made.state, answer=made.answer)

    def _change_runs(self, run: str, change: Callable[[Ledger], RunState]) -> Moved:
        require_run_name(run)
        state, notices = self._changed(change)
        return Moved(state=state, answer={}, notices=notices)

    def _is_at_rest(self, rows: WorkflowRows) -> bool:
        if self._window is None or self._exporter is None:
            return True
        bot = rows.bot()
        if bot is not None and not self._store.two_way:
            return self._exporter.is_current(bot)
        path = self._window.choose(rows.windows()) if bot is None else bot.window
        verdict = judge(rows, bot, self._window.look(path))
        return verdict == "current" and (bot is not None or self._window.read_legacy() is None)

    def _changed(self, work: Callable[[Ledger], T]) -> tuple[T, Notices]:
        """Hear the window, do the work, and show what came of it; what goes wrong with the window is only said."""
        plan = self.plan
        if self._window is None or self._exporter is None:
            with self._store.write(plan.bot) as rows:
                if rows.bot() is None:
                    rows.add_bot("")
                self._audit_definition(rows)
                return work(self._ledger(rows)), NOTHING
        with self._exporter.turn() as turn:
            with self._store.write(plan.bot) as rows:
                ledger = self._ledger(rows)
                settled = settle(ledger, self._window, two_way=self._store.two_way, gates=self._gates(rows))
                self._audit_definition(rows)
                made = work(ledger)
                due = turn.prepare(plan, rows, settled)
            warnings = turn.show(plan, due)
        return made, settled.notices + Notices(warnings=warnings)

    def _is_complete(self, row: StoredRun) -> bool:
        state = read_state(self.plan, row.version, row.state)
        return next(open_actions(self.plan, state, self._needs_proof), None) is None

    def weakened(self, notes: JsonObject, *, strict: bool) -> tuple[str, ...]:
        """What the definition no longer demands of a run that was worked on with a stronger one, by its notes."""
        known = notes.get(DEFINITION)
        if known is None or self.strength is None or known["digest"] == self.strength.digest:
            return ()
        return weakenings(Strength.from_json(known), self.strength, strict=strict)

    def _remember_definition(self, rows: WorkflowRows, run: str, state: RunState, stamp: Stamp) -> None:
        """Note with the run what its definition demands; one that demands less is taken only with a human's word."""
        if self.strength is None:
            return
        known = rows.notes(run).get(DEFINITION)
        if known is not None and known["digest"] == self.strength.digest:
            return
        if not self.weakened({DEFINITION: known}, strict=state.strict):
            rows.put_note(run, DEFINITION, self.strength.to_json())
        elif stamp.kind not in _TAKES_BACK:
            raise ToolError(
                "The bot's definition was changed meanwhile and demands less of this run. Nothing was changed.",
                code=ErrorCode.STATE_CONFLICT,
                instruction="Send the same call again; the user is asked whether the definition may be used.",
            )

    def _audit_definition(self, rows: WorkflowRows, *, principal: str = "server", again: bool = False) -> None:
        """Write down which definition is worked with, whenever it is another one or was read again."""
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
        )

    def _ledger(self, rows: WorkflowRows) -> Ledger:
        return Ledger(self.plan, rows, known=self._known)


def open_workflows(url: str | None, project: Path, *, project_id: str | None = None) -> WorkflowStore:
    """The store of a project: its own state file, or the PostgreSQL database that a URL names."""
    if url is None or url.startswith("sqlite:"):
        database = LazyDatabase(project_state(project))
        return SqliteWorkflows(database, on_close=database.close)
    from trysquare.store.workflow_postgres import PostgresWorkflows

    return PostgresWorkflows(url, project.resolve(), project_id=project_id)
