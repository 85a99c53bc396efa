"""Every order of moves, edits, deletions, restored copies, garbage, crashes and full disks that Hypothesis thinks of.

Beside the store stands a plain model: the state and the history of each run. A call that crashed was either made or
not made; nothing between, nothing twice, nothing lost.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.bots.faults.crashing import Crash, Faults, FaultyDatabase, failing_files
from tests.bots.faults.desk import AT, BOT, PLAN, Desk, at, close_change
from tests.support import size
from trysquare import ErrorCode, ToolError
from trysquare.bots.workflow.conflicts import passed_gate, without_delivery
from trysquare.bots.workflow.machine import (
    APPROVED,
    Entry,
    Position,
    RunState,
    begin,
    open_action,
    open_gates,
    reject,
    select_behavior,
)
from trysquare.bots.workflow.runs import Change, Request, WorkflowRuns
from trysquare.bots.workflow.state_file import parse_state
from trysquare.bots.workflow.sync import StateFileSync
from trysquare.store import project_state
from trysquare.store.database import open_database
from trysquare.store.workflows import SqliteWorkflows

RUNS = st.sampled_from(["main", "story-12"])
PATHS = [f"{behavior}.{action}" for behavior in PLAN.behaviors for action in PLAN.actions]
HANDLES = st.sampled_from([0, 1])
GARBAGE = st.sampled_from([b"", b"{", b"[]", b"{}", b"\xff\x00", b'{"current_action": "a.b.c"}'])
FAULTS = st.sampled_from(["none", "none", "crash", "full"])
POINTS = st.integers(0, 45)

Step: TypeAlias = Callable[[RunState], Change]
Runs: TypeAlias = "dict[str, Book]"


@dataclass
class Book:
    """What the model knows of a run."""

    state: RunState = field(default_factory=lambda: begin(PLAN))
    history: list[Entry] = field(default_factory=list[Entry])

    def after(self, change: Change) -> Book:
        return Book(change.state, [*self.history, *change.added])


def steps(move: str) -> Step:
    """A move by its name."""
    if move == "close":
        return closing_step
    if move == "reject":
        return lambda state: Change(state=reject(state))
    if "." in move:
        return lambda state: Change.opened(open_action(PLAN, state, at(move), at=AT))
    return lambda state: Change(state=select_behavior(PLAN, state, move))


def closing_step(state: RunState) -> Change:
    """A close; where proof is asked for, a person was there and gave it, as the tool makes sure."""
    return close_change(state, "completed", "confirmed" if needs_proof(state.current) else "claimed")


def needs_proof(position: Position) -> bool:
    """Two of the six actions can be closed by a person alone."""
    return position in (at("shape.gather_context"), at("discovery.validate_rules"))


def begun(books: Runs) -> Runs:
    """Without the runs that have done nothing yet: they may have a row or none."""
    return {name: book for name, book in books.items() if book != Book()}


def claimed(entry: Entry) -> Entry:
    """A line that came from a file proves nothing."""
    return replace(entry, approval="claimed") if entry.approval in APPROVED else entry


def untimed(entry: Entry) -> Entry:
    """A mark that an edit left has the time of the call that found it."""
    return replace(entry, at="") if entry.by == "file" else entry


class Workflow(RuleBasedStateMachine):
    """Two processes on one project, a person with an editor, and a machine that fails."""

    @initialize()
    def begin(self) -> None:
        # In memory where there is such a place: what a disk forgets in a power cut is not tested here.
        memory = Path("/dev/shm")
        self.project = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        self.faults = Faults()
        self.patched = ExitStack()
        self.patched.enter_context(failing_files(self.faults))
        self.desks = [self.opened(), self.opened()]
        self.books: Runs = {}
        self.touched: str | None = None
        self.garbage = b""
        self.copies: list[bytes] = []
        self.rows: dict[tuple[Any, ...], str] = {}
        self.answers: dict[str, tuple[str, str, dict[str, Any]]] = {}
        self.keys = 0

    def opened(self) -> Desk:
        database = FaultyDatabase(project_state(self.project), self.faults)
        window = StateFileSync(self.project, BOT)
        store = SqliteWorkflows(database)
        desk = Desk(self.project, WorkflowRuns(plan=PLAN, store=store, sync=window, needs_proof=needs_proof))
        self.databases = [*getattr(self, "databases", [])[-3:], database]
        return desk

    def teardown(self) -> None:
        if hasattr(self, "databases"):
            self.patched.close()
            for database in self.databases:
                database.close()
            shutil.rmtree(self.project)

    def book(self, run: str) -> Book:
        return self.books.get(run, Book())

    # What a person does between calls.

    def file_there(self) -> bool:
        return self.touched is None and self.desks[0].file.exists()

    @precondition(file_there)
    @rule(path=st.sampled_from(PATHS))
    def edit_pointer(self, path: str) -> None:
        self.settled()
        self.desks[0].edit(current_action=f"{BOT}.{path}", workflow_complete=None)
        self.touched = f"pointer {path}"

    @precondition(file_there)
    @rule(path=st.sampled_from(PATHS), approval=st.sampled_from(["claimed", "confirmed", "proven"]))
    def edit_completed(self, path: str, approval: str) -> None:
        self.settled()
        line = {"action_state": f"{BOT}.{path}", "timestamp": AT, "approval": approval}
        self.desks[0].edit(completed_actions=[*self.desks[0].document()["completed_actions"], line])
        self.touched = f"completed {path}"

    @precondition(file_there)
    @rule()
    def lay_out_anew(self) -> None:
        file = self.desks[0].file
        file.write_text(json.dumps(json.loads(file.read_text()), indent=7))
        self.touched = "layout"

    @precondition(file_there)
    @rule()
    def delete(self) -> None:
        self.settled()
        self.desks[0].file.unlink()
        self.touched = "deleted"

    @precondition(file_there)
    @rule(garbage=GARBAGE)
    def spoil(self, garbage: bytes) -> None:
        self.desks[0].file.write_bytes(garbage)
        self.touched, self.garbage = "garbage", garbage

    @precondition(file_there)
    @rule()
    def copy(self) -> None:
        self.settled()
        self.copies.append(self.desks[0].file.read_bytes())

    @precondition(lambda self: self.file_there() and self.copies)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        self.settled()
        copy = data.draw(st.sampled_from(self.copies))
        if copy != self.desks[0].file.read_bytes():
            self.desks[0].file.write_bytes(copy)
            self.touched = "restored"

    # What agents do.

    @rule(handle=HANDLES, run=RUNS, move=st.sampled_from(["close", "close", "reject", *PLAN.behaviors, *PATHS]),
          fault=FAULTS, points=POINTS, keyed=st.booleans())  # fmt: skip
    def move(self, handle: int, run: str, move: str, fault: str, points: int, keyed: bool) -> None:
        before = self.heard()
        made = steps(move)(before.get(run, Book()).state)
        after = {**before, run: before.get(run, Book()).after(made)}
        self.keys += 1
        request = Request(key=f"k{self.keys}", tool="t", arguments={"run": run, "move": move}) if keyed else None
        acknowledged = self.call(handle, before, after, fault, points, lambda desk: self.sent(desk, run, move, request))
        # Of a crashed call that would have changed nothing, nobody can tell whether it was made.
        made_anyway = begun(before) != begun(after) and begun(self.books) == begun(after)
        if request is not None and (acknowledged or made_anyway):
            self.answers[request.key] = (run, move, made.answer)

    def sent(self, desk: Desk, run: str, move: str, request: Request | None) -> None:
        desk.state.move(steps(move), kind="step", principal="agent", run=run, request=request)

    @precondition(lambda self: bool(self.answers))
    @rule(handle=HANDLES, data=st.data())
    def send_again(self, handle: int, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.answers)))
        run, move, answer = self.answers[key]
        before = self.heard()
        request = Request(key=key, tool="t", arguments={"run": run, "move": move})
        again = self.desks[handle].state.move(steps(move), kind="step", principal="agent", run=run, request=request)
        self.touched = None
        self.agrees(before)
        assert (again.replayed, again.answer) == (True, answer)
        other = replace(request, arguments={"run": run, "move": "another"})
        with pytest.raises(ToolError) as refused:
            self.desks[handle].state.move(steps(move), kind="step", principal="agent", run=run, request=other)
        assert refused.value.code == ErrorCode.STATE_CONFLICT
        self.agrees(before)

    @rule(handle=HANDLES, fault=FAULTS, points=POINTS)
    def look(self, handle: int, fault: str, points: int) -> None:
        before = self.heard()
        self.call(handle, before, before, fault, points, lambda desk: desk.load())

    @precondition(lambda self: self.touched is None and "main" in self.books)
    @rule(handle=HANDLES, data=st.data(), fault=FAULTS, points=POINTS)
    def rewind(self, handle: int, data: st.DataObject, fault: str, points: int) -> None:
        self.settled()
        version = data.draw(st.sampled_from([0, *(e.version for e in self.desks[0].state.events(limit=1000))]))
        then = self.desks[0].state.state_at("main", version)
        book = self.book("main")
        self.faults.arm(points, fault) if fault != "none" else None
        try:
            self.desks[handle].state.rewind("main", version, principal="agent")
        except (Crash, ToolError):
            self.reopened()
        self.faults.disarm()
        now = self.read()["main"]
        if now.state.version != book.state.version:
            # What was proven comes back only where its files are shown to be the same, and nothing gets behind it.
            done = {p for p in then.latest if then.is_completed(p)}
            loose = {p for p in done if then.latest[p].is_approved and not book.state.is_completed(p)}
            assert {p for p in now.state.latest if now.state.is_completed(p)} == done - loose
            gate = next(open_gates(PLAN, now.state, needs_proof), None)
            behind = gate is not None and (then.finished or PLAN.comes_before(gate, then.current))
            current = gate if behind else then.current
            assert (now.state.current, now.state.version) == (current, book.state.version + 1)
            assert now.history[: len(book.history)] == book.history
        else:
            assert now == book
        self.books["main"] = now

    # How the model follows.

    def heard(self) -> Runs:
        """The runs as the next call must find them, once it has heard what the person did to the file."""
        touched, books = self.touched, self.books
        if touched is None or touched in ("layout", "garbage"):
            return dict(books)
        if touched == "deleted":
            return {run: Book(replace(begin(PLAN), version=book.state.version + 1)) for run, book in books.items()}
        read = parse_state(PLAN, self.desks[0].file.read_text())
        heard = dict(books)
        for run, state in read.runs.items():
            known = books.get(run)
            told = [] if known is None else known.history
            seen = map(untimed, read.histories[run])
            lines = [entry if entry in told else claimed(entry) for entry in seen]
            now = begin(PLAN) if known is None else known.state
            brought = [entry for entry in lines if entry not in told]
            version = max([state.version, *(entry.version for entry in lines)])
            version = version if known is None else max(version, now.version) + 1
            added = lines if known is None else self.added(now, lines, brought, version)
            latest = {**now.latest, **{entry.position: entry for entry in added}}
            state = replace(state, version=version, latest=latest)
            if passed_gate(PLAN, now, state, brought, needs_proof) is not None:
                continue
            taken = Book(without_delivery(now, state, needs_proof), [*told, *added])
            same = known is not None and replace(taken.state, version=now.version) == now and not added
            heard[run] = known if same and known is not None else taken
        return heard

    def added(self, now: RunState, lines: list[Entry], brought: list[Entry], version: int) -> list[Entry]:
        """What an edit adds to a history: new lines, restored ones, and a mark for each completion that it took out."""
        last = {entry.position: entry for entry in lines}
        added = [
            entry
            for entry in lines
            if entry in brought or (last[entry.position] is entry and now.latest.get(entry.position) != entry)
        ]
        gone = (position for position in sorted(now.latest) if now.is_completed(position) and position not in last)
        return [*added, *(Entry(position=each, at="", version=version, kind="reopened", by="file") for each in gone)]

    def call(
        self, handle: int, before: Runs, after: Runs, fault: str, points: int, send: Callable[[Desk], object]
    ) -> bool:
        """Make a call that may crash, and find it made whole or not at all; returns whether it was answered."""
        if fault != "none":
            self.faults.arm(points, fault)
        try:
            send(self.desks[handle])
        except Crash:
            self.faults.disarm()
            self.reopened()
            self.settled()
            self.agrees(before, after)
        except ToolError:
            assert self.faults.disarm(), "only a failing disk makes these calls fail"
            self.settled()
            self.agrees(before)
        else:
            # A full disk may keep a spoilt file from being mended. The call stands, and the next one mends the file.
            still_spoilt = self.faults.disarm() and self.touched == "garbage" and self.is_as_spoilt()
            self.touched = "garbage" if still_spoilt else None
            self.agrees(after)
            return True
        return False

    def is_as_spoilt(self) -> bool:
        """Whether the very bytes that somebody spoilt the file with still lie there."""
        file = self.desks[0].file
        return file.exists() and file.read_bytes() == self.garbage

    def reopened(self) -> None:
        self.desks = [self.opened(), self.opened()]

    def settled(self) -> None:
        """A call without faults: the file is heard and brought up to date."""
        self.desks[0].load()
        self.touched = None

    def read(self) -> Runs:
        state = self.desks[1].state
        return {
            each.name: Book(
                replace(each.state, latest={place: untimed(entry) for place, entry in each.state.latest.items()}),
                [untimed(line.entry) for line in state.history(each.name, limit=10**6)],
            )
            for each in state.runs()
        }

    def agrees(self, *allowed: Runs) -> None:
        found = self.read()
        assert begun(found) in [begun(each) for each in allowed]
        self.books = found

    @invariant()
    def nothing_is_ever_taken_back(self) -> None:
        """Lines of history stay as they were written, versions grow, and the chain holds."""
        if not project_state(self.project).exists():
            return
        with closing(open_database(project_state(self.project))) as database, database.read() as connection:
            rows = {tuple(row[:4]): row[4] for row in connection.execute(
                "SELECT run, generation, seq, version, body FROM workflow_entries"
            )}  # fmt: skip
            counted = connection.execute("SELECT run, version FROM workflow_events ORDER BY rowid").fetchall()
        assert self.rows.items() <= rows.items()
        self.rows = rows
        for run in {run for run, _ in counted}:
            versions = [version for each, version in counted if each == run]
            assert versions == sorted(set(versions))
        report = self.desks[0].state.verify()
        assert report.sound, report.problem

    @invariant()
    def nothing_is_closed_without_the_proof_that_is_asked_for(self) -> None:
        for body in map(json.loads, self.rows.values()):
            position = Position(behavior=body["behavior"], action=body["action"])
            is_closed = body.get("kind", "completed") == "completed"
            assert not (is_closed and needs_proof(position)) or body.get("approval") == "confirmed"

    @invariant()
    def the_file_is_never_half_of_one(self) -> None:
        file = self.desks[0].file
        if self.touched is None and file.exists():
            parse_state(PLAN, file.read_text())


@pytest.mark.timeout(3600)
def test_no_completion_is_lost_and_none_is_made_twice() -> None:
    run_state_machine_as_test(
        Workflow,
        settings=settings(
            max_examples=size(120, 10_000),
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        ),
    )
