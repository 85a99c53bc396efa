"""Dump of every thread and asyncio task of the process that runs this, written to a file as JSON.

A debugger runs it inside a process that may hang: it takes no lock and starts nothing.
"""

from __future__ import annotations

import json
import linecache
import os
import sys
import threading
from types import FrameType
from typing import Any

_MAX_FRAMES = 30
_MAX_TASKS = 200
_MAX_VALUES = 6


def dump(file: str, show: Any) -> None:
    """Write the stacks of all threads and tasks. `show` renders a value."""
    found: dict[str, Any] = {"threads": _threads(show)}
    if "asyncio" in sys.modules:
        found["tasks"] = _tasks()
    with open(file + ".part", "w", encoding="utf-8", errors="replace") as out:
        json.dump(found, out, default=str)
    os.replace(file + ".part", file)


def _threads(show: Any) -> list[dict[str, Any]]:
    names = {thread.ident: thread.name for thread in list(getattr(threading, "_active").values())}  # noqa: B009
    frames: dict[int, FrameType] = getattr(sys, "_current_frames")()  # noqa: B009 - it has no public name
    main = threading.main_thread().ident
    threads: list[dict[str, Any]] = []
    for ident, frame in frames.items():
        values = {name: show(value, name=name, longest=60) for name, value in _values(frame)}
        name = names.get(ident, "unknown")
        threads.append({"name": name, "is_main": ident == main, "stack": _stack(frame), "values": values})
    return sorted(threads, key=lambda thread: not thread["is_main"])


def _values(frame: FrameType) -> list[tuple[str, Any]]:
    """The values of the innermost frame that is not the standard library's."""
    level: FrameType | None = frame
    while level is not None:
        file = level.f_code.co_filename
        if not file.startswith(("<", os.path.dirname(threading.__file__))) and "trysquare" not in file:
            known = list(level.f_locals.items())[:_MAX_VALUES]
            return [(name, value) for name, value in known if not name.startswith("__")]
        level = level.f_back
    return []


def _stack(frame: FrameType | None) -> list[str]:
    """The frames, innermost first, without those of this module."""
    levels: list[str] = []
    while frame is not None and len(levels) < _MAX_FRAMES:
        name = frame.f_code.co_filename
        if name != __file__ and name != "<string>":
            levels.append(_level(name, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return levels


def _level(file: str, line: int, function: str) -> str:
    return f"{file}:{line} {function}: {linecache.getline(file, line).strip()}"


def _tasks() -> list[dict[str, Any]]:
    inner = sys.modules.get("asyncio.tasks")
    found: dict[int, Any] = {}
    for name in ("_all_tasks", "_scheduled_tasks", "_eager_tasks"):
        for task in list(getattr(inner, name, ()) or ()):
            if not task.done():
                found[id(task)] = task
    return [_task(task) for task in list(found.values())[:_MAX_TASKS]]


def _task(task: Any) -> dict[str, Any]:
    coroutine = task.get_coro()
    levels: list[str] = []
    waits_for = ""
    while coroutine is not None and len(levels) < _MAX_FRAMES:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        if frame is None:
            waits_for = type(coroutine).__qualname__
            break
        levels.append(_level(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
    return {"name": task.get_name(), "stack": levels[::-1], "waits_for": waits_for}
