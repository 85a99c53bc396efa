"""What the contents of the window mean: our own export, a person's edit, a reset, a restored copy, or garbage.

The row in the database is the truth. The window was touched by a person when its contents are none that this program
wrote or took over since the last ones known to lie there; an older copy of ours counts as an edit too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from trysquare.bots.ledger import Ledger, Stamp
from trysquare.bots.plan import Plan
from trysquare.bots.run_record import head_record, read_entry
from trysquare.bots.state_file import Imported, UnreadableState, is_export, parse_state
from trysquare.bots.window import NAME, ProjectWindow, Seen, text_of
from trysquare.bots.window_gates import passed_gate, without_delivery
from trysquare.bots.workflow import Entry, NeedsProof, RunState, begin, following
from trysquare.store.audit import utc_now
from trysquare.store.location import FOLDER
from trysquare.store.workflow import StoredBot, StoredRun, WorkflowRows

Verdict: TypeAlias = Literal["current", "stale", "deleted", "edited", "unreadable"]
"""The window shows the row; shows an earlier one of ours; is gone; was edited; or cannot be read just now."""

PERSON = "file"
"""Who changed the state when the window was edited or deleted: somebody with access to the file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Notices:
    """What a caller must hear beside the answer."""

    warnings: tuple[str, ...] = ()
    recovered: tuple[str, ...] = ()
    inconsistent: tuple[str, ...] = ()

    def __add__(self, other: Notices) -> Notices:
        return Notices(
            warnings=self.warnings + other.warnings,
            recovered=self.recovered + other.recovered,
            inconsistent=self.inconsistent + other.inconsistent,
        )


NOTHING = Notices()


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """The window was heard."""

    notices: Notices = NOTHING
    garbage: str | None = None
    """The hash of unreadable contents that are to be moved aside once this is committed."""
    refused: bytes | None = None
    """Contents that were not taken over, or not all of them; a copy is to be kept."""


def judge(rows: WorkflowRows, bot: StoredBot | None, seen: Seen) -> Verdict:
    """What the window's contents are, by what is remembered of it."""
    if seen.problem is not None:
        return "unreadable"
    if bot is None:
        return "current" if seen.digest is None else "edited"
    if seen.digest is None:
        return "deleted" if bot.known is not None else ("stale" if bot.revision else "current")
    revision = rows.export_revision(seen.digest)
    if revision is None:
        return "edited"
    # A file that is there but not yet known to be there could be deleted without being missed.
    return "current" if revision == bot.revision == bot.known else "stale"


@dataclass(frozen=True, kw_only=True, slots=True)
class EditGates:
    """What an edit of the window may not pass."""

    needs_proof: NeedsProof
    strict: bool = False
    """Whether this process is strict, and every run with it."""
    weakened: Callable[[str, bool], bool] = lambda _run, _strict: False
    """Whether the definition demands less than the one that a run was worked on with: then no edit is honoured."""

    def of(self, state: RunState) -> NeedsProof:
        """The actions of a run that only a human can close."""
        return (lambda _: True) if self.strict or state.strict else self.needs_proof


def settle(ledger: Ledger, window: ProjectWindow, *, two_way: bool, gates: EditGates) -> Settled:
    """Take over what a person did to the window, inside the transaction of the call that found it."""
    bot = ledger.rows.bot()
    if bot is None:
        return _first_settled(ledger, window, gates, lost=two_way)
    if not two_way:
        return Settled()
    seen = window.look(bot.window)
    verdict = judge(ledger.rows, bot, seen)
    if verdict == "unreadable":
        warning = f"{bot.window} cannot be read ({seen.problem}); the stored state was used, and the file left alone."
        return Settled(notices=Notices(warnings=(warning,)))
    if verdict == "deleted":
        return _reset(ledger, bot)
    if verdict == "edited":
        # What is remembered and what is taken over must be one and the same reading.
        return _taken_over(ledger, bot.window, window.look(bot.window, contents=True), gates)
    return Settled()


def _first_settled(ledger: Ledger, window: ProjectWindow, gates: EditGates, *, lost: bool) -> Settled:
    """A bot's first call in a project: it may find a state file that came with the folder, or a legacy one.

    With `lost`, a file that this program wrote means that the database which it showed is gone: that is reported.
    """
    settled = _first_found(ledger, window, gates)
    copies = window.damaged_databases() if lost else ()
    bot = ledger.rows.bot()
    shown = None if bot is None else window.look(bot.window, contents=True).data
    if not lost or not (copies or (shown is not None and is_export(text_of(shown)))):
        return settled
    ledger.rows.audit(kind="workflow.recovered", principal=PERSON, body={"copies": list(copies)})
    return replace(settled, notices=settled.notices + Notices(recovered=(_loss(copies, bool(shown), bot),)))


