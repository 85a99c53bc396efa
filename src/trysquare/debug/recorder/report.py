"""The report of a recording: the exception with its chain, its frames, and what happened in each that is the user's."""

from __future__ import annotations

import linecache
import sys
import threading
import traceback
from collections import deque
from types import FrameType, TracebackType
from typing import Any

from trysquare.debug.recorder.shown import show
from trysquare.debug.recorder.watcher import Watcher, name_of

_CHAIN = 5
_FRAMES = 60


def failure(error: BaseException, watcher: Watcher) -> dict[str, Any]:
    """An exception as JSON: itself, what it came from, and its frames with their records, outermost first."""
    return {
        **_told(error),
        "chain": _chain(error),
        "frames": _frames(error.__traceback__, watcher),
        "context_frames": _context_frames(error, watcher),
    }


def _told(error: BaseException) -> dict[str, Any]:
    return {
        "type": type(error).__qualname__,
        "module": type(error).__module__,
        "message": _message(error),
        "arguments": [show(part) for part in error.args[:4]],
        "notes": [str(note)[:200] for note in getattr(error, "__notes__", [])[:3]],
    }


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the text is made by the exception's own code, which may be what is broken
        text = ", ".join(show(part) for part in error.args)
    return text[:2000]


def _chain(error: BaseException) -> list[dict[str, Any]]:
    """What an exception came from, the nearest first. A chain may lead back to itself."""
    chain: list[dict[str, Any]] = []
    seen = {id(error)}
    while len(chain) < _CHAIN:
        link = "cause" if error.__cause__ is not None else "context"
        above = _above(error)
        if above is None or id(above) in seen:
            break
        seen.add(id(above))
        chain.append({**_told(above), "link": link, "where": _where(above)})
        error = above
    return chain


def _above(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def _context_frames(error: BaseException, watcher: Watcher) -> list[dict[str, Any]]:
    """The frames of the exception that came first: where one is raised from another, the fault lies there."""
    first = error
    for _ in range(_CHAIN):
        above = _above(first)
        if above is None:
            break
        first = above
    return [] if first is error else _frames(first.__traceback__, watcher)


def _frames(trace: TracebackType | None, watcher: Watcher) -> list[dict[str, Any]]:
    """From the user's first frame on: what a test runner does above it explains nothing. Of many, the last matter."""
    levels: deque[TracebackType] = deque(maxlen=_FRAMES)
    while trace is not None:
        if levels or watcher.is_own_file(trace.tb_frame.f_code.co_filename):
            levels.append(trace)
        trace = trace.tb_next
    return [_frame(each.tb_frame, each.tb_lineno, watcher, columns=_columns(each)) for each in levels]


def still_running(seconds: float, watcher: Watcher) -> dict[str, Any]:
    """Where the main thread is, in the form of a failure: a program that hangs explains itself by its place."""
    main = threading.main_thread().ident or 0
    levels: list[FrameType] = []
    frame = _current_frames().get(main)
    while frame is not None and len(levels) < _FRAMES:
        levels.append(frame)
        frame = frame.f_back
    own = [each for each in reversed(levels) if watcher.is_own_file(each.f_code.co_filename)]
    return {
        "type": "StillRunning",
        "message": f"it had not ended after {seconds:g} s",
        "chain": [],
        "frames": [_frame(each, each.f_lineno, watcher) for each in own],
    }


_current_frames: Any = getattr(sys, "_current_frames")  # noqa: B009 - the way to other threads has no public name


def _frame(frame: FrameType, line: int, watcher: Watcher, *, columns: list[int] | None = None) -> dict[str, Any]:
    code = frame.f_code
    own = watcher.is_own_file(code.co_filename)
    told: dict[str, Any] = {
        "file": code.co_filename,
        "line": line,
        "function": name_of(code),
        "code": linecache.getline(code.co_filename, line, frame.f_globals).strip(),
        "own": own,
        "columns": columns,
    }
    if own:
        known = list(frame.f_locals.items())[:40]
        told["locals"] = {name: show(value, name=name) for name, value in known}
        told["types"] = {name: type(value).__qualname__ for name, value in known}
        if (record := watcher.record_of(frame)) is not None:
            told["record"] = record
    return told


def _columns(trace: TracebackType) -> list[int] | None:
    """Where in its line the failing expression begins and ends, where the interpreter knows."""
    positions = list(trace.tb_frame.f_code.co_positions())
    index = trace.tb_lasti // 2
    if index >= len(positions):
        return None
    line, end_line, begin, end = positions[index]
    if line is None or begin is None or end is None or line != end_line or line != trace.tb_lineno:
        return None
    return [begin, end]
