"""Changes of a run in one store transaction, and the stored records of states and history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from trysquare.bots.workflow import machine
from trysquare.bots.workflow.machine import Entry, NeedsProof, Plan, Position, RunState, StateConflict
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound
from trysquare.core.json import JsonObject
from trysquare.store.workflows import StoredEvent, StoredRun, WorkflowRows

_DEFAULTS: JsonObject = {"kind": "completed", "approval": "claimed", "delivered": True, "reason": None, "by": None,
                         "how": None, "files": None}  # fmt: skip


def entry_record(entry: Entry) -> JsonObject:
    """A line of the history as it is stored, without default values."""
    record = {
        "behavior": entry.position.behavior,
        "action": entry.position.action,
        "at": entry.at,
        "version": entry.version,
    }
    return record | {name: value for name in _DEFAULTS if (value := getattr(entry, name)) != _DEFAULTS[name]}


def read_entry(record: JsonObject) -> Entry:
    fields: dict[str, Any] = {**_DEFAULTS, **record}
    position = Position(behavior=fields.pop("behavior"), action=fields.pop("action"))
    return Entry(position=position, **fields)


def head_record(state: RunState) -> JsonObject:
    """A state without its latest entries: small for any bot."""
    return {
        "current": [state.current.behavior, state.current.action],
        "pointers": dict(state.pointers),
        "delivered": state.delivered,
        "finished": state.finished,
        "rejections": state.rejections,
        **({"strict": True} if state.strict else {}),
    }


def read_state(plan: Plan, version: int, record: JsonObject, history: Iterable[Entry] | None = None) -> RunState:
    """The state of a record, with the latest entries of a history where one is given.

    The plan may have changed since the record was written: a position that it no longer has is derived anew.
    """
    entries = (read_entry(cast(JsonObject, each)) for each in record.get("latest", [])) if history is None else history
    behavior, action = record["current"]
    state = RunState(
        version=version,
        current=Position(behavior=behavior, action=action),
        pointers={name: pointer for name, pointer in record["pointers"].items() if name in plan.behaviors},
        latest={entry.position: entry for entry in entries},
        delivered=record["delivered"],
        finished=record["finished"],
        rejections=record["rejections"],
        strict=record.get("strict", False),
    )
    return state if plan.contains(state.current) else _move_into_plan(plan, state)


def read_head(plan: Plan, version: int, record: JsonObject) -> RunState:
    """The state of a record without its latest entries, which the state file shows in the history."""
    behavior, action = record["current"]
    is_known = plan.contains(Position(behavior=behavior, action=action))
    return read_state(plan, version, record, () if is_known else None)


def _move_into_plan(plan: Plan, state: RunState) -> RunState:
    behavior = state.current.behavior if state.current.behavior in plan.behaviors else plan.behaviors[0]
    known = {position: entry for position, entry in state.latest.items() if plan.contains(position)}
    current = machine.derived(plan, replace(state, latest=known), behavior)
    return replace(machine.point_to(state, current), finished=state.finished, delivered=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stamp:
    kind: str
    principal: str
    at: str


Holds: TypeAlias = Callable[[Entry], bool]
"""Whether the proof of a completion matches the present files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Proofs:
    """Which actions need proof, and which proofs are still valid."""

    needs_proof: NeedsProof
    holds: Holds


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedState:
    """The state of a row, read under a plan."""

    plan: Plan
    row: StoredRun
    state: RunState


