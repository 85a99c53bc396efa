"""Recording: the frames of a program as they come and go, bounded in number, in lines and in depth."""

from __future__ import annotations

import threading
from types import FrameType, TracebackType
from typing import Any

from trysquare.debug.recorder.frames import FrameRecord
from trysquare.debug.recorder.raised import RaisedLog
from trysquare.debug.recorder.shown import show
from trysquare.debug.recorder.watcher import Watcher, is_resumed

LINES = 1_000_000
"""Lines after which no more are recorded: a long loop must not become an endless wait."""
RAISED = 500
_TEXTS = ("__repr__", "__str__", "__format__", "__rich_repr__", "_repr_pretty_")
_TEXT_MAKERS = ("_pytest.assertion", "_pytest._io", "_pytest._code", "unittest.util")
"""Modules that make the text of a failure: whatever they call is no part of what the program did."""
_REPORTERS = ("_pytest", "pytest", "unittest", "hypothesis", "logging")
"""Modules that make a text of a value for a message; what else they call is the program's own."""


class Recording(Watcher):
    """What is known of the frames that live, and of those that an exception left."""

    def __init__(self, roots: list[str], *, skip: str, lines: int = LINES) -> None:
        super().__init__(roots, skip=skip, lines=lines)
        self._frames: dict[int, FrameRecord] = {}
        self._raised: dict[int, FrameRecord] = {}
        self._lock = threading.Lock()
        self._log = RaisedLog(self.is_own_file)

    def called(self, frame: FrameType) -> None:
        known = self._frames.get(id(frame))
        if known is not None and known.code is frame.f_code and is_resumed(frame):
            return
        self._frames[id(frame)] = FrameRecord(frame, is_for_display=self._is_for_display(frame))

    def stepped(self, frame: FrameType) -> None:
        record = self._frames.get(id(frame))
        if record is None:
            record = self._frames[id(frame)] = FrameRecord(frame, is_begun=True)
        self.lines += 1
        record.step(frame)

    def left(self, frame: FrameType, value: Any, *, raised: bool) -> None:
        record = self._frames.pop(id(frame), None)
        if record is None:
            return
        record.settle(frame)
        record.line = frame.f_lineno
        if raised:
            record.ended = "raised"
            self._keep(id(frame), record)
            self._log.passed_on(frame)
            return
        record.ended = "returned"
        record.returned = show(value)
        self._tell_caller(frame, record)

    def yielded(self, frame: FrameType, value: Any) -> None:
        record = self._frames.get(id(frame))
        if record is None or record.code is not frame.f_code:
            return
        record.settle(frame)
        record.line = frame.f_lineno
        record.yield_line = frame.f_lineno
        record.yields += 1
        record.yielded = show(value)
        self._tell_caller(frame, record)

    def begin_test(self) -> None:
        self._log.clear()

    def raised(self, frame: FrameType, error: BaseException, trace: TracebackType | None) -> Any:
        record = self._frames.get(id(frame))
        return None if record is not None and record.is_for_display else self._log.note(frame, error, trace)

    def handled(self, frame: FrameType, raised: Any) -> None:
        if raised is not None:
            self._log.caught(frame, raised)

    def also_raised(self, known: list[BaseException]) -> list[dict[str, Any]]:
        return self._log.others(known)

    def record_of(self, frame: FrameType) -> dict[str, Any] | None:
        record = self._of(frame)
        if record is None:
            return None
        if self.is_full:
            record.skip_lines()
        record.settle(frame)
        return record.to_json()

    def _of(self, frame: FrameType) -> FrameRecord | None:
        """The record of a frame that lives, or that an exception left and keeps alive."""
        for records in (self._frames, self._raised):
            record = records.get(id(frame))
            if record is not None and record.code is frame.f_code:
                return record
        return None

    def _keep(self, key: int, record: FrameRecord) -> None:
        with self._lock:
            self._raised.pop(key, None)
            self._raised[key] = record
            while len(self._raised) > RAISED:
                self._raised.pop(next(iter(self._raised)))

    def _tell_caller(self, frame: FrameType, record: FrameRecord) -> None:
        caller = None if record.is_for_display else self._caller(frame)
        if caller is not None:
            caller.add_callee(record)

    def _is_for_display(self, frame: FrameType) -> bool:
        """Whether a call is made to show a value in a message: by code that reports, or inside of such a call."""
        is_text = frame.f_code.co_name in _TEXTS
        above = frame.f_back
        for _ in range(60):
            if above is None:
                return False
            record = self._frames.get(id(above))
            if record is not None and record.code is above.f_code:
                return record.is_for_display
            module = str(above.f_globals.get("__name__") or "")
            if module.startswith(_TEXT_MAKERS) or (is_text and module.partition(".")[0] in _REPORTERS):
                return True
            above = above.f_back
        return False

    def _caller(self, frame: FrameType) -> FrameRecord | None:
        """The nearest frame above that is recorded: between two functions of the user may be a library's."""
        above = frame.f_back
        for _ in range(20):
            if above is None:
                return None
            if (record := self._frames.get(id(above))) is not None and record.code is above.f_code:
                return record
            above = above.f_back
        return None
