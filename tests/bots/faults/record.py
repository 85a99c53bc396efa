"""What a state file tells of the runs of its bots, read past the program, and the laws that all of it must keep."""

from __future__ import annotations

import functools
import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.bots.faults.tool_site import Law

BY_HAND = frozenset({"external_edit", "imported", "reset_by_delete"})
"""Changes that a person made to the state file, and a call heard of."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A line of a history."""

    path: str
    version: int
    is_done: bool
    approval: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Stand:
    """Where a run stands, without its history."""

    current: str
    delivered: bool
    finished: bool
    rejections: int
    pointers: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """A change of a run."""

    bot: str
    run: str
    version: int
    kind: str
    generation: int
    lines: int
    """How many lines the history of its generation had then."""
    stand: Stand


@dataclass(frozen=True, kw_only=True)
class Record:
    """All that was ever written, in order."""

    events: Sequence[Event]
    lines: Mapping[tuple[str, str, int], Sequence[Line]]
    rows: Mapping[tuple[str, str], tuple[int, int, int, Stand]]
    audit: Sequence[tuple[str, str]]

    def history(self, event: Event) -> list[Line]:
        """The history of a run as it was after a change."""
        return [*self.lines.get((event.bot, event.run, event.generation), ())[: event.lines]]

    def before(self, law: Law, event: Event) -> tuple[Event, list[Line]]:
        """The change of the run before a change, and its history then; a run that is new stood at the beginning."""
        earlier = self.events[: self.events.index(event)]
        for each in reversed(earlier):
            if (each.bot, each.run) == (event.bot, event.run):
                return each, self.history(each)
        return beginning(law, event.run), []

    def last(self, law: Law, run: str) -> tuple[Event, list[Line]]:
        """The last change of a run, and its present history."""
        for each in reversed(self.events):
            if (each.bot, each.run) == (law.bot, run):
                return each, self.history(each)
        return beginning(law, run), []


EMPTY = Record(events=[], lines={}, rows={}, audit=[])


def beginning(law: Law, run: str) -> Event:
    """Where a run stands that has not done anything."""
    first = law.order[0]
    stand = Stand(current=first, delivered=False, finished=False, rejections=0, pointers=(first,))
    return Event(bot=law.bot, run=run, version=0, kind="", generation=0, lines=0, stand=stand)


def is_done(history: Sequence[Line], path: str) -> bool:
    """Whether the last word on an action is that it is done."""
    return next((line.is_done for line in reversed(history) if line.path == path), False)


def read_record(connection: sqlite3.Connection) -> Record:
    """Read everything."""
    lines: dict[tuple[str, str, int], list[Line]] = {}
    for bot, run, generation, body in connection.execute(
        "SELECT bot, run, generation, body FROM workflow_entries ORDER BY bot, run, generation, seq"
    ):
        lines.setdefault((bot, run, generation), []).append(_line(body))
    events = connection.execute(
        "SELECT bot, run, version, kind, generation, entries, state FROM workflow_events ORDER BY rowid"
    )
    rows = connection.execute("SELECT bot, run, version, generation, entries, state FROM workflow_runs")
    return Record(
        lines=lines,
        events=[
            Event(bot=bot, run=run, version=version, kind=kind, generation=generation, lines=count, stand=_stand(state))
            for bot, run, version, kind, generation, count, state in events
        ],
        rows={
            (bot, run): (version, generation, count, _stand(state))
            for bot, run, version, generation, count, state in rows
        },
        audit=connection.execute("SELECT kind, body FROM audit ORDER BY seq").fetchall(),
    )


@functools.lru_cache(maxsize=4096)
def _line(body: str) -> Line:
    read: dict[str, Any] = json.loads(body)
    return Line(
        path=f"{read['behavior']}.{read['action']}",
        version=read["version"],
        is_done=read.get("kind", "completed") == "completed",
        approval=read.get("approval", "claimed"),
    )


@functools.lru_cache(maxsize=4096)
def _stand(state: str) -> Stand:
    read: dict[str, Any] = json.loads(state)
    return Stand(
        current=".".join(read["current"]),
        delivered=read["delivered"],
        finished=read["finished"],
        rejections=read["rejections"],
        pointers=tuple(f"{behavior}.{action}" for behavior, action in read["pointers"].items()),
    )


