"""Trace of one call of a function; probes: expressions at lines, summarized at once, so that no hit is lost."""

from __future__ import annotations

import os
import threading
from collections import deque
from types import CodeType, FrameType
from typing import Any, cast

from trysquare.debug.recorder.expressions import condition, evaluate
from trysquare.debug.recorder.frames import FrameRecord
from trysquare.debug.recorder.hooks import Watcher, is_resumed, name_of
from trysquare.debug.recorder.values import show

_MAX_STEPS = 50_000
_MAX_CALLS = 4
"""Calls to record of one line."""
_MAX_ABOVE = 20
_MAX_DISTINCT = 1000
_LONGEST = 80


class TracedCall:
    """One call: its arguments, its steps in order, and how it ended."""

    def __init__(self, frame: FrameType, number: int) -> None:
        self.number = number
        self.record = FrameRecord(frame)
        self.steps: list[list[Any]] = []
        self.caller = "" if frame.f_back is None else f"{frame.f_back.f_code.co_filename}:{frame.f_back.f_lineno}"

    def step(self, frame: FrameType) -> None:
        """Record the line that is about to run, and what the one before has changed."""
        self.settle(frame)
        self.steps.append([frame.f_lineno, {}, []])

    def settle(self, frame: FrameType) -> None:
        if self.steps:
            self.steps[-1][1].update(self.record.changes_of(frame))

    def to_json(self) -> dict[str, Any]:
        return self.record.to_json() | {"number": self.number, "steps": self.steps, "caller": self.caller}


class CallTracer(Watcher):
    """Records one call, chosen by its number or by a condition on its arguments."""

    def __init__(self, roots: list[str], *, skip: str, options: dict[str, Any]) -> None:
        super().__init__(roots, skip=skip, lines=_MAX_STEPS)
        self._function = str(options["function"])
        self._number = int(options.get("call") or 1)
        self._when: str | None = options.get("when") or None
        self._targets: dict[CodeType, bool] = {}
        self._calls = 0
        self._active: dict[int, TracedCall] = {}
        self._inner: dict[int, tuple[TracedCall, list[str]]] = {}
        self._recorded: deque[TracedCall] = deque(maxlen=max(1, -self._number))
        self._refused: str | None = None

    def wants_line(self, code: CodeType, line: int) -> bool:
        return self._is_target(code)

    def called(self, frame: FrameType) -> None:
        if is_resumed(frame):
            return
        self._note_inner(frame)
        if self._is_target(frame.f_code):
            self._calls += 1
            if self._is_chosen(frame):
                self._active[id(frame)] = TracedCall(frame, self._calls)

    def stepped(self, frame: FrameType) -> None:
        call = self._active.get(id(frame))
        if call is not None and call.record.code is frame.f_code:
            self.lines += 1
            call.step(frame)

    def left(self, frame: FrameType, value: Any, *, raised: bool) -> None:
        how = "raised" if raised else show(value)
        if (inner := self._inner.pop(id(frame), None)) is not None:
            inner[1].append(how)
        call = self._active.pop(id(frame), None)
        if call is not None:
            call.settle(frame)
            call.record.line = frame.f_lineno
            call.record.ended = "raised" if raised else "returned"
            call.record.returned = None if raised else how
            self._recorded.append(call)

    def to_json(self) -> dict[str, Any]:
        calls = [*self._recorded, *self._active.values()]
        index = -min(len(calls), -self._number) if self._number < 0 else 0
        chosen = calls[index] if calls else None
        return {"calls": self._calls, "call": chosen and chosen.to_json(), "refused": self._refused}

    def _is_wanted(self, code: CodeType) -> bool:
        return self._is_target(code) or self.is_own(code)

    def _is_target(self, code: CodeType) -> bool:
        known = self._targets.get(code)
        if known is None:
            name = name_of(code)
            is_named = name == self._function or name.endswith("." + self._function)
            known = self._targets[code] = is_named and not code.co_filename.startswith(("<", self._skip))
        return known

    def _is_chosen(self, frame: FrameType) -> bool:
        if self._recorded and self._number > 0:
            return False
        if self._when is not None:
            if self._active:
                return False
            is_true, error = condition(self._when, frame)
            self._refused = error or self._refused
            return is_true
        return self._number < 0 or self._calls == self._number

    def _note_inner(self, frame: FrameType) -> None:
        """Record a call that the traced one made, directly or through code that is not the user's."""
        above = frame.f_back
        for _ in range(_MAX_ABOVE):
            if above is None:
                return
            call = self._active.get(id(above))
            if call is not None and call.record.code is above.f_code:
                call_text = [name_of(frame.f_code), _arguments(frame)]
                if call.steps and len(call.steps[-1][2]) < _MAX_CALLS:
                    call.steps[-1][2].append(call_text)
                self._inner[id(frame)] = (call, call_text)
                return
            if self.wants(above.f_code):
                return
            above = above.f_back


