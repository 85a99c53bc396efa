"""RaisedLog: exceptions that were raised in the user's functions, and what became of each: caught, or passed on."""

from __future__ import annotations

import linecache
import threading
from collections.abc import Callable
from types import CodeType, FrameType, TracebackType
from typing import Any

from trysquare.debug.recorder.shown import show
from trysquare.debug.recorder.watcher import name_of

KEPT = 40
_DEEP = 200
_NEAR = 50
_ORDINARY = (StopIteration, StopAsyncIteration)
"""How a loop ends, and nothing that went wrong."""
_ASKING = ("__getattr__", "__getattribute__")
"""Functions that answer a question by raising."""


class RaisedLog:
    """The last exceptions, one for each place that raised. No exception is kept: its frames would live on with it."""

    def __init__(self, is_own_file: Callable[[str], bool]) -> None:
        self._is_own_file = is_own_file
        self._found: dict[tuple[str, str, int], dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._last: dict[int, tuple[int, int, int, dict[str, Any]]] = {}
        """By thread: the exception that was noted last, where in its traceback, how deep that is, and what is kept."""

    def clear(self) -> None:
        """Forget them all."""
        self._found.clear()

    def note(self, frame: FrameType, error: BaseException, trace: TracebackType | None) -> dict[str, Any] | None:
        """An exception is in a frame: it was raised there, or came from a call."""
        if not isinstance(error, Exception) or isinstance(error, _ORDINARY) or trace is None:
            return None
        if frame.f_code.co_name in _ASKING:
            return None
        thread = threading.current_thread()
        entry, depth = self._goes_on(error, trace) or self._begins(error, trace)
        self._last[threading.get_ident()] = (id(error), id(trace), depth, entry)
        entry["thread"] = "" if thread is threading.main_thread() else thread.name
        entry["left"] = name_of(frame.f_code)
        entry["caught"] = None
        return entry

    def _goes_on(self, error: BaseException, trace: TracebackType) -> tuple[dict[str, Any], int] | None:
        """The entry of an exception that comes up a deep stack: its whole traceback is not walked at each frame."""
        error_id, trace_id, depth, entry = self._last.get(threading.get_ident(), (0, 0, 0, {}))
        if depth < _DEEP or error_id != id(error):
            return None
        below = trace.tb_next
        for step in range(1, _NEAR):
            if below is None:
                return None
            if id(below) == trace_id:
                return entry, depth + step
            below = below.tb_next
        return None

    def _begins(self, error: BaseException, trace: TracebackType) -> tuple[dict[str, Any], int]:
        """The entry of an exception that was raised now."""
        code, line = raise_site(trace)
        key = (type(error).__qualname__, code.co_filename, line)
        with self._lock:
            entry = self._found.get(key) or self._new(key, error, code, line)
            self._found.pop(key, None)
            self._found[key] = entry
            while len(self._found) > KEPT:
                self._found.pop(next(iter(self._found)))
        return entry, _depth(trace)

    def caught(self, frame: FrameType, entry: dict[str, Any]) -> None:
        """A line runs in the frame that an exception came to."""
        entry["caught"] = {**_place(frame.f_code, frame.f_lineno), "of": id(frame)}

    def passed_on(self, frame: FrameType) -> None:
        """A frame ends by an exception after all: what ran in it was a `finally`, or its like."""
        for entry in list(self._found.values()):
            if entry["caught"] is not None and entry["caught"]["of"] == id(frame):
                entry["caught"] = None

    def others(self, known: list[BaseException]) -> list[dict[str, Any]]:
        """All of them but those that are known, in the order in which they were last raised."""
        keys: set[tuple[str, str, int]] = set()
        for error in known:
            if error.__traceback__ is not None:
                code, line = raise_site(error.__traceback__)
                keys.add((type(error).__qualname__, code.co_filename, line))
        return [entry for key, entry in self._found.items() if key not in keys]

    def _new(self, key: tuple[str, str, int], error: BaseException, code: CodeType, line: int) -> dict[str, Any]:
        text = ", ".join(show(part) for part in error.args[:3])
        return {"type": key[0], "message": text, "own": self._is_own_file(code.co_filename), **_place(code, line)}


def _place(code: CodeType, line: int) -> dict[str, Any]:
    text = linecache.getline(code.co_filename, line).strip()
    return {"file": code.co_filename, "line": line, "function": name_of(code), "code": text}


def _depth(trace: TracebackType | None) -> int:
    depth = 0
    while trace is not None:
        depth += 1
        trace = trace.tb_next
    return depth


def raise_site(trace: TracebackType) -> tuple[CodeType, int]:
    """The function and the line at which an exception was raised."""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_code, trace.tb_lineno
