"""Export of the stored state to the state file, never an older state over a newer one."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeAlias

from trysquare.bots.workflow.conflicts import SyncDecision, record_exported, shown_versions
from trysquare.bots.workflow.machine import Entry, Plan, RunState, begin
from trysquare.bots.workflow.state_file import MAIN, dump_state, entry_line, run_part
from trysquare.bots.workflow.sync import StateFileSync, StateFileVersion, digest_of
from trysquare.bots.workflow.transaction import DamagedRecord, Home, RunTransaction
from trysquare.core.errors import ConfigurationError, ToolError
from trysquare.store.workflows import StoredBot, StoredRun, WorkflowStore

_WRITE_ERRORS = (OSError, ToolError, ConfigurationError)


@dataclass(frozen=True, kw_only=True, slots=True)
class PendingExport:
    """Contents to write once the transaction is committed."""

    data: bytes
    digest: str
    bot: StoredBot
    versions: dict[str, int]
    home: Home
    decision: SyncDecision
    """What happens to the present contents before they are overwritten."""


_Lines: TypeAlias = "dict[int, tuple[Entry, bytes]]"
"""Completions with their lines, by the identity of the entry: an entry is a value that does not change."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """A run as it was rendered last, under a plan."""

    plan: Plan
    row: StoredRun
    lines: _Lines
    data: bytes


class Exporter:
    """Writes the state file of one bot: the runs that changed last, each with the completed actions.

    What an export costs does not grow with the history, which stays in the store.

    An export holds the lock from before the transaction of the change until the file is written. The digest of the new
    contents is stored in that same transaction, so that the file is recognized whatever happens in between.
    """

    def __init__(self, store: WorkflowStore, sync: StateFileSync, *, is_complete: Callable[[RunState], bool]) -> None:
        """`is_complete` decides for a finished run whether nothing is left to do."""
        self._is_complete = is_complete
        self._store = store
        self._sync = sync
        self._parts: dict[str, _Part] = {}
        self._exported: PendingExport | None = None
        self._swept = False

    def is_current(self, bot: StoredBot, home: Home) -> bool:
        """Whether this process wrote the file of the present revision, and it is unchanged."""
        last = self._exported
        if last is None or last.bot.revision != bot.revision or last.home != home:
            return False
        return last.digest == self._sync.read(bot.window).digest

    @contextmanager
    def lock(self) -> Generator[str | None]:
        """Lock the state file; yields why that failed. Then a change is still made, and exported by a later call."""
        with ExitStack() as stack:
            try:
                stack.enter_context(self._sync.locked())
            except _WRITE_ERRORS as error:
                yield _stale(error)
                return
            try:
                yield None
            except BaseException:
                # What a rolled-back transaction rendered must not be exported with the next one.
                self._parts.clear()
                raise

    def prepare(self, transaction: RunTransaction, decision: SyncDecision) -> PendingExport | None:
        """The contents to write; None where the file is current, or was edited meanwhile and is to be read first."""
        rows = transaction.rows
        bot = rows.bot()
        if bot is None:
            return None
        present = self._sync.read(bot.window)
        is_garbage = decision.garbage is not None and present.digest == decision.garbage
        if self._store.two_way and not is_garbage and not self._may_replace(transaction, bot, present):
            return None
        pending = self._render(transaction, bot, decision)
        if pending.digest == present.digest:
            # Another process has written it.
            self._exported = pending
            return None
        if self._store.two_way:
            rows.add_export(pending.digest, bot.revision)
        return pending

    def _may_replace(self, transaction: RunTransaction, bot: StoredBot, present: StateFileVersion) -> bool:
        """Whether the file does not exist yet, or is an earlier export."""
        if present.problem is not None:
            return False
        if present.digest is None:
            return bot.known is None
        revision = transaction.rows.export_revision(present.digest)
        if revision == bot.revision != bot.known:
            # A process ended after it had written the file and before it recorded that.
            record_exported(transaction.rows, bot.revision, shown_versions(transaction), transaction.home)
        return revision is not None and revision != bot.revision

    def write(self, plan: Plan, pending: PendingExport | None) -> tuple[str, ...]:
        """Write the file after the commit; returns warnings, and never raises for a failed write."""
        if pending is None:
            return ()
        try:
            self._write(pending)
        except _WRITE_ERRORS as error:
            return (_stale(error),)
        try:
            self._record(plan, pending)
        except _WRITE_ERRORS as error:
            cause = error.__cause__ or error
            return (f"The change and the state file are written, but not that they agree ({cause}). Free disk space.",)
        return ()

    def _write(self, pending: PendingExport) -> None:
        path, garbage = pending.bot.window, pending.decision.garbage
        if not self._swept:
            self._sync.sweep(path)
            self._swept = True
        if pending.decision.refused is not None:
            self._sync.save_refused(path, pending.decision.refused)
        if garbage is not None and self._sync.read(path, contents=True).digest == garbage:
            self._sync.quarantine(path)
        self._sync.write(path, pending.data, pending.digest)
        self._exported = pending

    def _record(self, plan: Plan, pending: PendingExport) -> None:
        """Record what the file holds. Without that, the next call compares the file and records it."""
        if self._store.two_way:
            # A crash of the machine may lose this: then the file is compared, and written once more.
            with self._store.write(plan.bot, durable=False) as rows:
                record_exported(rows, pending.bot.revision, pending.versions, pending.home)

    def _render(self, transaction: RunTransaction, bot: StoredBot, decision: SyncDecision) -> PendingExport:
        plan, found, home = transaction.plan, transaction.shown_runs(), transaction.home
        shown = ((row, self._part(transaction, row)) for row in found)
        parts = {_shown_name(row.name, home): part for row, part in shown if part is not None}
        newest = max((row.updated for row in found), default="")
        if MAIN not in parts:
            parts[MAIN] = run_part(plan, MAIN, begin(plan), at=newest, lines=(), complete=False)
        # Runs that are no longer shown are forgotten.
        self._parts = {row.name: self._parts[row.name] for row in found if row.name in self._parts}
        data, versions = dump_state(parts), {row.name: row.version for row in found}
        digest = digest_of(data)
        return PendingExport(data=data, digest=digest, bot=bot, versions=versions, home=home, decision=decision)

    def _part(self, transaction: RunTransaction, row: StoredRun) -> bytes | None:
        """A run as the file shows it; None for one whose record is damaged, which the calls of that run report."""
        cached = self._parts.get(row.name)
        if cached is not None and cached.plan is transaction.plan and cached.row == row:
            return cached.data
        try:
            state = transaction.read(row)
        except DamagedRecord:
            return None
        plan, name = transaction.plan, _shown_name(row.name, transaction.home)
        known = {} if cached is None or cached.plan is not plan else cached.lines
        lines = _rendered(plan, name, state, known)
        complete = state.finished and self._is_complete(state)
        data = run_part(
            plan, name, state, at=row.updated, lines=[line for _, line in lines.values()], complete=complete
        )
        self._parts[row.name] = _Part(plan=plan, row=row, lines=lines, data=data)
        return data


def _shown_name(run: str, home: Home) -> str:
    """The run at the top of the file stands where the main run is."""
    return MAIN if run == home.run else run


def _rendered(plan: Plan, run: str, state: RunState, known: _Lines) -> _Lines:
    """The latest completions of a run, oldest first. Only those that changed are rendered anew."""
    # This is what a change costs for every action of the bot, so nothing is hashed or compared here but numbers.
    completed = [entry for entry in state.latest.values() if entry.kind == "completed"]
    completed.sort(key=attrgetter("version"))
    return {id(each): known.get(id(each)) or (each, entry_line(plan, run, each)) for each in completed}


def _stale(error: Exception) -> str:
    return f"The state file is stale: the state is stored, but the file could not be written ({error})."
