"""Ledger: the runs of one bot inside one transaction. Every change of a run goes through here.

A change writes the run's row, its new lines of history, the event and the audit together. Versions only grow, and the
history is only added to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from trysquare.bots.plan import Plan, Position
from trysquare.bots.run_record import entry_record, head_record, read_entry, read_state, state_record
from trysquare.bots.workflow import Entry, NeedsProof, RunState, begin, open_gates
from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.core.types import JsonObject
from trysquare.store.workflow import StoredEvent, StoredRun, WorkflowRows


@dataclass(frozen=True, kw_only=True, slots=True)
class Stamp:
    """What a change is called, who makes it, and when."""

    kind: str
    principal: str
    at: str


Holds: TypeAlias = Callable[[Entry], bool]
"""Whether the proof of a completion fits the files as they are now."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Proofs:
    """Which actions need proof, and which of the proofs that there are still hold."""

    needs_proof: NeedsProof
    holds: Holds


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownState:
    """The state of a row, read under a plan."""

    plan: Plan
    row: StoredRun
    state: RunState


class Ledger:
    """The runs of one bot, with the plan of today."""

    def __init__(self, plan: Plan, rows: WorkflowRows, *, known: dict[str, KnownState] | None = None) -> None:
        """`known` are states that were read before; a row that is still the same is not read again."""
        self.plan = plan
        self.rows = rows
        self._known: dict[str, KnownState] = {} if known is None else known

    def state(self, run: str) -> RunState:
        """Where a run stands; one that has no row yet stands at the beginning."""
        row = self.rows.run(run)
        return begin(self.plan) if row is None else self.read(row)

    def read(self, row: StoredRun) -> RunState:
        """The state of a row."""
        known = self._known.get(row.name)
        if known is None or known.plan is not self.plan or known.row != row:
            state = read_state(self.plan, row.version, row.state)
            known = self._known[row.name] = KnownState(plan=self.plan, row=row, state=state)
        return known.state

    def history(self, row: StoredRun) -> list[Entry]:
        """The present history of a run."""
        return [read_entry(each.body) for each in self.rows.entries(row.name, row.generation)]

    def save(
        self, run: str, state: RunState, added: Sequence[Entry], stamp: Stamp, *, audit: JsonObject | None = None
    ) -> None:
        """Keep the next state of a run with the lines that it adds to its history."""
        before = self.rows.run(run)
        row = StoredRun(
            name=run,
            version=state.version,
            generation=0 if before is None else before.generation,
            entries=len(added) + (0 if before is None else before.entries),
            state=state_record(state),
            updated=stamp.at,
        )
        self._write(row, before, state, added, stamp, audit)

    def begin_generation(self, run: str, state: RunState, history: Sequence[Entry], stamp: Stamp) -> None:
        """Give a run another history in place of its present one, which is kept as an earlier generation."""
        before = self.rows.run(run)
        row = StoredRun(
            name=run,
            version=state.version,
            generation=0 if before is None else before.generation + 1,
            entries=len(history),
            state=state_record(state),
            updated=stamp.at,
        )
        self._write(row, before, state, history, stamp)

    def fork(
        self,
        run: str,
        to: str,
        version: int | None,
        stamp: Stamp,
        proofs: Proofs,
        prepare: Callable[[], None] = lambda: None,
    ) -> RunState:
        """Begin a run where another one stands or stood; `prepare` gives it its files once nothing is against it."""
        source = self._required(run)
        if self.rows.run(to) is not None:
            raise ToolError(
                f"There is a run `{to}` already.",
                code=ErrorCode.STATE_CONFLICT,
                instruction="Choose another name for the new run.",
            )
        at = source.version if version is None else version
        state, generation, entries = self._stood(source, at)
        row = StoredRun(
            name=to,
            version=state.version,
            generation=0,
            entries=entries,
            state=state_record(state),
            updated=stamp.at,
            origin=f"{run}@{state.version}",
        )
        self._write(row, None, state, (), stamp, {"from": row.origin})
        self.rows.copy_entries(replace(source, generation=generation), row)
        for name, value in self.rows.notes(run).items():
            self.rows.put_note(to, name, value)
        prepare()
        return self._without_loose_proofs(to, state, stamp, proofs)

    def _without_loose_proofs(self, run: str, state: RunState, stamp: Stamp, proofs: Proofs) -> RunState:
        """The state of a new run without the proofs that do not fit its files."""
        loose = [entry for entry in state.latest.values() if entry.is_proven and not proofs.holds(entry)]
        if not loose:
            return state
        version = state.version + 1
        marks = [Entry(position=each.position, at=stamp.at, version=version, kind="reopened") for each in loose]
        latest = {**state.latest, **{mark.position: mark for mark in marks}}
        opened = self._at_open_gate(replace(state, version=version, latest=latest), proofs)
        self.save(run, opened, marks, stamp, audit={"left_open": [_path(each.position) for each in loose]})
        return opened

    def rewind(self, run: str, version: int, stamp: Stamp, reason: str | None, proofs: Proofs) -> RunState:
        """Set a run back to where it stood, as a new change: its history tells what was taken up again.

        It goes no further than the first gate that waits for its proof: only a human gets behind that.
        """
        row = self._required(run)
        now = self.read(row)
        then, _, _ = self._stood(row, version)
        added, loose = _marks(now, then, stamp, reason, proofs)
        latest = {**now.latest, **{entry.position: entry for entry in added}}
        state = replace(then, version=now.version + 1, latest=latest, strict=now.strict)
        state = self._at_open_gate(state, proofs)
        audit = {"to_version": then.version, "reason": reason, "left_open": [_path(each) for each in loose]}
        self.save(run, state, added, stamp, audit=audit)
        return state

    def _at_open_gate(self, state: RunState, proofs: Proofs) -> RunState:
        gate = next(open_gates(self.plan, state, proofs.needs_proof), None)
        if gate is None or not (state.finished or self.plan.comes_before(gate, state.current)):
            return state
        pointers = {**state.pointers, gate.behavior: gate.action}
        return replace(state, current=gate, pointers=pointers, delivered=False, finished=False, rejections=0)

    def state_at(self, run: str, version: int) -> RunState:
        """Where a run stood at a version."""
        return self._stood(self._required(run), version)[0]

    def _stood(self, row: StoredRun, version: int) -> tuple[RunState, int, int]:
        if not 0 <= version <= row.version:
            raise ToolError(
                f"Run `{row.name}` has versions 0 to {row.version}, and no {version}.",
                code=ErrorCode.VALIDATION_INVALID_PARAM,
            )
        event = self.rows.event_at(row.name, version)
        if event is None and version == 0:
            return begin(self.plan), 0, 0
        if event is None:
            raise NotFound(
                f"What run `{row.name}` was at version {version} is not known: it began later.",
                code=ErrorCode.RESOURCE_NOT_FOUND,
            )
        lines = self.rows.entries(row.name, event.generation, until=event.entries)
        history = [read_entry(line.body) for line in lines]
        return read_state(self.plan, event.version, event.state, history), event.generation, event.entries

    def _required(self, run: str) -> StoredRun:
        row = self.rows.run(run)
        if row is None:
            names = ", ".join(f"`{each.name}`" for each in self.rows.runs()) or "none"
            raise NotFound(f"There is no run `{run}`. The runs are: {names}.", code=ErrorCode.RESOURCE_NOT_FOUND)
        return row

    def _write(
        self,
        row: StoredRun,
        before: StoredRun | None,
        state: RunState,
        added: Sequence[Entry],
        stamp: Stamp,
        audit: JsonObject | None = None,
    ) -> None:
        if not self.rows.put_run(row, replaces=None if before is None else before.version):
            raise ToolError(
                f"Nothing was changed: another call moved run `{row.name}` at the same moment.",
                code=ErrorCode.STATE_CONFLICT,
                instruction="Send the same call again.",
            )
        # Compared with what is stored before it is used, so a transaction that is taken back does no harm.
        self._known[row.name] = KnownState(plan=self.plan, row=row, state=state)
        self.rows.add_entries(row, row.entries - len(added) + 1, (entry_record(entry) for entry in added))
        self.rows.add_event(
            row.name,
            StoredEvent(
                version=row.version,
                at=stamp.at,
                kind=stamp.kind,
                principal=stamp.principal,
                generation=row.generation,
                entries=row.entries,
                state=head_record(state),
            ),
        )
        self.rows.count_change()
        self.rows.audit(kind=f"workflow.{stamp.kind}", principal=stamp.principal, body=_told(row, state, added, audit))


