"""Recording: the frames of a program as they come and go, bounded in number, in lines and in depth."""

from __future__ import annotations

import threading
from types import FrameType
from typing import Any

from trysquare.debug.recorder.frames import FrameRecord
from trysquare.debug.recorder.shown import show
from trysquare.debug.recorder.watcher import Watcher, is_resumed

LINES = 1_000_000
"""Lines after which no more are recorded: a long loop must not become an endless wait."""
RAISED = 500


class Recording(Watcher):
    """What is known of the frames that live, and of those that an exception left."""

    def __init__(self, roots: list[str], *, skip: str, lines: int = LINES) -> None:
        super().__init__(roots, skip=skip, lines=lines)
        self._frames: dict[int, FrameRecord] = {}
        self._raised: dict[int, FrameRecord] = {}
        self._lock = threading.Lock()

    def called(self, frame: FrameType) -> None:
        known = self._frames.get(id(frame))
        if known is not None and known.code is frame.f_code and is_resumed(frame):
            return
        self._frames[id(frame)] = FrameRecord(frame)

    def stepped(self, frame: FrameType) -> None:
        record = self._frames.get(id(frame))
        if record is None:
            record = self._frames[id(frame)] = FrameRecord(frame)
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
            return
        record.ended = "returned"
        record.returned = show(value)
        caller = self._caller(frame)
        if caller is not None:
            caller.add_callee(record)

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
