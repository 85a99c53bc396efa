"""The report of a recording: the exception with its chain, its frames, and what happened in each that is the user's."""

from __future__ import annotations

import linecache
import traceback
from types import TracebackType
from typing import Any

from trysquare.debug.recorder.recording import Recording
from trysquare.debug.recorder.shown import show

_CHAIN = 5
_FRAMES = 60


def failure(error: BaseException, recording: Recording) -> dict[str, Any]:
    """An exception as JSON: itself, what it came from, and its frames with their records, outermost first."""
    return {
        **_told(error),
        "chain": _chain(error),
        "frames": _frames(error.__traceback__, recording),
        "context_frames": _context_frames(error, recording),
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


def _context_frames(error: BaseException, recording: Recording) -> list[dict[str, Any]]:
    """The frames of the exception that came first: where one is raised from another, the fault lies there."""
    first = error
    for _ in range(_CHAIN):
        above = _above(first)
        if above is None:
            break
        first = above
    return [] if first is error else _frames(first.__traceback__, recording)


def _frames(trace: TracebackType | None, recording: Recording) -> list[dict[str, Any]]:
    """From the user's first frame on: what a test runner does above it explains nothing."""
    frames: list[dict[str, Any]] = []
    while trace is not None and len(frames) < _FRAMES:
        if frames or recording.is_own_file(trace.tb_frame.f_code.co_filename):
            frames.append(_frame(trace, recording))
        trace = trace.tb_next
    return frames


def _frame(trace: TracebackType, recording: Recording) -> dict[str, Any]:
    code = trace.tb_frame.f_code
    own = recording.is_own_file(code.co_filename)
    told: dict[str, Any] = {
        "file": code.co_filename,
        "line": trace.tb_lineno,
        "function": getattr(code, "co_qualname", code.co_name),
        "code": linecache.getline(code.co_filename, trace.tb_lineno, trace.tb_frame.f_globals).strip(),
        "own": own,
        "columns": _columns(trace),
    }
    if own:
        told["locals"] = {name: show(value, name=name) for name, value in list(trace.tb_frame.f_locals.items())[:40]}
        told["types"] = {name: type(value).__qualname__ for name, value in list(trace.tb_frame.f_locals.items())[:40]}
        if (record := recording.of(trace.tb_frame)) is not None:
            record.settle(trace.tb_frame)
            told["record"] = record.to_json()
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
