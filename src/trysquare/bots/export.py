"""Exporter: writes the window after a commit, one process at a time, and never an older state over a newer one."""

from __future__ import annotations

from dataclasses import dataclass

from trysquare.bots.ledger import Ledger
from trysquare.bots.plan import Plan
from trysquare.bots.run_record import read_entry
from trysquare.bots.state_file import MAIN, RunPart, dump_state, entry_line, join_lines
from trysquare.bots.window import ProjectWindow, digest_of
from trysquare.bots.window_rules import know_shown
from trysquare.bots.workflow import begin
from trysquare.core.errors import ConfigurationError, ToolError
from trysquare.store.workflow import StoredBot, StoredRun, WorkflowRows, WorkflowStore


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rendered:
    data: bytes
    digest: str
    bot: StoredBot
    versions: dict[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Lines:
    """The rendered history of a generation of a run, which only grows."""

    generation: int
    count: int = 0
    body: str = ""


class Exporter:
    """Writes the window of one bot. It keeps rendered lines, so that a long history costs little."""

    def __init__(self, store: WorkflowStore, window: ProjectWindow) -> None:
        self._store = store
        self._window = window
        self._lines: dict[str, _Lines] = {}
        self._last: _Rendered | None = None

    def is_current(self, bot: StoredBot) -> bool:
        """Whether this process wrote the present revision and the file still shows it."""
        last = self._last
        return (
            last is not None
            and last.bot.revision == bot.revision
            and self._window.look(bot.window).digest == last.digest
        )

    def export(self, plan: Plan, *, garbage: str | None = None) -> tuple[str, ...]:
        """Show the present state, after moving unreadable contents aside; returns warnings, and raises nothing."""
        try:
            with self._window.locked():
                self._export(plan, garbage)
        except (OSError, ToolError, ConfigurationError) as error:
            return (f"window stale: the state is stored, but the state file could not be written ({error}).",)
        return ()

    def _export(self, plan: Plan, garbage: str | None) -> None:
        # What is about to be written must be remembered before, where edits are told from our own writing.
        begin_transaction = self._store.write if self._store.two_way else self._store.read
        with begin_transaction(plan.bot) as rows:
            bot = rows.bot()
            if bot is None:
                return
            self._window.sweep(bot.window)
            if garbage is not None and self._window.look(bot.window, contents=True).digest == garbage:
                self._window.set_aside(bot.window)
            rendered = self._due(plan, rows, bot)
            if rendered is not None and self._store.two_way:
                rows.add_export(rendered.digest, bot.revision)
        if rendered is None:
            return
        self._window.write(rendered.bot.window, rendered.data)
        self._last = rendered
        if self._store.two_way:
            with self._store.write(plan.bot) as rows:
                know_shown(rows, rendered.bot.revision, rendered.versions)

    def _due(self, plan: Plan, rows: WorkflowRows, bot: StoredBot) -> _Rendered | None:
        """What is to be written, or None where nothing is, or where a person was faster and is to be heard first."""
        seen = self._window.look(bot.window)
        if self._store.two_way:
            if seen.problem is not None or (seen.digest is None and bot.known is not None):
                return None
            shown = None if seen.digest is None else rows.export_revision(seen.digest)
            if shown is not None and shown == bot.revision:
                # A process died after it had written the file and before it could say so.
                know_shown(rows, bot.revision, {row.name: row.version for row in rows.runs()})
            if seen.digest is not None and (shown is None or shown == bot.revision):
                return None
        rendered = self._render(plan, rows, bot)
        return None if rendered.digest == seen.digest else rendered

    def _render(self, plan: Plan, rows: WorkflowRows, bot: StoredBot) -> _Rendered:
        ledger = Ledger(plan, rows)
        found = rows.runs()
        parts = {
            row.name: RunPart(state=ledger.read(row), at=row.updated, body=self._body(plan, rows, row)) for row in found
        }
        parts.setdefault(MAIN, RunPart(state=begin(plan), at=max((row.updated for row in found), default=""), body=""))
        data = dump_state(plan, parts).encode("utf-8")
        versions = {row.name: row.version for row in found}
        return _Rendered(data=data, digest=digest_of(data), bot=bot, versions=versions)

    def _body(self, plan: Plan, rows: WorkflowRows, row: StoredRun) -> str:
        kept = self._lines.get(row.name)
        if kept is None or kept.generation != row.generation or kept.count > row.entries:
            kept = _Lines(generation=row.generation)
        if kept.count < row.entries:
            added = rows.entries(row.name, row.generation, after=kept.count)
            lines = [entry_line(plan, read_entry(each.body)) for each in added]
            body = join_lines(row.name, lines, body=kept.body)
            kept = _Lines(generation=row.generation, count=kept.count + len(lines), body=body)
        self._lines[row.name] = kept
        return kept.body