def check_kept(before: Record, after: Record) -> None:
    """Nothing that was written is ever taken back."""
    assert after.events[: len(before.events)] == before.events
    assert after.audit[: len(before.audit)] == before.audit
    for name, lines in before.lines.items():
        assert after.lines[name][: len(lines)] == lines


def check_agreeing(record: Record) -> None:
    """Versions only grow, the rows are what the last changes made of them, and the audit tells of every change."""
    last: dict[tuple[str, str], Event] = {}
    for event in record.events:
        earlier = last.get((event.bot, event.run))
        assert earlier is None or event.version > earlier.version
        last[event.bot, event.run] = event
    assert record.rows == {
        name: (event.version, event.generation, event.lines, event.stand) for name, event in last.items()
    }
    for (bot, run), event in last.items():
        assert len(record.lines.get((bot, run, event.generation), ())) == event.lines
    told = [
        (body["bot"], body["run"], body["version"], kind.removeprefix("workflow."), body["current"])
        for kind, body in ((kind, json.loads(text)) for kind, text in record.audit)
        if kind.startswith("workflow.") and "version" in body
    ]
    assert told == [(each.bot, each.run, each.version, each.kind, each.stand.current) for each in record.events]


def check_change(law: Law, record: Record, event: Event) -> list[Line]:
    """One change is a step that the workflow knows; returns the lines that it added."""
    before, told = record.before(law, event)
    if event.kind in BY_HAND:
        _check_by_hand(law, record, event)
        return []
    assert event.generation == before.generation
    assert record.history(event)[: len(told)] == told
    added = record.history(event)[len(told) :]
    assert [line.version for line in added] == sorted({line.version for line in added})
    assert all(before.version < line.version <= event.version for line in added)
    match event.kind:
        case "close" | "skip":
            _check_close(law, before.stand, event, added)
        case "open":
            _check_open(law, before.stand, told, event, added)
        case "reject":
            assert (added, event.stand.current) == ([], before.stand.current)
            assert event.stand.rejections == before.stand.rejections + 1
        case _:
            raise AssertionError(event.kind)
    return added


def _check_close(law: Law, before: Stand, event: Event, added: Sequence[Line]) -> None:
    """The current action was completed, with those that go with it, and nothing else; and the pointer moved on."""
    assert not before.finished
    together = law.together(before.current)
    assert [line.path for line in added if line.is_done] == together
    assert len(added) == len(together)
    following = law.after(together[-1])
    assert event.stand.finished or event.stand.current not in together
    assert following is None or event.stand.current == following
    assert not event.stand.delivered


def _check_open(law: Law, before: Stand, told: Sequence[Line], event: Event, added: Sequence[Line]) -> None:
    """An action was made current; it is marked where it was done, and only initialize_project is done by itself."""
    done = [line.path for line in added if line.is_done]
    target = done[0] if done else event.stand.current
    assert len(done) <= 1
    assert all(path.endswith(".initialize_project") for path in done)
    is_current = target == before.current and not before.finished
    marks = [line.path for line in added if not line.is_done]
    assert marks == ([target] if is_done(told, target) and not is_current else [])
    assert law.ahead or is_current or marks or target in before.pointers, "this bot opens nothing before its turn"
    assert bool(done) or event.stand.delivered


def _check_by_hand(law: Law, record: Record, event: Event) -> None:
    """An edit passes no action that only a person can close, and a deletion sets the run to its beginning."""
    before, told = record.before(law, event)
    if event.kind == "reset_by_delete":
        assert (event.lines, event.stand) == (0, beginning(law, event.run).stand)
        return
    brought = {line for line in record.history(event) if line.is_done} - {*told}
    assert not {line.path for line in brought} & (law.proof - law.passed_over)
    start, stop = (
        len(law.order) if each.finished else law.order.index(each.current) for each in (before.stand, event.stand)
    )
    skipped = law.order[start:stop]
    assert all(is_done(told, path) for path in skipped if path in law.proof - law.passed_over)