def _loss(copies: Sequence[str], is_shown: bool, bot: StoredBot | None) -> str:
    what = f"was damaged and set aside as {copies[-1]}" if copies else "holds nothing of this bot"
    path = NAME if bot is None else bot.window
    taken = f"What {path} shows was taken over" if is_shown else "The runs begin again at the first action"
    return (
        f"The database {FOLDER}/state.db {what}. {taken}. Receipts, the audit, earlier versions and request keys from "
        "before are not in use any more; tell the user."
    )


def _first_found(ledger: Ledger, window: ProjectWindow, gates: EditGates) -> Settled:
    path = window.choose(ledger.rows.windows())
    ledger.rows.add_bot(path)
    seen = window.look(path, contents=True)
    if seen.digest is not None:
        return _taken_over(ledger, path, seen, gates)
    legacy = window.read_legacy()
    if legacy is None:
        return Settled()
    place, text = legacy
    try:
        imported = parse_state(ledger.plan, text)
    except UnreadableState as error:
        warning = f"The state file {place} of the bot's own folder was not taken over: {error}."
        return Settled(notices=Notices(warnings=(warning,)))
    refused = _import(ledger, imported, gates, kind="migrated")
    warning = f"The state was taken over from {place}, once; from now on it lies in {path} of the project."
    return Settled(notices=Notices(warnings=(warning, *refused), inconsistent=imported.inconsistent))


def _reset(ledger: Ledger, bot: StoredBot) -> Settled:
    stamp = Stamp(kind="reset_by_delete", principal=PERSON, at=utc_now())
    for row in ledger.rows.runs():
        # A fresh start forgets the work, and not how strict it is.
        fresh = replace(begin(ledger.plan), version=row.version + 1, strict=ledger.read(row).strict)
        ledger.begin_generation(row.name, fresh, (), stamp)
    ledger.rows.forget_window()
    warning = f"{bot.window} was deleted, so the workflow begins again at its first action."
    return Settled(notices=Notices(warnings=(warning,)))


def _taken_over(ledger: Ledger, path: str, seen: Seen, gates: EditGates) -> Settled:
    if seen.data is None:
        return Settled()  # it went away between two looks; the next call hears of it
    try:
        imported = parse_state(ledger.plan, text_of(seen.data))
    except UnreadableState as error:
        # Forgotten before it is moved, so that a crash in between is not taken for a deletion.
        ledger.rows.forget_window()
        ledger.rows.audit(kind="workflow.unreadable", principal=PERSON, body={"reason": str(error)[:200]})
        recovered = f"{path} could not be read: {error}. It was set aside as {NAME}.corrupt-*; the stored state stands."
        return Settled(notices=Notices(recovered=(recovered,)), garbage=seen.digest)
    known = ledger.rows.runs()
    refused = _import(ledger, imported, gates, kind="external_edit" if known else "imported")
    bot = ledger.rows.bot()
    if seen.digest is not None and bot is not None:
        # In the same transaction, or a crash before the export would take the edit over a second time.
        ledger.rows.add_export(seen.digest, bot.revision)
        know_shown(ledger.rows, bot.revision, {row.name: row.version for row in ledger.rows.runs()})
        # The file shows the edit in its own words; counting once more makes it due to be written in ours.
        ledger.rows.count_change()
    taken = (f"{path} was edited, and the edit was taken over.",) if known and not refused else ()
    notices = Notices(warnings=(*taken, *refused), inconsistent=imported.inconsistent)
    return Settled(notices=notices, refused=seen.data if refused else None)


def _import(ledger: Ledger, imported: Imported, gates: EditGates, *, kind: str) -> list[str]:
    """Take over what the file says of each run; returns what was refused, and why."""
    stamp = Stamp(kind=kind, principal=PERSON, at=utc_now())
    refused: list[str] = []
    for name, state in imported.runs.items():
        edit = _edit_of(ledger, name, state, imported.histories[name])
        needs_proof = gates.of(edit.state)
        passed = passed_gate(ledger.plan, edit.now, edit.state, edit.added(), needs_proof)
        weaker = _is_moved(edit) and gates.weakened(name, edit.state.strict)
        if passed is None and not weaker:
            _apply(ledger, name, edit, without_delivery(edit.now, edit.state, needs_proof), stamp)
            continue
        where = edit.now.current if passed is None else passed
        body = {"run": name, "passes": where.path(ledger.plan.bot), "weaker_definition": weaker}
        ledger.rows.audit(kind="workflow.edit_refused", principal=PERSON, body=body)
        refused.append(_refusal(name, where.path(ledger.plan.bot)))
        if edit.stored is None and edit.state.strict:
            # What the file says is not believed, but a run that it calls strict is strict.
            ledger.begin_generation(name, replace(edit.now, version=edit.state.version, strict=True), (), stamp)
    return refused


