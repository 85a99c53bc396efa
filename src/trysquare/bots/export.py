"""Exporter: shows the state in the window after a change, and never an older state over a newer one.

Whoever shows something holds the window from before the transaction that makes the change until the file is written.
What the file will hold is remembered in that same transaction, so that it is known again whatever happens in between.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from trysquare.bots.plan import Plan
from trysquare.bots.run_record import read_entry, read_head
from trysquare.bots.state_file import MAIN, Pieces, RunPart, add_lines, dump_state, entry_line
from trysquare.bots.window import Hash, ProjectWindow, Seen, digest_of, joined_digest
from trysquare.bots.window_rules import Settled, know_shown
from trysquare.bots.workflow import begin
from trysquare.core.errors import ConfigurationError, ToolError
from trysquare.store.workflow import StoredBot, StoredRun, WorkflowRows, WorkflowStore

_TROUBLE = (OSError, ToolError, ConfigurationError)


@dataclass(frozen=True, kw_only=True, slots=True)
class Due:
    """What is to be shown once the transaction is committed."""

    pieces: Pieces
    digest: str
    bot: StoredBot
    versions: dict[str, int]
    settled: Settled
    """What was heard of the file, and must not be lost when it is written over."""


@dataclass(kw_only=True, slots=True)
class _Lines:
    """The rendered history of a generation of a run, which only grows, and its hash so far."""

    generation: int
    count: int = 0
    body: bytearray = field(default_factory=bytearray)
    hashed: Hash = field(default_factory=hashlib.sha256)


class Exporter:
    """Writes the window of one bot. It keeps rendered lines, so that a long history costs little."""

    def __init__(
        self, store: WorkflowStore, window: ProjectWindow, *, is_complete: Callable[[StoredRun], bool]
    ) -> None:
        """`is_complete` says of a run that reached its end whether nothing is left to do in it."""
        self._is_complete = is_complete
        self._store = store
        self._window = window
        self._lines: dict[str, _Lines] = {}
        self._shown: Due | None = None
        self._swept = False
        self._is_rendered = False

    def is_current(self, bot: StoredBot) -> bool:
        """Whether this process knows the file of the present revision, and it still lies there."""
        shown = self._shown
        return (
            shown is not None
            and shown.bot.revision == bot.revision
            and self._window.look(bot.window).digest == shown.digest
        )

    @contextmanager
    def turn(self) -> Generator[Turn]:
        """The right to show something. Without it a change is made all the same, and shown by a later call."""
        with ExitStack() as stack:
            try:
                stack.enter_context(self._window.locked())
            except _TROUBLE as error:
                yield Turn(exporter=self, trouble=_stale(error))
                return
            self._is_rendered = False
            try:
                yield Turn(exporter=self)
            except BaseException:
                if self._is_rendered:
                    # Lines of a transaction that was taken back must not be shown with the next one.
                    self._lines.clear()
                raise

    def due(self, plan: Plan, rows: WorkflowRows, settled: Settled) -> Due | None:
        """What is to be shown, or None where nothing is, or where a person was faster and is to be heard first."""
        bot = rows.bot()
        if bot is None:
            return None
        seen = self._window.look(bot.window)
        is_garbage = settled.garbage is not None and seen.digest == settled.garbage
        if self._store.two_way and not is_garbage and not self._may_replace(rows, bot, seen):
            return None
        self._is_rendered = True
        due = self._rendered(plan, rows, bot, settled)
        if due.digest == seen.digest:
            # Another process has written it.
            self._shown = due
            return None
        if self._store.two_way:
            rows.add_export(due.digest, bot.revision)
        return due

    def _may_replace(self, rows: WorkflowRows, bot: StoredBot, seen: Seen) -> bool:
        """Whether nothing lies there yet, or an earlier state that this program wrote."""
        if seen.problem is not None:
            return False
        if seen.digest is None:
            return bot.known is None
        revision = rows.export_revision(seen.digest)
        if revision == bot.revision != bot.known:
            # A process died after it had written the file and before it could say so.
            know_shown(rows, bot.revision, {row.name: row.version for row in rows.runs()})
        return revision is not None and revision != bot.revision

    def show(self, plan: Plan, due: Due) -> None:
        """Write the file. The change that it shows is committed, whatever becomes of the file."""
        path = due.bot.window
        if not self._swept:
            self._window.sweep(path)
            self._swept = True
        if due.settled.refused is not None:
            self._window.keep_refused(path, due.settled.refused)
        garbage = due.settled.garbage
        if garbage is not None and self._window.look(path, contents=True).digest == garbage:
            self._window.set_aside(path)
        self._window.write(path, due.pieces, due.digest)
        self._shown = due
        if self._store.two_way:
            # A crash of the machine may forget this: then the file is compared, and shown once more.
            with self._store.write(plan.bot, durable=False) as rows:
                know_shown(rows, due.bot.revision, due.versions)

    def _rendered(self, plan: Plan, rows: WorkflowRows, bot: StoredBot, settled: Settled) -> Due:
        found = rows.runs()
        parts = {row.name: self._part(plan, rows, row) for row in found}
        parts.setdefault(MAIN, RunPart(state=begin(plan), at=max((row.updated for row in found), default=""), body=b""))
        pieces = dump_state(plan, parts)
        versions = {row.name: row.version for row in found}
        return Due(pieces=pieces, digest=self._digest(pieces), bot=bot, versions=versions, settled=settled)

    def _part(self, plan: Plan, rows: WorkflowRows, row: StoredRun) -> RunPart:
        state = read_head(plan, row.version, row.state)
        complete = state.finished and self._is_complete(row)
        return RunPart(state=state, at=row.updated, body=self._body(plan, rows, row), complete=complete)

    def _body(self, plan: Plan, rows: WorkflowRows, row: StoredRun) -> bytearray:
        kept = self._lines.get(row.name)
        if kept is None or kept.generation != row.generation or kept.count > row.entries:
            kept = self._lines[row.name] = _Lines(generation=row.generation)
        if kept.count < row.entries:
            added = rows.entries(row.name, row.generation, after=kept.count)
            before = len(kept.body)
            add_lines(row.name, kept.body, [entry_line(plan, read_entry(each.body)) for each in added])
            kept.hashed.update(kept.body[before:])
            kept.count += len(added)
        return kept.body

    def _digest(self, pieces: Pieces) -> str:
        """The hash of the whole; that of the main run's history is already known."""
        head, *rest = pieces
        main = self._lines.get(MAIN)
        if main is None or not rest or rest[0] is not main.body or head.find(b"[") != len(head) - 1:
            return digest_of(b"".join(pieces))
        hashed = main.hashed.copy()
        for piece in rest[1:]:
            hashed.update(piece)
        return joined_digest(bytes(head), hashed)


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One call's right to show what it changes, or the reason why it has none."""

    exporter: Exporter
    trouble: str | None = None

    def prepare(self, plan: Plan, rows: WorkflowRows, settled: Settled) -> Due | None:
        """Remember what is to be shown, inside the transaction of the change."""
        return None if self.trouble is not None else self.exporter.due(plan, rows, settled)

    def show(self, plan: Plan, due: Due | None) -> tuple[str, ...]:
        """Show it after the commit; returns what went wrong, and raises nothing for it."""
        if self.trouble is not None or due is None:
            return () if self.trouble is None else (self.trouble,)
        try:
            self.exporter.show(plan, due)
        except _TROUBLE as error:
            return (_stale(error),)
        return ()


def _stale(error: Exception) -> str:
    return f"window stale: the state is stored, but the state file could not be written ({error})."
