"""Changes of a run in one store transaction, and the stored records of states and history."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Strict, TypeAdapter, ValidationError

from trysquare.bots.workflow import machine
from trysquare.bots.workflow.machine import (
    APPROVED,
    Approval,
    Depth,
    Entry,
    NeedsProof,
    Plan,
    Position,
    RunState,
    StateConflict,
    position_of,
)
from trysquare.bots.workflow.state_file import MAIN
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.core.json import JsonObject
from trysquare.store.workflows import StoredEvent, StoredRun, WorkflowRows

T = TypeVar("T")
SHOWN_RUNS = 8
"""How many runs the state file shows beside the main run."""
_MAX_CACHED = 64
_BACK = 200
"""Lines of a history that are read at a time backwards."""
_MAX_NAMED = 20
_PAGE = 1_000
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
    position = position_of(fields.pop("behavior"), fields.pop("action"))
    return Entry(position=position, **fields)


class DamagedRecord(ToolError):
    """A stored record that cannot be read. It stops its own run only."""

    default_code = ErrorCode.STATE_UNAVAILABLE

    def __init__(self, run: str, problem: str) -> None:
        super().__init__(
            f"The stored record of run `{run}` is damaged: {problem}. Nothing was changed; other runs go on.",
            instruction=f"Tell the user to run `trysquare bot recover --run {run}`: it rebuilds the record from the "
            "run's history.",
            fields={"run": run, "damaged": True},
        )


class _Line(BaseModel):
    """A stored line of a history."""

    model_config = ConfigDict(extra="forbid", strict=True)
    behavior: str
    action: str
    at: str
    version: int
    kind: Literal["completed", "reopened"] = "completed"
    approval: Approval = "claimed"
    delivered: bool = True
    reason: str | None = None
    by: str | None = None
    how: str | None = None
    files: dict[str, str] | None = None


class _Depth(BaseModel):
    """The stored depth of a run."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: str
    left_out: list[str] = []
    waived: list[str] = []
    confirmed: bool = False

    def read(self) -> Depth:
        return Depth(
            name=self.name,
            left_out=frozenset(map(_position, self.left_out)),
            waived=frozenset(map(_position, self.waived)),
            confirmed=self.confirmed,
        )


def _position(path: str) -> Position:
    behavior, _, action = path.partition(".")
    return Position(behavior=behavior, action=action)


def depth_record(depth: Depth) -> JsonObject:
    """A depth as it is stored and audited."""
    paths = {name: sorted(map(str, getattr(depth, name))) for name in ("left_out", "waived")}
    return {"name": depth.name, **{name: found for name, found in paths.items() if found}} | (
        {"confirmed": True} if depth.confirmed else {}
    )


class _Head(BaseModel):
    """A stored state of a run. Records of earlier versions hold the latest lines too."""

    model_config = ConfigDict(strict=True)
    current: Annotated[tuple[str, str], Strict(False)]
    pointers: dict[str, str]
    delivered: bool
    finished: bool
    rejections: int
    strict: bool = False
    depth: _Depth | None = None
    """Records of earlier versions have none: they are of the full depth."""
    latest: list[_Line] | None = None


_HEAD: TypeAdapter[_Head] = TypeAdapter(_Head)
_LINES: TypeAdapter[list[_Line]] = TypeAdapter(list[_Line])


def _parsed(adapter: TypeAdapter[T], run: str, text: str, what: str) -> T:
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(each) for each in first["loc"])
        raise DamagedRecord(run, f"{what} {where + ': ' if where else ''}{first['msg']}") from None


def _entry_of(line: _Line) -> Entry:
    return read_entry(line.model_dump())


def head_record(state: RunState) -> JsonObject:
    """A state without its latest entries: small for any bot."""
    return {
        "current": [state.current.behavior, state.current.action],
        "pointers": dict(state.pointers),
        "delivered": state.delivered,
        "finished": state.finished,
        "rejections": state.rejections,
        **({"strict": True} if state.strict else {}),
        **({} if state.depth is None else {"depth": depth_record(state.depth)}),
    }


def head_text(state: RunState) -> str:
    return json.dumps(head_record(state), separators=(",", ":"))


