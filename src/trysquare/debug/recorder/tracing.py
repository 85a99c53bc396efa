"""Tracing: the whole life of one call of a function: each line with what it changed, and the calls that it made."""

from __future__ import annotations

from collections import deque
from types import CodeType, FrameType
from typing import Any

from trysquare.debug.recorder.evaluating import condition
from trysquare.debug.recorder.frames import FrameRecord
from trysquare.debug.recorder.shown import show
from trysquare.debug.recorder.watcher import Watcher, is_resumed, name_of

STEPS = 50_000
CALLS_OF_A_LINE = 4
_ABOVE = 20


class TracedCall:
    """One call: what it was given, its steps in order, how it ended."""

    def __init__(self, frame: FrameType, number: int) -> None:
        self.number = number
        self.life = FrameRecord(frame)
        self.steps: list[list[Any]] = []
        self.caller = "" if frame.f_back is None else f"{frame.f_back.f_code.co_filename}:{frame.f_back.f_lineno}"

    def step(self, frame: FrameType) -> None:
        """A line is about to run: what the one before has changed is known now."""
        self.settle(frame)
        self.steps.append([frame.f_lineno, {}, []])

    def settle(self, frame: FrameType) -> None:
        """Note what the last line has changed."""
        if self.steps:
            self.steps[-1][1].update(self.life.changes_of(frame))

    def add_call(self, call: list[str]) -> None:
        """Note a call that the last line made."""
        if self.steps and len(self.steps[-1][2]) < CALLS_OF_A_LINE:
            self.steps[-1][2].append(call)

    def to_json(self) -> dict[str, Any]:
        told = self.life.to_json()
        return told | {"number": self.number, "steps": self.steps, "caller": self.caller}


class Tracing(Watcher):
    """Waits for the call that is wanted, by its number or by a condition on its arguments, and records it."""

    def __init__(self, roots: list[str], *, skip: str, options: dict[str, Any]) -> None:
        super().__init__(roots, skip=skip, lines=STEPS)
        self._function = str(options["function"])
        self._number = int(options.get("call") or 1)
        when = options.get("when")
        self._when: str | None = when or None
        self._targets: dict[CodeType, bool] = {}
        self._calls = 0
        self._active: dict[int, TracedCall] = {}
        self._inner: dict[int, tuple[TracedCall, list[str]]] = {}
        self._kept: deque[TracedCall] = deque(maxlen=max(1, -self._number))
        self._refused: str | None = None

    def wants_line(self, code: CodeType, line: int) -> bool:
        return self._is_target(code)

    def called(self, frame: FrameType) -> None:
        if is_resumed(frame):
            return
        if not self._is_target(frame.f_code):
            self._note_inner(frame)
            return
        self._note_inner(frame)
        self._calls += 1
        if self._is_chosen(frame):
            self._active[id(frame)] = TracedCall(frame, self._calls)

    def stepped(self, frame: FrameType) -> None:
        call = self._active.get(id(frame))
        if call is not None and call.life.code is frame.f_code:
            self.lines += 1
            call.step(frame)

    def left(self, frame: FrameType, value: Any, *, raised: bool) -> None:
        how = "raised" if raised else show(value)
        if (inner := self._inner.pop(id(frame), None)) is not None:
            inner[1].append(how)
        call = self._active.pop(id(frame), None)
        if call is not None:
            call.settle(frame)
            call.life.line = frame.f_lineno
            call.life.ended = "raised" if raised else "returned"
            call.life.returned = None if raised else how
            self._kept.append(call)

    def to_json(self) -> dict[str, Any]:
        kept = [*self._kept, *self._active.values()]
        chosen = kept[-min(len(kept), -self._number)] if kept and self._number < 0 else kept[0] if kept else None
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
        if self._kept and self._number > 0:
            return False
        if self._when is not None:
            return not self._active and self._holds(self._when, frame)
        return self._number < 0 or self._calls == self._number

    def _holds(self, when: str, frame: FrameType) -> bool:
        is_true, error = condition(when, frame)
        self._refused = error or self._refused
        return is_true

    def _note_inner(self, frame: FrameType) -> None:
        """A call of the traced one, at once or through code that is not the user's."""
        above = frame.f_back
        for _ in range(_ABOVE):
            if above is None:
                return
            call = self._active.get(id(above))
            if call is not None and call.life.code is above.f_code:
                told = [name_of(frame.f_code), _arguments(frame)]
                call.add_call(told)
                self._inner[id(frame)] = (call, told)
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
