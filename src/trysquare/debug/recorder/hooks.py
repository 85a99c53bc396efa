"""Hooks: how a watcher hears of a program: by a trace function in Python 3.11, by `sys.monitoring` later."""

from __future__ import annotations

import dis
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, cast

from trysquare.debug.recorder.watcher import SUSPENDABLE, Watcher

_YIELDS = frozenset({"YIELD_VALUE", "YIELD_FROM", "SEND", "RESUME", "INSTRUMENTED_YIELD_VALUE"})
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
    clock = time.perf_counter
    unwinding: set[int] = set()

    def local(frame: FrameType, event: str, value: Any) -> Any:
        begun = clock()
        key = id(frame)
        if event == "line":
            unwinding.discard(key)
            if watcher.wants_line(frame.f_code, frame.f_lineno):
                watcher.stepped(frame)
        elif event == "exception":
            unwinding.add(key)
        elif event == "return" and not _is_suspended(frame):
            # A return after an exception is an unwinding unless a line ran in between, that is, it was caught.
            watcher.left(frame, value, raised=value is None and key in unwinding)
            unwinding.discard(key)
        watcher.spent += clock() - begun
        return None if watcher.is_full else local

    def whole(frame: FrameType, event: str, value: Any) -> Any:
        if event != "call" or watcher.is_full or not watcher.wants(frame.f_code):
            return None
        begun = clock()
        watcher.called(frame)
        watcher.spent += clock() - begun
        return local

    threading.settrace(whole)
    sys.settrace(whole)


def _is_suspended(frame: FrameType) -> bool:
    """Whether a generator or coroutine only pauses here. The trace function is told both as a return."""
    code = frame.f_code
    if not code.co_flags & SUSPENDABLE or frame.f_lasti < 0:
        return False
    return dis.opname[code.co_code[frame.f_lasti]] in _YIELDS


def _monitor(watcher: Watcher) -> None:
    """The way of Python 3.12 and later: events only for the functions that we want, so that others cost nothing."""
    monitoring: Any = _monitoring()
    events = monitoring.events
    local_events = events.LINE | events.PY_RETURN | events.PY_START
    clock = time.perf_counter

    def started(code: CodeType, offset: int) -> Any:
        if watcher.is_full or not watcher.wants(code):
            return monitoring.DISABLE
        begun = clock()
        watcher.called(current_frame(1))
        monitoring.set_local_events(_TOOL, code, local_events)
        watcher.spent += clock() - begun
        return None

    def lined(code: CodeType, line: int) -> Any:
        if watcher.is_full or not watcher.wants(code) or not watcher.wants_line(code, line):
            return monitoring.DISABLE
        begun = clock()
        watcher.stepped(current_frame(1))
        watcher.spent += clock() - begun
        return None

    def returned(code: CodeType, offset: int, value: Any) -> Any:
        if watcher.is_full or not watcher.wants(code):
            return monitoring.DISABLE
        begun = clock()
        watcher.left(current_frame(1), value, raised=False)
        watcher.spent += clock() - begun
        return None

    def unwound(code: CodeType, offset: int, error: BaseException) -> None:
        if watcher.wants(code) and not watcher.is_full:
            watcher.left(current_frame(1), None, raised=True)

    monitoring.use_tool_id(_TOOL, "trysquare")
    monitoring.register_callback(_TOOL, events.PY_START, started)
    monitoring.register_callback(_TOOL, events.LINE, lined)
    monitoring.register_callback(_TOOL, events.PY_RETURN, returned)
    monitoring.register_callback(_TOOL, events.PY_UNWIND, unwound)
    monitoring.set_events(_TOOL, events.PY_START | events.PY_UNWIND)
    # What an earlier recording switched off may be what this one wants.
    monitoring.restart_events()