class RunTransaction:
    """The runs of one bot inside a store transaction.

    A change writes the run's row, its new lines of history, the event and the audit together. Versions only grow, and
    the history is only appended to.
    """

    def __init__(self, plan: Plan, rows: WorkflowRows, *, cache: dict[str, CachedState] | None = None) -> None:
        """`cache` holds states that were read before; an unchanged row is not read again."""
        self.plan = plan
        self.rows = rows
        self._cache: dict[str, CachedState] = {} if cache is None else cache

    def state(self, run: str) -> RunState:
        """The state of a run; one without a row is at the beginning."""
        row = self.rows.run(run)
        return machine.begin(self.plan) if row is None else self.read(row)

    def read(self, row: StoredRun) -> RunState:
        cached = self._cache.get(row.name)
        if cached is None or cached.plan is not self.plan or cached.row != row:
            state = read_state(self.plan, row.version, row.state)
            cached = self._cache[row.name] = CachedState(plan=self.plan, row=row, state=state)
        return cached.state

    def save(
        self, run: str, state: RunState, added: Sequence[Entry], stamp: Stamp, *, audit: JsonObject | None = None
    ) -> None:
        """Store the next state of a run with the lines that it adds to the history."""
        before = self.rows.run(run)
        generation, entries = (0, 0) if before is None else (before.generation, before.entries)
        row = _row(run, state, stamp, generation=generation, entries=entries + len(added))
        self._write(row, before, state, added, stamp, audit)

    def begin_generation(self, run: str, state: RunState, history: Sequence[Entry], stamp: Stamp) -> None:
        """Replace the history of a run; the present one stays stored as an earlier generation."""
        before = self.rows.run(run)
        generation = 0 if before is None else before.generation + 1
        row = _row(run, state, stamp, generation=generation, entries=len(history))
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
        """Start a run from another run's state; `prepare` writes its files once nothing prevents the fork."""
        source = self._required(run)
        if self.rows.run(to) is not None:
            raise StateConflict(f"Run `{to}` already exists.", instruction="Choose another name for the new run.")
        state, generation, entries = self._state_at(source, source.version if version is None else version)
        row = replace(_row(to, state, stamp, generation=0, entries=entries), origin=f"{run}@{state.version}")
        self._write(row, None, state, (), stamp, {"from": row.origin})
        self.rows.copy_entries(replace(source, generation=generation), row)
        for name, value in self.rows.notes(run).items():
            self.rows.put_note(to, name, value)
        prepare()
        return self._reopen_invalid_proofs(to, state, stamp, proofs)

    def _reopen_invalid_proofs(self, run: str, state: RunState, stamp: Stamp, proofs: Proofs) -> RunState:
        invalid = [entry for entry in state.latest.values() if entry.is_proven and not proofs.holds(entry)]
        if not invalid:
            return state
        version = state.version + 1
        marks = [Entry(position=each.position, at=stamp.at, version=version, kind="reopened") for each in invalid]
        latest = {**state.latest, **{mark.position: mark for mark in marks}}
        opened = self._at_open_gate(replace(state, version=version, latest=latest), proofs)
        self.save(run, opened, marks, stamp, audit={"left_open": [str(each.position) for each in invalid]})
        return opened

    def rewind(self, run: str, version: int, stamp: Stamp, reason: str | None, proofs: Proofs) -> RunState:
        """Return a run to an earlier state, as a new change that records what was reopened.

        It stops at the first open gate: only a human gets behind that.
        """
        row = self._required(run)
        now, then = self.read(row), self._state_at(row, version)[0]
        added, invalid = _marks(now, then, stamp, reason, proofs)
        latest = {**now.latest, **{entry.position: entry for entry in added}}
        state = self._at_open_gate(replace(then, version=now.version + 1, latest=latest, strict=now.strict), proofs)
        audit = {"to_version": then.version, "reason": reason, "left_open": [str(each) for each in invalid]}
        self.save(run, state, added, stamp, audit=audit)
        return state

    def _at_open_gate(self, state: RunState, proofs: Proofs) -> RunState:
        gate = next(machine.open_gates(self.plan, state, proofs.needs_proof), None)
        if gate is None or not (state.finished or self.plan.comes_before(gate, state.current)):
            return state
        return replace(machine.point_to(state, gate), delivered=False, rejections=0)

    def state_at(self, run: str, version: int) -> RunState:
        return self._state_at(self._required(run), version)[0]

    def _state_at(self, row: StoredRun, version: int) -> tuple[RunState, int, int]:
        if not 0 <= version <= row.version:
            raise InvalidArguments(f"Run `{row.name}` has no version {version}; its versions are 0 to {row.version}.")
        event = self.rows.event_at(row.name, version)
        if event is None and version == 0:
            return machine.begin(self.plan), 0, 0
        if event is None:
            raise NotFound(
                f"Run `{row.name}` has no record of version {version}: it began later.",
                code=ErrorCode.RESOURCE_NOT_FOUND,
            )
        lines = self.rows.entries(row.name, event.generation, until=event.entries)
        history = [read_entry(line.body) for line in lines]
        return read_state(self.plan, event.version, event.state, history), event.generation, event.entries

    def _required(self, run: str) -> StoredRun:
        row = self.rows.run(run)
        if row is None:
            names = ", ".join(f"`{each.name}`" for each in self.rows.runs()) or "none"
            raise NotFound(f"Unknown run `{run}`. Known runs: {names}.", code=ErrorCode.RESOURCE_NOT_FOUND)
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
            raise StateConflict(
                f"Nothing was changed: another call moved run `{row.name}` at the same time.",
                instruction="Send the same call again.",
            )
        # Compared with the stored row before it is used, so a rolled-back transaction does no harm.
        self._cache[row.name] = CachedState(plan=self.plan, row=row, state=state)
        self.rows.add_entries(row, row.entries - len(added) + 1, (entry_record(entry) for entry in added))
        event = StoredEvent(
            version=row.version,
            at=stamp.at,
            kind=stamp.kind,
            principal=stamp.principal,
            generation=row.generation,
            entries=row.entries,
            state=head_record(state),
        )
        self.rows.add_event(row.name, event)
        self.rows.count_change()
        body = {
            **(audit or {}),
            "run": row.name,
            "version": row.version,
            "current": str(state.current),
            "history_lines": row.entries,
            # An imported history may be long, and is stored in its own table.
            "added": [entry_record(entry) for entry in added[:20]],
        }
        self.rows.audit(kind=f"workflow.{stamp.kind}", principal=stamp.principal, body=body)


def _row(run: str, state: RunState, stamp: Stamp, *, generation: int, entries: int) -> StoredRun:
    return StoredRun(
        name=run,
        version=state.version,
        generation=generation,
        entries=entries,
        state={**head_record(state), "latest": [entry_record(entry) for entry in state.latest.values()]},
        updated=stamp.at,
    )


def _marks(
    now: RunState, then: RunState, stamp: Stamp, reason: str | None, proofs: Proofs
) -> tuple[list[Entry], list[Position]]:
    """The lines that restore the completions of an earlier state, and the proofs that are no longer valid.

    A restored completion keeps its record: the same time, approver and files.
    """
    marks: list[Entry] = []
    invalid: list[Position] = []
    version = now.version + 1
    for position in sorted({*now.latest, *then.latest}):
        if now.is_completed(position) == then.is_completed(position):
            continue
        restored = then.latest.get(position)
        if restored is None or not then.is_completed(position):
            mark = Entry(position=position, at=stamp.at, version=version, by=stamp.principal, reason=reason)
            marks.append(replace(mark, kind="reopened"))
        elif restored.is_proven and not proofs.holds(restored):
            invalid.append(position)
        else:
            marks.append(replace(restored, version=version))
    return marks, invalid
