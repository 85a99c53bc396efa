"""Classification and import of edits of the state file, and the gates that an edit may not pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from trysquare.bots.workflow import machine
from trysquare.bots.workflow.machine import APPROVED, INITIALIZE, Depth, Entry, NeedsProof, Plan, Position, RunState
from trysquare.bots.workflow.state_file import MAIN, Imported, UnreadableState, is_export, parse_state
from trysquare.bots.workflow.sync import NAME, StateFileSync, StateFileVersion, text_of
from trysquare.bots.workflow.transaction import (
    UNSIGNED,
    DamagedRecord,
    Home,
    Proofs,
    RunTransaction,
    Signatures,
    Stamp,
    head_text,
)
from trysquare.store.audit import utc_now
from trysquare.store.location import FOLDER
from trysquare.store.workflows import StoredBot, StoredRun, WorkflowRows

FileStatus: TypeAlias = Literal["current", "stale", "deleted", "edited", "unreadable"]
"""The file shows the stored state, or an earlier one; is gone; was edited; or cannot be read now."""

EDITOR = "file"
"""Principal of a change by an edit or deletion of the file: anyone with access to it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Notices:
    """What a response reports in addition to its result."""

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
class SyncDecision:
    """What was done with the present contents of the state file."""

    notices: Notices = NOTHING
    garbage: str | None = None
    """The digest of unreadable contents, which are quarantined after the commit."""
    refused: bytes | None = None
    """Contents that were not imported, or not completely; a copy is stored."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EditGates:
    """What an edit of the state file may not pass."""

    needs_proof: NeedsProof
    strict: bool = False
    """Whether this process is strict, and every run with it."""
    weakened: Callable[[str, bool], bool] = lambda _run, _strict: False
    """Whether the definition demands less than the one that a run was started with: then no edit is imported."""
    signatures: Signatures = UNSIGNED

    def of(self, state: RunState) -> NeedsProof:
        """The actions of a run that only a human can close."""
        waived = replace(state, strict=self.strict or state.strict).waived
        if self.strict or state.strict:
            return lambda each: each not in waived
        return lambda each: each not in waived and self.needs_proof(each)

    def not_proven(self, run: str, state: RunState) -> NeedsProof:
        """The actions that an edit may not pass: where receipts are signed, only those that none proves."""
        receipts, needs_proof = self.signatures.of(state), self.of(state)
        if receipts is None:
            return needs_proof

        def is_closed(position: Position) -> bool:
            entry = state.latest.get(position)
            if position.action == INITIALIZE and not self.needs_proof(position):
                return True
            return entry is not None and entry.is_approved and receipts.evidence(run, entry) is not None

        return lambda position: needs_proof(position) and not is_closed(position)

    def taken(self, run: str, state: RunState, entry: Entry) -> Entry:
        """A line that came from a file: with its receipt it is what was proven, else it proves nothing."""
        receipts = self.signatures.of(state)
        found = None if receipts is None or entry.kind != "completed" else receipts.evidence(run, entry)
        return found or _as_claimed(entry)


def passed_gate(
    plan: Plan, now: RunState, edited: RunState, added: Iterable[Entry], needs_proof: NeedsProof
) -> Position | None:
    """The first action that an edit would pass without its proof, or None.

    Anyone with file tools can write the file. Where proof is needed, an edit may go back and reopen actions, but it
    closes nothing, and its pointers pass no action that waits for proof. `added` are the edit's new lines of history:
    a file does not close an action a second time either.
    """
    order = [*plan.order]
    closed = (each for each in order if edited.is_completed(each) and not now.is_completed(each))
    claimed = (entry.position for entry in added if entry.kind == "completed")
    passed = {*claimed, *closed, *_skipped(plan, order, now, edited)}
    return next((each for each in order if each in passed and plan.policy(each) != "skip" and needs_proof(each)), None)


def _skipped(plan: Plan, order: Sequence[Position], now: RunState, edited: RunState) -> Iterator[Position]:
    """Open actions behind a pointer that the edit moved: that of the run, or of a behavior."""
    start, stop = (len(order) if state.finished else order.index(state.current) for state in (now, edited))
    behind = [*order[start:stop]]
    for behavior in plan.behaviors:
        start, stop = (order.index(machine.current_in(plan, state, behavior)) for state in (now, edited))
        behind += order[start:stop]
    return (each for each in behind if not now.is_completed(each))


def without_delivery(now: RunState, edited: RunState, needs_proof: NeedsProof) -> RunState:
    """The edited state; where proof is needed, only a tool marks instructions as delivered."""
    if not edited.delivered or not needs_proof(edited.current):
        return edited
    return replace(edited, delivered=now.delivered and now.current == edited.current)


def classify_edit(rows: WorkflowRows, bot: StoredBot | None, version: StateFileVersion) -> FileStatus:
    """Compare the file with the stored state.

    The file was edited where its contents are neither exported nor imported since the last export; an older copy of an
    export counts as an edit too.
    """
    if version.problem is not None:
        return "unreadable"
    if bot is None:
        return "current" if version.digest is None else "edited"
    if version.digest is None:
        return "deleted" if bot.known is not None else ("stale" if bot.revision else "current")
    revision = rows.export_revision(version.digest)
    if revision is None:
        return "edited"
    # The deletion of a file that is not recorded as exported would go unnoticed.
    return "current" if revision == bot.revision == bot.known else "stale"


def apply_edit(transaction: RunTransaction, sync: StateFileSync, *, two_way: bool, gates: EditGates) -> SyncDecision:
    """Import an edit or deletion of the state file, inside the transaction of the call that found it."""
    bot = transaction.rows.bot()
    if bot is None:
        return _apply_first(transaction, sync, gates, lost=two_way)
    if not two_way:
        return SyncDecision()
    version = sync.read(bot.window)
    if transaction.home.is_alone and (decision := _change_checkout(transaction, bot, version)) is not None:
        return decision
    match classify_edit(transaction.rows, bot, version):
        case "unreadable":
            warning = f"{bot.window} cannot be read ({version.problem}); the stored state was used."
            return SyncDecision(notices=Notices(warnings=(warning,)))
        case "deleted":
            return _reset(transaction, bot)
        case "edited":
            # The digest that is stored and the contents that are imported must come from one read.
            return _apply_contents(transaction, bot.window, sync.read(bot.window, contents=True), gates)
        case _:
            return SyncDecision()


def _change_checkout(transaction: RunTransaction, bot: StoredBot, version: StateFileVersion) -> SyncDecision | None:
    """Show another run where another branch was checked out; None where the file is to be read as ever.

    A branch without a run continues the one that the file shows. A file that the branch does not have was not deleted.
    """
    rows, home = transaction.rows, transaction.home.run
    shown = rows.notes(OWN).get("home")
    if shown in (None, home) or version.problem is not None:
        return None
    status = classify_edit(rows, bot, version)
    if status == "edited":
        return None
    if status == "deleted":
        rows.forget_window()
    elif rows.run(home) is None and rows.run(shown) is not None:
        stamp = Stamp(kind="branched", principal=EDITOR, at=utc_now())
        # The files are the same ones: nothing but the name of the branch has changed.
        transaction.fork(shown, home, None, stamp, Proofs(needs_proof=lambda _: False, holds=lambda _: True))
    rows.count_change()
    return SyncDecision()


def _apply_first(transaction: RunTransaction, sync: StateFileSync, gates: EditGates, *, lost: bool) -> SyncDecision:
    """Import a state file, or a legacy one, that came with the project, at the bot's first call there.

    With `lost`, an exported file means that its database is gone: that is reported.
    """
    decision = _import_first(transaction, sync, gates)
    copies = sync.damaged_databases() if lost else ()
    bot = transaction.rows.bot()
    data = None if bot is None else sync.read(bot.window, contents=True).data
    if not lost or not (copies or (data is not None and is_export(text_of(data)))):
        return decision
    transaction.rows.audit(kind="workflow.recovered", principal=EDITOR, body={"copies": list(copies)})
    found = f"was damaged and renamed to {copies[-1]}" if copies else "has no runs of this bot"
    path = NAME if bot is None else bot.window
    result = f"The state was imported from {path}" if data else "The runs start again at the first action"
    message = (
        f"The database {FOLDER}/state.db {found}. {result}. Earlier approvals, audit records, versions and request "
        "keys are no longer available; tell the user."
    )
    return replace(decision, notices=decision.notices + Notices(recovered=(message,)))


def _import_first(transaction: RunTransaction, sync: StateFileSync, gates: EditGates) -> SyncDecision:
    path = sync.choose(transaction.rows.windows())
    transaction.rows.add_bot(path)
    version = sync.read(path, contents=True)
    if version.digest is not None:
        return _apply_contents(transaction, path, version, gates)
    legacy = sync.read_legacy()
    if legacy is None:
        return SyncDecision()
    source, text = legacy
    try:
        imported = parse_state(transaction.plan, text)
    except UnreadableState as error:
        warning = f"The state file {source} in the bot's own directory was not imported: {error}."
        return SyncDecision(notices=Notices(warnings=(warning,)))
    refused, _ = _import(transaction, imported, gates, kind="migrated")
    warning = f"The state was imported once from {source}; from now on it is in {path} of the project."
    return SyncDecision(notices=Notices(warnings=(warning, *refused), inconsistent=imported.inconsistent))


def _reset(transaction: RunTransaction, bot: StoredBot) -> SyncDecision:
    stamp = Stamp(kind="reset_by_delete", principal=EDITOR, at=utc_now())
    for row in transaction.shown_runs():
        # A reset makes a strict run no less strict, and chooses no other depth.
        strict, depth = _permanent(transaction, row)
        fresh = replace(machine.begin(transaction.plan, depth, strict=strict), version=row.version + 1)
        transaction.begin_generation(row.name, fresh, (), stamp)
    transaction.rows.forget_window()
    warning = f"{bot.window} was deleted, so the workflow starts again at its first action."
    return SyncDecision(notices=Notices(warnings=(warning,)))


def _permanent(transaction: RunTransaction, row: StoredRun) -> tuple[bool, Depth | None]:
    """What no edit changes: whether the run is strict, and its depth; a damaged record is of the full depth."""
    try:
        state = transaction.read(row)
    except DamagedRecord:
        return '"strict":true' in row.state, None
    return state.strict, state.depth


def _apply_contents(
    transaction: RunTransaction, path: str, version: StateFileVersion, gates: EditGates
) -> SyncDecision:
    if version.data is None:
        return SyncDecision()  # deleted between two reads; the next call handles that
    rows = transaction.rows
    try:
        imported = parse_state(transaction.plan, text_of(version.data))
    except UnreadableState as error:
        # Recorded before the file is renamed, so that a crash in between does not look like a deletion.
        rows.forget_window()
        rows.audit(kind="workflow.unreadable", principal=EDITOR, body={"reason": str(error)[:200]})
        recovered = f"{path} could not be read: {error}. It was renamed to {NAME}.corrupt-*; the stored state was used."
        return SyncDecision(notices=Notices(recovered=(recovered,)), garbage=version.digest)
    known = bool(rows.run_names(limit=1))
    refused, changed = _import(transaction, imported, gates, kind="external_edit" if known else "imported")
    bot = rows.bot()
    if version.digest is not None and bot is not None:
        # In the same transaction, or a crash before the export would import the edit a second time.
        rows.add_export(version.digest, bot.revision)
        record_exported(rows, bot.revision, shown_versions(transaction), transaction.home)
        # One more change, so that the file is rewritten in the exported format.
        rows.count_change()
    # Another branch's file that says what is stored is no edit.
    is_edit = changed or not transaction.home.is_alone
    done = (f"{path} was edited, and the edit was imported.",) if known and is_edit and not refused else ()
    kept = (f"A copy with the fields that were left out was saved as {NAME}.refused-*.",) if imported.left_out else ()
    notices = Notices(warnings=(*done, *refused, *kept), inconsistent=imported.inconsistent)
    return SyncDecision(notices=notices, refused=version.data if refused or imported.left_out else None)


def _import(transaction: RunTransaction, imported: Imported, gates: EditGates, *, kind: str) -> tuple[list[str], bool]:
    """Import each run of the file; returns a message for each that was refused, and whether anything changed."""
    stamp = Stamp(kind=kind, principal=EDITOR, at=utc_now())
    refused: list[str] = []
    changed = False
    for shown, state in imported.runs.items():
        name = transaction.home.run if shown == MAIN else shown
        try:
            edit = _edit_of(transaction, name, state, imported.histories[shown], gates)
        except DamagedRecord as error:
            refused.append(f"The edit of run `{name}` was not imported. {error}")
            continue
        needs_proof = gates.not_proven(name, edit.state)
        plan = transaction.plan.of(replace(edit.state, strict=edit.state.strict or gates.strict))
        passed = passed_gate(plan, edit.now, edit.state, edit.brought, needs_proof)
        if passed is not None and not edit.is_stored and gates.signatures.of(edit.state) is not None:
            left = len(edit.lines)
            edit, passed = _only_proven(plan, edit, needs_proof), None
            refused.append(_not_proven(name, left - len(edit.lines)))
        weaker = edit.is_move() and gates.weakened(name, edit.state.strict)
        if passed is None and not weaker:
            after = without_delivery(edit.now, edit.state, needs_proof)
            changed = _apply(transaction, name, edit, after, stamp) or changed
            continue
        gate = (edit.now.current if passed is None else passed).path(transaction.plan.bot)
        body = {"run": name, "passes": gate, "weaker_definition": weaker}
        transaction.rows.audit(kind="workflow.edit_refused", principal=EDITOR, body=body)
        refused.append(
            f"The edit of run `{name}` in the state file was refused: it would pass {gate}, which only a human can "
            f"close. A copy was saved as {NAME}.refused-*; the stored state was used."
        )
        if not edit.is_stored and edit.state.strict:
            # A refused file can still make a new run strict.
            fresh = replace(edit.now, version=edit.state.version, strict=True)
            transaction.begin_generation(name, fresh, (), stamp)
    return refused, changed


@dataclass(frozen=True, kw_only=True, slots=True)
class _Edit:
    """A run before and after an edit of the file."""

    now: RunState
    state: RunState
    lines: Sequence[Entry]
    """What is added to the history."""
    brought: Sequence[Entry]
    """The lines of the file that the history did not have."""
    is_stored: bool = False

    def is_move(self) -> bool:
        """Whether the edit changes the state of a stored run."""
        return self.is_stored and replace(self.state, version=self.now.version) != self.now


def _only_proven(plan: Plan, edit: _Edit, needs_proof: NeedsProof) -> _Edit:
    """The part of a new run that its receipts prove, at the first gate that none does."""
    lines = [line for line in edit.lines if line.kind != "completed" or not needs_proof(line.position)]
    state = _with_history(edit.state, lines, edit.state.version)
    gate = next((each for each in plan.order if needs_proof(each) and plan.policy(each) != "skip"), None)
    if gate is not None and (state.finished or plan.comes_before(gate, state.current)):
        state = replace(machine.point_to(state, gate), delivered=False, rejections=0)
    return replace(edit, state=state, lines=tuple(lines), brought=tuple(lines))


def _not_proven(run: str, count: int) -> str:
    what = "1 completion has" if count == 1 else f"{count} completions have"
    return (
        f"Run `{run}` of the state file was taken over as far as its signed receipts prove it: {what} none. "
        f"A copy was saved as {NAME}.refused-*."
    )


def _edit_of(
    transaction: RunTransaction, name: str, state: RunState, history: tuple[Entry, ...], gates: EditGates
) -> _Edit:
    row = transaction.rows.run(name)
    if row is not None:
        return _edit_of_stored(transaction, row, state, history, gates)
    claimed = tuple(gates.taken(name, state, entry) for entry in history)
    new = _with_history(state, claimed, _newest(state, claimed))
    return _Edit(now=machine.begin(transaction.plan), state=new, lines=claimed, brought=claimed)


def _apply(transaction: RunTransaction, name: str, edit: _Edit, after: RunState, stamp: Stamp) -> bool:
    """Store an edit; False where it changes nothing."""
    if not edit.is_stored:
        transaction.begin_generation(name, after, edit.lines, stamp)
    elif edit.lines or replace(after, version=edit.now.version) != edit.now:
        transaction.save(name, after, edit.lines, stamp)
    else:
        return False
    return True


def _edit_of_stored(
    transaction: RunTransaction, row: StoredRun, state: RunState, history: tuple[Entry, ...], gates: EditGates
) -> _Edit:
    """An edit of a stored run, as lines that are added to its history: nothing is taken out of that."""
    now = transaction.read(row)
    # The file shows the depth, and does not choose it.
    state = replace(state, depth=now.depth)
    # Stored lines come back with their evidence, which the file does not show.
    wanted = frozenset(history)
    known = {line: line for line in transaction.history(row.name, row.generation) if line in wanted}
    strict = replace(state, strict=now.strict or state.strict)
    lines = [known[entry] if entry in known else gates.taken(row.name, strict, entry) for entry in history]
    # A change after the last export was in no file: an edit cannot have meant to undo it.
    exported = _exported_versions(transaction.rows).get(row.name, 0)
    unexported = [line for line in now.latest.values() if line.version > exported and line not in known]
    version = max(now.version, _newest(state, [*lines, *unexported])) + 1
    moved = (
        now if _is_unmoved(transaction, row, state, exported) else _skip_completed(transaction.plan, state, unexported)
    )
    # An edit may make a run strict, and cannot take it back.
    moved = replace(moved, strict=now.strict or state.strict)
    brought = tuple(line for line in lines if line not in known)
    pending = {line.position for line in unexported}
    reported = (line for line in _reported(now, lines, known) if line in brought or line.position not in pending)
    added = [*reported, *_reopened(now, {*lines, *unexported}, version)]
    again = {line.position for line in added}
    added += [line for line in unexported if line.position in again]
    latest = {**now.latest, **{line.position: line for line in added}}
    return _Edit(
        now=now,
        state=replace(moved, version=version, latest=latest),
        lines=tuple(added),
        brought=brought,
        is_stored=True,
    )


def _reported(now: RunState, lines: Sequence[Entry], known: Mapping[Entry, Entry]) -> Iterator[Entry]:
    """The lines of a file that are new, and those of an older copy that are no longer the latest of their action."""
    last = {line.position: line for line in lines}
    for line in lines:
        is_latest = last[line.position] is line and now.latest.get(line.position) != line
        if line not in known or is_latest:
            yield line


def _reopened(now: RunState, kept: Collection[Entry], version: int) -> Iterator[Entry]:
    """Marks for the completions that were taken out of the file."""
    positions, at = {line.position for line in kept}, utc_now()
    for position in sorted(now.latest):
        if now.is_completed(position) and position not in positions:
            yield Entry(position=position, at=at, version=version, kind="reopened", by=EDITOR)


def _is_unmoved(transaction: RunTransaction, row: StoredRun, state: RunState, exported: int) -> bool:
    """Whether the pointers of the file are those of its export, so that the stored state may have moved on since."""
    event = transaction.rows.event_at(row.name, exported)
    return event is not None and exported < row.version and event.state == head_text(state)


def _skip_completed(plan: Plan, state: RunState, unexported: Sequence[Entry]) -> RunState:
    """Move an edited pointer on from an action that was completed meanwhile."""
    state = _with_history(state, [*state.latest.values(), *unexported], state.version)
    if not any(line.position == state.current for line in unexported) or not state.is_completed(state.current):
        return state
    after = machine.following(plan, state, state.current)
    if after is None:
        return replace(state, finished=True)
    return replace(machine.point_to(state, after), finished=state.finished, delivered=False)


def record_exported(rows: WorkflowRows, revision: int, versions: Mapping[str, int], home: Home) -> None:
    """Record which revision the file shows, and which version of each run."""
    rows.know_export(revision)
    # The files of other branches still show the versions that they showed.
    earlier = _exported_versions(rows) if home.is_alone else {}
    rows.put_note(OWN, "shown", {**earlier, **versions})
    rows.put_note(OWN, "home", home.run)


def shown_versions(transaction: RunTransaction) -> dict[str, int]:
    return {row.name: row.version for row in transaction.shown_runs()}


def _exported_versions(rows: WorkflowRows) -> dict[str, int]:
    return rows.notes(OWN).get("shown", {})


OWN = ""
"""Key of the notes that belong to no run; not a valid run name."""


def _with_history(state: RunState, history: Sequence[Entry], version: int) -> RunState:
    return replace(state, version=version, latest={entry.position: entry for entry in history})


def _newest(state: RunState, history: Sequence[Entry]) -> int:
    return max((state.version, *(entry.version for entry in history)))


def _as_claimed(entry: Entry) -> Entry:
    """A line that came from a file, which proves nothing."""
    return replace(entry, approval="claimed") if entry.approval in APPROVED else entry