def state_of(plan: Plan, version: int, head: _Head, entries: Iterable[Entry]) -> RunState:
    """The state of a record with the latest entries of its history.

    The plan may have changed since the record was written: a position that it no longer has is derived anew.
    """
    behavior, action = head.current
    state = RunState(
        version=version,
        current=Position(behavior=behavior, action=action),
        pointers={name: pointer for name, pointer in head.pointers.items() if name in plan.behaviors},
        latest={entry.position: entry for entry in entries},
        delivered=head.delivered,
        finished=head.finished,
        rejections=head.rejections,
        strict=head.strict,
        depth=None if head.depth is None else head.depth.read(),
    )
    return state if plan.contains(state.current) else _move_into_plan(plan, state)


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


class Receipts(Protocol):
    """The signed receipts of a bot in a project."""

    def demanded(self) -> bool:
        """Whether strict runs of this project need signatures."""
        ...

    def evidence(self, run: str, entry: Entry) -> Entry | None:
        """The completion with the evidence of its receipt; None without a receipt that holds."""
        ...

    def gave_up(self, run: str, depth: Depth) -> bool:
        """Whether an approver signed what the preset of a run takes away."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Signatures:
    """What proves a completion where signatures are demanded: nothing but its receipt."""

    receipts: Receipts | None = None
    strict: bool = False
    """Whether this process is strict, and every run with it."""

    def of(self, state: RunState) -> Receipts | None:
        """The receipts, where this run needs them."""
        if self.receipts is None or not (self.strict or state.strict) or not self.receipts.demanded():
            return None
        return self.receipts

    def checked(self, run: str, state: RunState) -> RunState:
        """The state in which nothing is proven without its receipt."""
        receipts = self.of(state)
        if receipts is None:
            return state
        latest = {
            position: entry if not entry.is_approved else receipts.evidence(run, entry) or as_unproven(entry)
            for position, entry in state.latest.items()
        }
        return replace(agreed(receipts, run, state), latest=latest)


def agreed(receipts: Receipts, run: str, state: RunState) -> RunState:
    """The state in which a preset takes away only what an approver signed."""
    depth = state.depth
    if depth is None or not depth.confirmed or receipts.gave_up(run, depth):
        return state
    return replace(state, depth=replace(depth, confirmed=False))


UNSIGNED = Signatures()


def as_unproven(entry: Entry) -> Entry:
    """A completion that nothing proves."""
    approval = "claimed" if entry.approval in APPROVED else entry.approval
    return replace(entry, approval=approval, how=None, files=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Proofs:
    """Which actions need proof, and which proofs are still valid."""

    needs_proof: NeedsProof
    holds: Holds
    signatures: Signatures = UNSIGNED

    def hold(self, state: RunState, entry: Entry) -> bool:
        """Whether a proof is valid elsewhere. A signature is for one close of one run."""
        return self.signatures.of(state) is None and self.holds(entry)


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedState:
    """The state of a row, read under a plan."""

    plan: Plan
    row: StoredRun
    state: RunState


@dataclass(frozen=True, kw_only=True, slots=True)
class Home:
    """The run at the top of the state file: the main run, or that of the checkout in which the file is."""

    run: str = MAIN
    is_alone: bool = False
    """Whether the file shows this run only, so that every branch has its own file."""


class StateCache:
    """The states of the runs that were used last; what it holds does not grow with the number of runs."""

    def __init__(self) -> None:
        self._states: OrderedDict[str, CachedState] = OrderedDict()

    def find(self, plan: Plan, row: StoredRun) -> RunState | None:
        found = self._states.get(row.name)
        return None if found is None or found.plan is not plan or found.row != row else found.state

    def put(self, plan: Plan, row: StoredRun, state: RunState) -> None:
        self._states[row.name] = CachedState(plan=plan, row=row, state=state)
        self._states.move_to_end(row.name)
        while len(self._states) > _MAX_CACHED:
            self._states.popitem(last=False)

    def clear(self) -> None:
        self._states.clear()


class RunTransaction:
    """The runs of one bot inside a store transaction.

    A change writes the run's row, its new lines of history, the event and the audit together. Versions only grow, and
    the history is only appended to.
    """

    def __init__(
        self,
        plan: Plan,
        rows: WorkflowRows,
        *,
        cache: StateCache | None = None,
        home: Home | None = None,
        signatures: Signatures = UNSIGNED,
    ) -> None:
        """`cache` holds states that were read before; an unchanged row is not read again."""
        self.plan = plan
        self.rows = rows
        self.signatures = signatures
        self.home = home or Home()
        self._cache = StateCache() if cache is None else cache

    def state(self, run: str) -> RunState:
        """The state of a run; one without a row is at the beginning."""
        row = self.rows.run(run)
        return machine.begin(self.plan) if row is None else self.read(row)

    def read(self, row: StoredRun) -> RunState:
        """The state of a row, or `DamagedRecord`."""
        return self.signatures.checked(row.name, self._read(row))

    def _read(self, row: StoredRun) -> RunState:
        known = self._cache.find(self.plan, row)
        if known is not None:
            return known
        head = _parsed(_HEAD, row.name, row.state, "its state,")
        lines = self._latest(row.name) if head.latest is None else head.latest
        state = state_of(self.plan, row.version, head, map(_entry_of, lines))
        self._cache.put(self.plan, row, state)
        return state

    def _latest(self, run: str) -> list[_Line]:
        stored = self.rows.latest(run)
        return [line for behavior in sorted(stored) for line in self._lines_of(run, behavior, stored[behavior])]

    def _lines_of(self, run: str, behavior: str, text: str) -> list[_Line]:
        return _parsed(_LINES, run, text, f"its completions of {behavior},")

    def shown_runs(self) -> list[StoredRun]:
        """The runs that the state file shows: the main run, and those that changed last; or that of the checkout."""
        main = self.rows.run(self.home.run)
        if self.home.is_alone:
            return [] if main is None else [main]
        others = self.rows.recent_runs(without=MAIN, limit=SHOWN_RUNS)
        return sorted([*others, *([] if main is None else [main])], key=lambda row: row.name)

    def save(
        self, run: str, state: RunState, added: Sequence[Entry], stamp: Stamp, *, audit: JsonObject | None = None
    ) -> None:
        """Store the next state of a run with the lines that it adds to the history."""
        before = self.rows.run(run)
        generation, entries = (0, 0) if before is None else (before.generation, before.entries)
        row = _row(run, state, stamp, generation=generation, entries=entries + len(added))
        self._write(row, before, state, added, stamp, audit)
        # A record of an earlier version holds its latest lines itself, and hands all of them over.
        is_old = before is not None and '"latest"' in before.state
        touched = {each.behavior for each in state.latest} if is_old else {each.position.behavior for each in added}
        self._put_latest(run, state, touched)

    def begin_generation(self, run: str, state: RunState, history: Sequence[Entry], stamp: Stamp) -> None:
        """Replace the history of a run; the present one stays stored as an earlier generation."""
        before = self.rows.run(run)
        generation = 0 if before is None else before.generation + 1
        row = _row(run, state, stamp, generation=generation, entries=len(history))
        self._write(row, before, state, history, stamp)
        self.rows.clear_latest(run)
        self._put_latest(run, state, {each.behavior for each in state.latest})

    def _put_latest(self, run: str, state: RunState, behaviors: Iterable[str]) -> None:
        for behavior in sorted(behaviors):
            lines = (entry for position, entry in state.latest.items() if position.behavior == behavior)
            self.rows.put_latest(run, behavior, [entry_record(entry) for entry in lines])

    def recover(self, run: str, stamp: Stamp) -> tuple[RunState, int]:
        """Rebuild a damaged record from the run's changes and history; returns the version that it was built from."""
        row = self._required(run)
        event = next((each for each in self._events_back(row) if _is_readable(run, each)), None)
        then = machine.begin(self.plan) if event is None else self._state_after(row, event)
        state = replace(then, version=row.version + 1, delivered=False)
        body: JsonObject = {"from_version": then.version}
        fresh = _row(run, state, stamp, generation=row.generation, entries=row.entries)
        self._write(fresh, row, state, (), stamp, body)
        self.rows.clear_latest(run)
        self._put_latest(run, state, {each.behavior for each in state.latest})
        return state, then.version

    def _events_back(self, row: StoredRun) -> Iterator[StoredEvent]:
        version = row.version
        while (event := self.rows.event_at(row.name, version)) is not None:
            yield event
            version = event.version - 1

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
        self._put_latest(to, state, {each.behavior for each in state.latest})
        self.rows.copy_entries(replace(source, generation=generation), row)
        for name, value in self.rows.notes(run).items():
            self.rows.put_note(to, name, value)
        prepare()
        return self._reopen_invalid_proofs(to, state, stamp, proofs)

    def _reopen_invalid_proofs(self, run: str, state: RunState, stamp: Stamp, proofs: Proofs) -> RunState:
        invalid = [entry for entry in state.latest.values() if entry.is_approved and not proofs.hold(state, entry)]
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
        state = replace(then, version=now.version + 1, latest=latest, strict=now.strict)
        state = self._at_open_gate(machine.keep_depth(self.plan, state, now.depth), proofs)
        audit = {"to_version": then.version, "reason": reason, "left_open": [str(each) for each in invalid]}
        self.save(run, state, added, stamp, audit=audit)
        return state

    def _at_open_gate(self, state: RunState, proofs: Proofs) -> RunState:
        gate = next(machine.open_gates(self.plan, state, proofs.needs_proof), None)
        if gate is None or not (state.finished or self.plan.comes_before(gate, state.current)):
            return state
        return replace(machine.point_to(state, gate), delivered=False, rejections=0)

    def state_at(self, run: str, version: int) -> RunState:
        return self.signatures.checked(run, self._state_at(self._required(run), version)[0])

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
        return self._state_after(row, event), event.generation, event.entries

    def _state_after(self, row: StoredRun, event: StoredEvent) -> RunState:
        """The state after a change, with the latest of the lines until then."""
        known = self._known_positions(row) if row.generation == event.generation else None
        latest: dict[Position, Entry] = {}
        # Backwards, since most actions were completed not long before: until each that has lines was met.
        for line in self._history_before(row.name, event.generation, event.entries):
            if line.position not in latest:
                latest[line.position] = line
                if known is not None and known <= latest.keys():
                    break
        head = _parsed(_HEAD, row.name, event.state, f"version {event.version},")
        return state_of(self.plan, event.version, head, reversed(latest.values()))

    def history(self, run: str, generation: int, *, until: int | None = None) -> Iterator[Entry]:
        """The lines of a generation of a run's history, a page at a time."""
        seq = 0
        while page := self.rows.entries(run, generation, after=seq, until=until, limit=_PAGE):
            yield from (read_entry(line.body) for line in page)
            seq = page[-1].seq

    def _known_positions(self, row: StoredRun) -> frozenset[Position] | None:
        """The actions that have lines in the present history; None where that record is damaged."""
        try:
            return frozenset(_entry_of(line).position for line in self._latest(row.name))
        except DamagedRecord:
            return None

    def _history_before(self, run: str, generation: int, last: int) -> Iterator[Entry]:
        """The lines of a generation of a run's history from one on backwards, a page at a time."""
        while page := self.rows.entries_until(run, generation, last=last, limit=_BACK):
            yield from (read_entry(line.body) for line in page)
            last = page[-1].seq - 1

    def _required(self, run: str) -> StoredRun:
        row = self.rows.run(run)
        if row is None:
            names = ", ".join(f"`{each}`" for each in self.rows.run_names(limit=_MAX_NAMED)) or "none"
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
        self._cache.put(self.plan, row, state)
        self.rows.add_entries(row, row.entries - len(added) + 1, (entry_record(entry) for entry in added))
        event = StoredEvent(
            version=row.version,
            at=stamp.at,
            kind=stamp.kind,
            principal=stamp.principal,
            generation=row.generation,
            entries=row.entries,
            state=row.state,
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
            # A depth that is changed in the tables differs from the one in the chain of the audit.
            **({} if state.depth is None else {"depth": depth_record(state.depth)}),
        }
        self.rows.audit(kind=f"workflow.{stamp.kind}", principal=stamp.principal, body=body)


def _row(run: str, state: RunState, stamp: Stamp, *, generation: int, entries: int) -> StoredRun:
    return StoredRun(
        name=run,
        version=state.version,
        generation=generation,
        entries=entries,
        state=head_text(state),
        updated=stamp.at,
    )


def _is_readable(run: str, event: StoredEvent) -> bool:
    try:
        _parsed(_HEAD, run, event.state, "")
    except DamagedRecord:
        return False
    return True


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
        elif restored.is_approved and not proofs.hold(now, restored):
            invalid.append(position)
        else:
            marks.append(replace(restored, version=version))
    return marks, invalid