def _is_moved(edit: _Edit) -> bool:
    """Whether an edit changes more than its words."""
    return edit.stored is not None and replace(edit.state, version=edit.now.version) != edit.now


def _refusal(run: str, passed: str) -> str:
    return (
        f"The state file was edited, and the edit of run `{run}` was not taken over: it would pass {passed}, "
        f"which only a person can close. A copy of it was kept as {NAME}.refused-*; the stored state stands."
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Edit:
    """What a file makes of a run: from the state that is stored, with its history, to another."""

    now: RunState
    state: RunState
    history: Sequence[Entry]
    stored: Sequence[Entry] | None = None
    """The history that is stored; None for a run that is not."""

    def added(self) -> Iterator[Entry]:
        """The lines of the history that are not stored."""
        stored = frozenset(self.stored or ())
        return (entry for entry in self.history if entry not in stored)


def _edit_of(ledger: Ledger, name: str, state: RunState, history: tuple[Entry, ...]) -> _Edit:
    row = ledger.rows.run(name)
    if row is not None:
        return _edit_of_known(ledger, row, state, history)
    claimed = tuple(_claimed(entry) for entry in history)
    begun = _with_history(state, claimed, _newest(state, claimed))
    return _Edit(now=begin(ledger.plan), state=begun, history=claimed)


def _apply(ledger: Ledger, name: str, edit: _Edit, after: RunState, stamp: Stamp) -> None:
    kept = [] if edit.stored is None else [*edit.stored]
    added = edit.history[len(kept) :]
    if edit.stored is None or [*edit.history[: len(kept)]] != kept:
        ledger.begin_generation(name, after, edit.history, stamp)
    elif added or replace(after, version=edit.now.version) != edit.now:
        ledger.save(name, after, added, stamp)


def _edit_of_known(ledger: Ledger, row: StoredRun, state: RunState, history: tuple[Entry, ...]) -> _Edit:
    present = ledger.rows.entries(row.name, row.generation)
    lines = [read_entry(each.body) for each in present]
    # Our own lines, with what the file does not show of them.
    ours = {line: line for line in lines}
    read = [ours[entry] if entry in ours else _claimed(entry) for entry in history]
    # What changed after the file was last written stood in no file: who edited it cannot have meant to undo it.
    shown = _shown(ledger.rows).get(row.name, 0)
    unseen = [line for line, each in zip(lines, present, strict=True) if each.version > shown and line not in read]
    now = ledger.read(row)
    version = max(now.version, _newest(state, [*read, *unseen])) + 1
    pointed = now if _is_untouched(ledger, row, state, shown) else _past(ledger.plan, state, unseen)
    # An edit may make a run strict, and cannot take it back.
    pointed = replace(pointed, strict=now.strict or state.strict)
    read += unseen
    return _Edit(now=now, state=_with_history(pointed, read, version), history=read, stored=lines)


def _is_untouched(ledger: Ledger, row: StoredRun, state: RunState, shown: int) -> bool:
    """Whether the file still points where it pointed when it was written, so that the row may have moved on since."""
    event = ledger.rows.event_at(row.name, shown)
    return event is not None and shown < row.version and event.state == head_record(state)


def _past(plan: Plan, state: RunState, unseen: Sequence[Entry]) -> RunState:
    """A pointer that a person set to an action which was completed meanwhile goes on from there."""
    state = _with_history(state, [*state.latest.values(), *unseen], state.version)
    if not any(line.position == state.current for line in unseen) or not state.is_completed(state.current):
        return state
    after = following(plan, state, state.current)
    if after is None:
        return replace(state, finished=True)
    return replace(state, current=after, pointers={**state.pointers, after.behavior: after.action}, delivered=False)


def know_shown(rows: WorkflowRows, revision: int, versions: Mapping[str, int]) -> None:
    """Note that the window on the disk shows a revision, and which version of each run that is."""
    rows.know_export(revision)
    rows.put_note(OWN, "shown", dict(versions))


def _shown(rows: WorkflowRows) -> dict[str, int]:
    return rows.notes(OWN).get("shown", {})


OWN = ""
"""Notes of no run, which no run can be called."""


def _with_history(state: RunState, history: Sequence[Entry], version: int) -> RunState:
    return replace(state, version=version, latest={entry.position: entry for entry in history})


def _newest(state: RunState, history: Sequence[Entry]) -> int:
    return max((state.version, *(entry.version for entry in history)))


def _claimed(entry: Entry) -> Entry:
    """A line that came from a file proves nothing, whatever it says."""
    return replace(entry, approval="claimed") if entry.approval == "proven" else entry
