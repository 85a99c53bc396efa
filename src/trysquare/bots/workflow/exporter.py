"""Export of the stored state to the state file, never an older state over a newer one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from trysquare.bots.workflow.conflicts import SyncDecision, record_exported, run_versions
from trysquare.bots.workflow.machine import Plan, begin
from trysquare.bots.workflow.state_file import MAIN, Pieces, RunPart, add_lines, dump_state, entry_line
from trysquare.bots.workflow.sync import Hash, StateFileSync, StateFileVersion, digest_of, joined_digest
from trysquare.bots.workflow.transaction import read_entry, read_head
from trysquare.core.errors import ConfigurationError, ToolError
from trysquare.store.workflows import StoredBot, StoredRun, WorkflowRows, WorkflowStore

_WRITE_ERRORS = (OSError, ToolError, ConfigurationError)


@dataclass(frozen=True, kw_only=True, slots=True)
class PendingExport:
    """Contents to write once the transaction is committed."""

    pieces: Pieces
    digest: str
    bot: StoredBot
    versions: dict[str, int]
    decision: SyncDecision
    """What happens to the present contents before they are overwritten."""


@dataclass(kw_only=True, slots=True)
class _Lines:
    """The rendered history of a generation of a run, which only grows, and its hash so far."""

    generation: int
    count: int = 0
    body: bytearray = field(default_factory=bytearray)
    hashed: Hash = field(default_factory=hashlib.sha256)


class Exporter:
    """Writes the state file of one bot. Rendered lines are cached, so that a long history costs little.

    An export holds the lock from before the transaction of the change until the file is written. The digest of the new
    contents is stored in that same transaction, so that the file is recognized whatever happens in between.
    """

    def __init__(self, store: WorkflowStore, sync: StateFileSync, *, is_complete: Callable[[StoredRun], bool]) -> None:
        """`is_complete` decides for a finished run whether nothing is left to do."""
        self._is_complete = is_complete
        self._store = store
        self._sync = sync
        self._lines: dict[str, _Lines] = {}
        self._exported: PendingExport | None = None
        self._swept = False
        self._is_rendered = False

    def is_current(self, bot: StoredBot) -> bool:
        """Whether this process wrote the file of the present revision, and it is unchanged."""
        last = self._exported
        if last is None or last.bot.revision != bot.revision:
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
            self._is_rendered = False
            try:
                yield None
            except BaseException:
                if self._is_rendered:
                    # Lines of a rolled-back transaction must not be exported with the next one.
                    self._lines.clear()
                raise

    def prepare(self, plan: Plan, rows: WorkflowRows, decision: SyncDecision) -> PendingExport | None:
        """The contents to write; None where the file is current, or was edited meanwhile and is to be read first."""
        bot = rows.bot()
        if bot is None:
            return None
        present = self._sync.read(bot.window)
        is_garbage = decision.garbage is not None and present.digest == decision.garbage
        if self._store.two_way and not is_garbage and not self._may_replace(rows, bot, present):
            return None
        self._is_rendered = True
        pending = self._render(plan, rows, bot, decision)
        if pending.digest == present.digest:
            # Another process has written it.
            self._exported = pending
            return None
        if self._store.two_way:
            rows.add_export(pending.digest, bot.revision)
        return pending

    def _may_replace(self, rows: WorkflowRows, bot: StoredBot, present: StateFileVersion) -> bool:
        """Whether the file does not exist yet, or is an earlier export."""
        if present.problem is not None:
            return False
        if present.digest is None:
            return bot.known is None
        revision = rows.export_revision(present.digest)
        if revision == bot.revision != bot.known:
            # A process ended after it had written the file and before it recorded that.
            record_exported(rows, bot.revision, run_versions(rows))
        return revision is not None and revision != bot.revision

    def write(self, plan: Plan, pending: PendingExport | None) -> tuple[str, ...]:
        """Write the file after the commit; returns warnings, and never raises for a failed write."""
        try:
            if pending is not None:
                self._write(plan, pending)
        except _WRITE_ERRORS as error:
            return (_stale(error),)
        return ()

    def _write(self, plan: Plan, pending: PendingExport) -> None:
        path, garbage = pending.bot.window, pending.decision.garbage
        if not self._swept:
            self._sync.sweep(path)
            self._swept = True
        if pending.decision.refused is not None:
            self._sync.save_refused(path, pending.decision.refused)
        if garbage is not None and self._sync.read(path, contents=True).digest == garbage:
            self._sync.quarantine(path)
        self._sync.write(path, pending.pieces, pending.digest)
        self._exported = pending
        if self._store.two_way:
            # A crash of the machine may lose this: then the file is compared, and written once more.
            with self._store.write(plan.bot, durable=False) as rows:
                record_exported(rows, pending.bot.revision, pending.versions)

    def _render(self, plan: Plan, rows: WorkflowRows, bot: StoredBot, decision: SyncDecision) -> PendingExport:
        found = rows.runs()
        parts = {row.name: self._part(plan, rows, row) for row in found}
        parts.setdefault(MAIN, RunPart(state=begin(plan), at=max((row.updated for row in found), default=""), body=b""))
        pieces, versions = dump_state(plan, parts), {row.name: row.version for row in found}
        return PendingExport(pieces=pieces, digest=self._digest(pieces), bot=bot, versions=versions, decision=decision)

    def _part(self, plan: Plan, rows: WorkflowRows, row: StoredRun) -> RunPart:
        state = read_head(plan, row.version, row.state)
        complete = state.finished and self._is_complete(row)
        return RunPart(state=state, at=row.updated, body=self._body(plan, rows, row), complete=complete)

    def _body(self, plan: Plan, rows: WorkflowRows, row: StoredRun) -> bytearray:
        cached = self._lines.get(row.name)
        if cached is None or cached.generation != row.generation or cached.count > row.entries:
            cached = self._lines[row.name] = _Lines(generation=row.generation)
        if cached.count < row.entries:
            added = rows.entries(row.name, row.generation, after=cached.count)
            before = len(cached.body)
            add_lines(row.name, cached.body, [entry_line(plan, read_entry(each.body)) for each in added])
            cached.hashed.update(cached.body[before:])
            cached.count += len(added)
        return cached.body

    def _digest(self, pieces: Pieces) -> str:
        """The hash of the whole file; that of the main run's history is cached."""
        head, *rest = pieces
        main = self._lines.get(MAIN)
        if main is None or not rest or rest[0] is not main.body or head.find(b"[") != len(head) - 1:
            return digest_of(b"".join(pieces))
        hashed = main.hashed.copy()
        for piece in rest[1:]:
            hashed.update(piece)
        return joined_digest(bytes(head), hashed)


def _stale(error: Exception) -> str:
    return f"The state file is stale: the state is stored, but the file could not be written ({error})."
