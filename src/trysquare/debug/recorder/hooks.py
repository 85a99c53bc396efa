"""Hooks: how a watcher hears of a program: by a trace function in Python 3.11, by `sys.monitoring` later."""

from __future__ import annotations

import dis
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, cast

from trysquare.debug.recorder.watcher import GENERATOR, SUSPENDABLE, Watcher

_YIELDS = frozenset({"YIELD_VALUE", "YIELD_FROM", "SEND", "RESUME", "INSTRUMENTED_YIELD_VALUE"})
_RETURNS = frozenset({"RETURN_VALUE", "RETURN_GENERATOR"})
_TOOL = 4
"""A number that neither debuggers, profilers nor coverage use by custom."""


def record(watcher: Watcher) -> None:
    """Begin to record, in this thread and in those that start later."""
    if sys.version_info >= (3, 12):
        _monitor(watcher)
    else:
        _trace(watcher)


def stop() -> None:
    """Record no more."""
    if sys.version_info >= (3, 12):
        monitoring: Any = _monitoring()
        if monitoring.get_tool(_TOOL) is not None:
            monitoring.set_events(_TOOL, 0)
            # Numbers of tools are given back with the events of single functions still set.
            monitoring.free_tool_id(_TOOL)
    else:
        sys.settrace(None)
        threading.settrace(cast(Any, None))


current_frame: Callable[[int], FrameType] = getattr(sys, "_getframe")  # noqa: B009 - the way to frames has no public name


def _monitoring() -> Any:
    """`sys.monitoring`, which Python 3.11 has not."""
    return getattr(sys, "monitoring")  # noqa: B009 - checked against a Python that lacks it


def _trace(watcher: Watcher) -> None:
    """The way of Python 3.11: a function that the interpreter calls for each line of the frames that we want."""
    tracer = _Tracer(watcher)
    threading.settrace(tracer.whole)
    sys.settrace(tracer.whole)


