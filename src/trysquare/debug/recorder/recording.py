"""Recording: the frames of a program as they come and go, bounded in number, in lines and in depth."""

from __future__ import annotations

import dis
import os
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, cast

from trysquare.debug.recorder.frames import FrameRecord
from trysquare.debug.recorder.shown import show

_SUSPENDABLE = 0x20 | 0x80 | 0x200
"""Flags of generators, coroutines and asynchronous generators."""
_YIELDS = frozenset({"YIELD_VALUE", "YIELD_FROM", "SEND", "RESUME", "INSTRUMENTED_YIELD_VALUE"})
LINES = 300_000
"""Lines after which no more are recorded: a long loop must not become an endless wait."""
RAISED = 500


class Recording:
    """What is known of the frames that live, and of those that an exception left."""

    def __init__(self, roots: list[str], *, skip: str, lines: int = LINES) -> None:
        self._roots = tuple(root.rstrip(os.sep) + os.sep for root in roots)
        self._skip = skip
        self._frames: dict[int, FrameRecord] = {}
        self._raised: dict[int, FrameRecord] = {}
        self._wanted: dict[CodeType, bool] = {}
        self._left = lines
        self._lock = threading.Lock()
        self.lines = 0

    @property
    def is_full(self) -> bool:
        """Whether the limit of lines was reached, so that what came after it is not known."""
        return self._left <= 0

    def wants(self, code: CodeType) -> bool:
        """Whether a function is the user's own: its file lies in the workspace, and not among installed packages."""
        known = self._wanted.get(code)
        if known is None:
            known = self._wanted[code] = self._is_own(code)
        return known

    def is_own_file(self, file: str) -> bool:
        """Whether a file belongs to the user."""
        path = os.path.abspath(file)
        if not path.startswith(self._roots) or path.startswith(self._skip):
            return False
        inner = path.replace("\\", "/")
        return "/site-packages/" not in inner and "/dist-packages/" not in inner and "/node_modules/" not in inner

    def called(self, frame: FrameType) -> None:
        """A frame began, or goes on after it was suspended."""
        key = id(frame)
        known = self._frames.get(key)
        if known is not None and known.code is frame.f_code and frame.f_code.co_flags & _SUSPENDABLE:
            return
        self._frames[key] = FrameRecord(frame)

    def stepped(self, frame: FrameType) -> None:
        """A line of a frame is about to run."""
        record = self._frames.get(id(frame))
        if record is None:
            record = self._frames[id(frame)] = FrameRecord(frame)
        if self._left > 0:
            self._left -= 1
            self.lines += 1
            record.step(frame)
        else:
            record.line = frame.f_lineno

    def left(self, frame: FrameType, value: Any, *, raised: bool) -> None:
        """A frame ended with a value, or by an exception that goes on to its caller."""
        if not raised and _is_suspended(frame):
            return
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

    def of(self, frame: FrameType) -> FrameRecord | None:
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

    def _is_own(self, code: CodeType) -> bool:
        name = code.co_filename
        if name.startswith("<") or code.co_name in ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"):
            return False
        return self.is_own_file(name)


def _is_suspended(frame: FrameType) -> bool:
    """Whether a generator or coroutine only pauses here. The debugger's hooks tell both as a return."""
    code = frame.f_code
    if not code.co_flags & _SUSPENDABLE or frame.f_lasti < 0:
        return False
    return dis.opname[code.co_code[frame.f_lasti]] in _YIELDS


def record(recording: Recording) -> None:
    """Begin to record, in this thread and in those that start later."""
    if sys.version_info >= (3, 12):
        _monitor(recording)
    else:
        _trace(recording)


def stop() -> None:
    """Record no more."""
    if sys.version_info >= (3, 12):
        monitoring: Any = _monitoring()
        if monitoring.get_tool(_TOOL) is not None:
            monitoring.set_events(_TOOL, 0)
            monitoring.free_tool_id(_TOOL)
    else:
        sys.settrace(None)
        threading.settrace(cast(Any, None))


current_frame: Callable[[int], FrameType] = getattr(sys, "_getframe")  # noqa: B009 - the way to frames has no public name


def _monitoring() -> Any:
    """`sys.monitoring`, which Python 3.11 has not."""
    return getattr(sys, "monitoring")  # noqa: B009 - checked against a Python that lacks it


_TOOL = 4
"""A number that neither debuggers, profilers nor coverage use by custom."""


def _trace(recording: Recording) -> None:
    """The way of Python 3.11: a function that the interpreter calls for each line of the frames that we want."""

    def local(frame: FrameType, event: str, value: Any) -> Any:
        if event == "line":
            recording.stepped(frame)
        elif event == "exception":
            unwinding.add(id(frame))
        elif event == "return":
            # A return after an exception is an unwinding unless a line ran in between, that is, it was caught.
            recording.left(frame, value, raised=value is None and id(frame) in unwinding)
            unwinding.discard(id(frame))
        if event == "line":
            unwinding.discard(id(frame))
        return local

    def whole(frame: FrameType, event: str, value: Any) -> Any:
        if event != "call" or not recording.wants(frame.f_code):
            return None
        recording.called(frame)
        return local

    unwinding: set[int] = set()
    threading.settrace(whole)
    sys.settrace(whole)


def _monitor(recording: Recording) -> None:
    """The way of Python 3.12 and later: events only for the functions that we want, so that others cost nothing."""
    monitoring: Any = _monitoring()
    events = monitoring.events
    local_events = events.LINE | events.PY_RETURN | events.PY_RESUME | events.PY_START

    def started(code: CodeType, offset: int) -> Any:
        if not recording.wants(code):
            return monitoring.DISABLE
        recording.called(current_frame(1))
        monitoring.set_local_events(_TOOL, code, local_events)
        return None

    def lined(code: CodeType, line: int) -> Any:
        if not recording.wants(code):
            return monitoring.DISABLE
        recording.stepped(current_frame(1))
        return None

    def returned(code: CodeType, offset: int, value: Any) -> Any:
        if not recording.wants(code):
            return monitoring.DISABLE
        recording.left(current_frame(1), value, raised=False)
        return None

    def unwound(code: CodeType, offset: int, error: BaseException) -> None:
        if recording.wants(code):
            recording.left(current_frame(1), None, raised=True)

    monitoring.use_tool_id(_TOOL, "trysquare")
    monitoring.register_callback(_TOOL, events.PY_START, started)
    monitoring.register_callback(_TOOL, events.LINE, lined)
    monitoring.register_callback(_TOOL, events.PY_RETURN, returned)
    monitoring.register_callback(_TOOL, events.PY_UNWIND, unwound)
    monitoring.set_events(_TOOL, events.PY_START | events.PY_UNWIND)
