"""Flow: everything that the main thread did in the user's own code, in order, to be laid beside another run."""

from __future__ import annotations

import threading
from types import CodeType, FrameType
from typing import Any

from trysquare.debug.recorder.frames import FrameRecord
from trysquare.debug.recorder.shown import show
from trysquare.debug.recorder.watcher import Watcher, is_resumed, name_of

STEPS = 30_000
CALLED = "called"
RETURNED = "returned"
RAISED = "raised"


class Flow(Watcher):
    """A list of steps: the function, the line or what became of the call, and what changed."""

    def __init__(self, roots: list[str], *, skip: str) -> None:
        super().__init__(roots, skip=skip, lines=STEPS)
        self._main = threading.main_thread().ident
        self._frames: dict[int, tuple[FrameRecord, list[list[Any]]]] = {}
        self._functions: dict[CodeType, int] = {}
        self._steps: list[list[Any]] = []

    def called(self, frame: FrameType) -> None:
        if is_resumed(frame) or threading.get_ident() != self._main:
            return
        record = FrameRecord(frame)
        self._frames[id(frame)] = (record, [])
        self._steps.append([self._number(frame.f_code), CALLED, record.arguments])

    def stepped(self, frame: FrameType) -> None:
        if (known := self._known(frame)) is None:
            return
        self._settle(frame, *known)
        self.lines += 1
        step: list[Any] = [self._number(frame.f_code), frame.f_lineno, {}]
        self._steps.append(step)
        known[1][:] = [step]

    def left(self, frame: FrameType, value: Any, *, raised: bool) -> None:
        if (known := self._known(frame)) is None:
            return
        self._settle(frame, *known)
        self._frames.pop(id(frame), None)
        how = RAISED if raised else RETURNED
        self._steps.append([self._number(frame.f_code), how, {} if raised else {"": show(value)}])

    def to_json(self) -> dict[str, Any]:
        functions = [
            {"file": code.co_filename, "function": name_of(code), "first_line": code.co_firstlineno}
            for code in self._functions
        ]
        return {"functions": functions, "steps": self._steps}

    def _known(self, frame: FrameType) -> tuple[FrameRecord, list[list[Any]]] | None:
        known = self._frames.get(id(frame))
        return known if known is not None and known[0].code is frame.f_code else None

    def _settle(self, frame: FrameType, record: FrameRecord, last: list[list[Any]]) -> None:
        changes = record.changes_of(frame)
        for step in last:
            step[2].update(changes)

    def _number(self, code: CodeType) -> int:
        return self._functions.setdefault(code, len(self._functions))