class _Tracer:
    """The trace functions: of all frames, and of those that we want."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._unwinding: dict[int, Any] = {}
        """What the watcher knows of the exception that came to a frame, until a line runs there again."""

    def whole(self, frame: FrameType, event: str, value: Any) -> Any:
        watcher = self._watcher
        if event != "call" or watcher.is_paused or watcher.is_full or not watcher.wants(frame.f_code):
            return None
        begun = time.perf_counter()
        watcher.called(frame)
        watcher.spent += time.perf_counter() - begun
        return self._local

    def _local(self, frame: FrameType, event: str, value: Any) -> Any:
        watcher = self._watcher
        if watcher.is_paused:
            return self._local
        begun = time.perf_counter()
        if event == "line":
            self._line(frame)
        elif event == "exception":
            self._unwinding[id(frame)] = watcher.raised(frame, value[1], value[2])
        elif event == "return":
            self._return(frame, value)
        watcher.spent += time.perf_counter() - begun
        return None if watcher.is_full else self._local

    def _line(self, frame: FrameType) -> None:
        if id(frame) in self._unwinding:
            self._watcher.handled(frame, self._unwinding.pop(id(frame)))
        if self._watcher.wants_line(frame.f_code, frame.f_lineno):
            self._watcher.stepped(frame)

    def _return(self, frame: FrameType, value: Any) -> None:
        if not _is_suspended(frame):
            # The trace function is told of an exception that leaves a frame as of a return of None.
            self._watcher.left(frame, value, raised=value is None and not _is_returning(frame))
            self._unwinding.pop(id(frame), None)
        elif frame.f_code.co_flags & GENERATOR:
            self._watcher.yielded(frame, value)


def _is_suspended(frame: FrameType) -> bool:
    """Whether a generator or coroutine only pauses here. The trace function is told both as a return."""
    code = frame.f_code
    if not code.co_flags & SUSPENDABLE or frame.f_lasti < 0:
        return False
    return dis.opname[code.co_code[frame.f_lasti]] in _YIELDS


def _is_returning(frame: FrameType) -> bool:
    """Whether a frame ends by a `return`, its own or the one at its end."""
    return frame.f_lasti >= 0 and dis.opname[frame.f_code.co_code[frame.f_lasti]] in _RETURNS


def _monitor(watcher: Watcher) -> None:
    """The way of Python 3.12 and later: events only for the functions that we want, so that others cost nothing."""
    monitoring: Any = _monitoring()
    events = monitoring.events
    monitor = _Monitor(watcher, monitoring)
    monitoring.use_tool_id(_TOOL, "trysquare")
    everywhere = {
        events.PY_START: monitor.started,
        events.PY_UNWIND: monitor.unwound,
        events.RAISE: monitor.raised,
        events.EXCEPTION_HANDLED: monitor.handled,
    }
    wanted = {events.LINE: monitor.lined, events.PY_RETURN: monitor.returned, events.PY_YIELD: monitor.yielded}
    for event, callback in {**everywhere, **wanted}.items():
        monitoring.register_callback(_TOOL, event, callback)
    monitoring.set_events(_TOOL, sum(everywhere))
    # What an earlier recording switched off may be what this one wants.
    monitoring.restart_events()


class _Monitor:
    """What `sys.monitoring` calls. An event of a function that we do not want is switched off, where it can be."""

    def __init__(self, watcher: Watcher, monitoring: Any) -> None:
        self._watcher = watcher
        self._monitoring = monitoring
        events = monitoring.events
        self._caught: dict[int, Any] = {}
        """What the watcher knows of the exception that a frame has just caught, until the line that does so begins."""
        self._local = events.LINE | events.PY_RETURN | events.PY_START | events.PY_YIELD

    def started(self, code: CodeType, offset: int) -> Any:
        if self._is_unwanted(code):
            return self._monitoring.DISABLE
        if not self._watcher.is_paused:
            begun = time.perf_counter()
            self._watcher.called(current_frame(1))
            self._monitoring.set_local_events(_TOOL, code, self._local)
            self._watcher.spent += time.perf_counter() - begun
        return None

    def lined(self, code: CodeType, line: int) -> Any:
        if self._is_unwanted(code) or not self._watcher.wants_line(code, line):
            return self._monitoring.DISABLE
        if not self._watcher.is_paused:
            begun = time.perf_counter()
            frame = current_frame(1)
            if id(frame) in self._caught:
                self._watcher.handled(frame, self._caught.pop(id(frame)))
            self._watcher.stepped(frame)
            self._watcher.spent += time.perf_counter() - begun
        return None

    def returned(self, code: CodeType, offset: int, value: Any) -> Any:
        if self._is_unwanted(code):
            return self._monitoring.DISABLE
        if not self._watcher.is_paused:
            begun = time.perf_counter()
            self._watcher.left(current_frame(1), value, raised=False)
            self._watcher.spent += time.perf_counter() - begun
        return None

    def yielded(self, code: CodeType, offset: int, value: Any) -> Any:
        if self._is_unwanted(code) or not code.co_flags & GENERATOR:
            return self._monitoring.DISABLE
        if not self._watcher.is_paused:
            self._watcher.yielded(current_frame(1), value)
        return None

    def unwound(self, code: CodeType, offset: int, error: BaseException) -> None:
        if self._is_heard(code):
            frame = current_frame(1)
            self._caught.pop(id(frame), None)
            self._watcher.left(frame, None, raised=True)

    def raised(self, code: CodeType, offset: int, error: BaseException) -> None:
        if self._is_heard(code):
            self._watcher.raised(current_frame(1), error, error.__traceback__)

    def handled(self, code: CodeType, offset: int, error: BaseException) -> None:
        if self._is_heard(code):
            frame = current_frame(1)
            self._caught[id(frame)] = self._watcher.raised(frame, error, error.__traceback__)
            self._watcher.handled(frame, self._caught[id(frame)])

    def _is_unwanted(self, code: CodeType) -> bool:
        return self._watcher.is_full or not self._watcher.wants(code)

    def _is_heard(self, code: CodeType) -> bool:
        return not self._is_unwanted(code) and not self._watcher.is_paused