def _arguments(frame: FrameType) -> str:
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    known = frame.f_locals
    given = [f"{name}={show(known[name], name=name, longest=60)}" for name in names[:6] if name in known]
    return ", ".join(each for each in given if not each.startswith(("self=", "cls=")))


class Tally:
    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.count = 0
        self.errors = 0
        self.error = ""
        self.least: Any = None
        self.most: Any = None
        self.first = self.last = ""
        self.change: list[Any] | None = None
        self.seen: dict[str, int] = {}

    def evaluate(self, frame: FrameType, hit: int) -> None:
        value, error = evaluate(self.expression, frame)
        if error:
            self.errors += 1
            self.error = self.error or error
            return
        self.count += 1
        text = show(value, name=self.expression, longest=_LONGEST)
        if self.count == 1:
            self.first = text
        elif self.change is None and text != self.last:
            self.change = [hit, self.last, text]
        self.last = text
        if type(value) in (int, float):
            self.least = value if self.least is None or value < self.least else self.least
            self.most = value if self.most is None or value > self.most else self.most
        if text in self.seen or len(self.seen) < _MAX_DISTINCT:
            self.seen[text] = self.seen.get(text, 0) + 1

    def to_json(self) -> dict[str, Any]:
        common = sorted(self.seen.items(), key=lambda pair: -pair[1])[:3]
        return {
            "expression": self.expression, "count": self.count, "errors": self.errors, "error": self.error,
            "min": self.least, "max": self.most, "distinct": len(self.seen),
            "distinct_is_least": len(self.seen) >= _MAX_DISTINCT, "first": self.first, "last": self.last,
            "first_change": self.change, "common": [list(pair) for pair in common],
        }  # fmt: skip


class Probe:
    def __init__(self, wanted: dict[str, Any]) -> None:
        self.file = os.path.realpath(str(wanted["file"]))
        self.line = int(wanted["line"])
        self.hits = 0
        self.tallies = [Tally(str(expression)) for expression in wanted["expressions"]]

    def to_json(self) -> dict[str, Any]:
        values = [tally.to_json() for tally in self.tallies]
        return {"file": self.file, "line": self.line, "hits": self.hits, "values": values}


class ProbeRecorder(Watcher):
    """Records probes. Only functions with a probed line are traced, and of them only that line."""

    def __init__(self, roots: list[str], *, skip: str, options: dict[str, Any]) -> None:
        super().__init__(roots, skip=skip, lines=1)
        self._probes = [Probe(each) for each in cast(list[dict[str, Any]], options["probes"])]
        self._lock = threading.Lock()
        self._lines: dict[CodeType, dict[int, list[Probe]]] = {}
        # In a child that is forked while another thread counts, the lock would stay taken.
        os.register_at_fork(after_in_child=lambda: setattr(self, "_lock", threading.Lock()))

    @property
    def is_full(self) -> bool:
        return False

    def wants_line(self, code: CodeType, line: int) -> bool:
        return line in self._lines.get(code, {})

    def stepped(self, frame: FrameType) -> None:
        with self._lock:
            for probe in self._lines[frame.f_code][frame.f_lineno]:
                self.lines += 1
                probe.hits += 1
                for tally in probe.tallies:
                    tally.evaluate(frame, probe.hits)

    def to_json(self) -> dict[str, Any]:
        return {"probes": [probe.to_json() for probe in self._probes]}

    def _is_wanted(self, code: CodeType) -> bool:
        file = os.path.realpath(code.co_filename)
        lines = {line for _, _, line in code.co_lines() if line is not None}
        found: dict[int, list[Probe]] = {}
        for probe in self._probes:
            if probe.file == file and probe.line in lines:
                found.setdefault(probe.line, []).append(probe)
        self._lines[code] = found
        return bool(found)