def _told(row: StoredRun, state: RunState, added: Iterable[Entry], audit: JsonObject | None) -> JsonObject:
    """What the audit says of a change."""
    return {
        **(audit or {}),
        "run": row.name,
        "version": row.version,
        "current": f"{state.current.behavior}.{state.current.action}",
        "history_lines": row.entries,
        # A taken-over history may be long, and stands in the history's own table.
        "added": [entry_record(entry) for entry, _ in zip(added, range(20), strict=False)],
    }


def _marks(
    now: RunState, then: RunState, stamp: Stamp, reason: str | None, proofs: Proofs
) -> tuple[list[Entry], list[Position]]:
    """The lines that make the last words of a state those of an earlier one, and the proofs that do not come back.

    What was completed comes back as it was recorded: the same time, the same person, the same files.
    """
    marks: list[Entry] = []
    loose: list[Position] = []
    version = now.version + 1
    for position in sorted({*now.latest, *then.latest}):
        if now.is_completed(position) == then.is_completed(position):
            continue
        kept = then.latest.get(position)
        if kept is None or not then.is_completed(position):
            mark = Entry(position=position, at=stamp.at, version=version, by=stamp.principal, reason=reason)
            marks.append(replace(mark, kind="reopened"))
        elif kept.is_proven and not proofs.holds(kept):
            loose.append(position)
        else:
            marks.append(replace(kept, version=version))
    return marks, loose


def _path(position: Position) -> str:
    return f"{position.behavior}.{position.action}"


def split_path(bot: str, path: str) -> Position | None:
    """`action`, `behavior.action` or `bot.behavior.action` as a position; the behavior may be missing."""
    parts = path.split(".")
    if len(parts) == 3 and parts[0] == bot:
        parts = parts[1:]
    if len(parts) > 2:
        return None
    return Position(behavior=parts[0] if len(parts) == 2 else "", action=parts[-1])
