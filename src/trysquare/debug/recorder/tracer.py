"""Trace of one call of a function: each line with what it changed, and the calls that it made."""

from __future__ import annotations

from collections import deque
from types import CodeType, FrameType
from typing import Any

from trysquare.debug.recorder.expressions import condition
from trysquare.debug.recorder.frames import FrameRecord
from trysquare.debug.recorder.hooks import Watcher, is_resumed, name_of
from trysquare.debug.recorder.values import show

_MAX_STEPS = 50_000
_MAX_CALLS = 4
"""Calls to record of one line."""
_MAX_ABOVE = 20


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

    def add_call(self, call: list[str]) -> None:
        if self.steps and len(self.steps[-1][2]) < _MAX_CALLS:
            self.steps[-1][2].append(call)

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
                call.add_call(call_text)
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
