"""Spectrum of tests: the lines that each executes, and for a failing one their order and the calls between them."""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, cast

from trysquare.debug.recorder.hooks import SUSPENDABLE
from trysquare.debug.recorder.values import show

_TOOL = 4
_MAX_CALLS = 50
_LONGEST_LITERAL = 2000
_MAX_LINES = 3_000_000
"""Lines of a detailed run after which the order is no longer noted."""
current_frame: Callable[[int], FrameType] = getattr(sys, "_getframe")  # noqa: B009 - the way to frames has no public name


class Coverage:
    """Notes the lines of wanted files. `begin` and `end` enclose one test."""

    def __init__(self, wants: Callable[[str], bool]) -> None:
        self._wants = wants
        self._known: dict[CodeType, set[int] | None] = {}

    def begin(self) -> None:
        self._known = {}
        if sys.version_info >= (3, 12):
            self._monitor()
        else:
            threading.settrace(self._called)
            sys.settrace(self._called)

    def end(self) -> dict[str, list[int]]:
        """The lines that ran, by file."""
        stop_tracing()
        found: dict[str, set[int]] = {}
        for code, lines in self._known.items():
            if lines:
                found.setdefault(code.co_filename, set()).update(lines)
        return {file: sorted(lines) for file, lines in found.items()}

    def _lines_of(self, code: CodeType) -> set[int] | None:
        try:
            return self._known[code]
        except KeyError:
            lines = self._known[code] = set() if self._wants(code.co_filename) else None
            return lines

    def _called(self, frame: FrameType, event: str, value: Any) -> Any:
        lines = self._lines_of(frame.f_code)
        if lines is None:
            return None
        add = lines.add

        def note(frame: FrameType, event: str, value: Any) -> Any:
            if event == "line":
                add(frame.f_lineno)
            return note

        return note

    def _monitor(self) -> None:
        monitoring: Any = getattr(sys, "monitoring")  # noqa: B009 - checked against a Python that lacks it
        disable = monitoring.DISABLE

        def lined(code: CodeType, line: int) -> Any:
            lines = self._lines_of(code)
            if lines is not None:
                lines.add(line)
            return disable

        def started(code: CodeType, offset: int) -> Any:
            return disable

        events = monitoring.events
        monitoring.use_tool_id(_TOOL, "trysquare")
        monitoring.register_callback(_TOOL, events.LINE, lined)
        # Without an event for its start, Python 3.13 reports no line of a function that is written in one line.
        monitoring.register_callback(_TOOL, events.PY_START, started)
        monitoring.set_events(_TOOL, events.LINE | events.PY_START)
        monitoring.restart_events()


def stop_tracing() -> None:
    if sys.version_info >= (3, 12):
        monitoring: Any = getattr(sys, "monitoring")  # noqa: B009 - checked against a Python that lacks it
        if monitoring.get_tool(_TOOL) is not None:
            monitoring.set_events(_TOOL, 0)
            monitoring.free_tool_id(_TOOL)
    else:
        sys.settrace(None)
        threading.settrace(cast(Any, None))


class DetailedCoverage:
    """Notes also when each line ran last, how often, and which line called which function."""

    def __init__(self, wants: Callable[[str], bool]) -> None:
        self._wants = wants
        self._wanted: dict[CodeType, bool] = {}
        self._last: dict[tuple[str, int], int] = {}
        self._edges: set[tuple[str, int, str, int]] = set()
        self._count = 0

    def begin(self) -> None:
        if sys.version_info >= (3, 12):
            self._monitor()
        else:
            threading.settrace(self._traced)
            sys.settrace(self._traced)

    def end(self) -> dict[str, Any]:
        stop_tracing()
        lines: dict[str, list[list[int]]] = {}
        for (file, line), when in self._last.items():
            lines.setdefault(file, []).append([line, when])
        return {"lines": lines, "edges": sorted(self._edges)}

    def _is_wanted(self, code: CodeType) -> bool:
        known = self._wanted.get(code)
        if known is None:
            known = self._wanted[code] = self._wants(code.co_filename)
        return known

    def _traced(self, frame: FrameType, event: str, value: Any) -> Any:
        if not self._is_wanted(frame.f_code):
            return None
        self._called(frame)
        return self._stepped

    def _stepped(self, frame: FrameType, event: str, value: Any) -> Any:
        if event == "line":
            self._lined(frame.f_code, frame.f_lineno)
        return self._stepped

    def _lined(self, code: CodeType, line: int) -> None:
        self._count += 1
        if self._count < _MAX_LINES or (code.co_filename, line) not in self._last:
            self._last[code.co_filename, line] = self._count

    def _called(self, frame: FrameType) -> None:
        above = frame.f_back
        for _ in range(20):
            if above is None:
                return
            if self._is_wanted(above.f_code):
                code = frame.f_code
                self._edges.add((above.f_code.co_filename, above.f_lineno, code.co_filename, code.co_firstlineno))
                return
            above = above.f_back

    def _monitor(self) -> None:
        monitoring: Any = getattr(sys, "monitoring")  # noqa: B009 - checked against a Python that lacks it
        events = monitoring.events

        def started(code: CodeType, offset: int) -> Any:
            if not self._is_wanted(code):
                return monitoring.DISABLE
            self._called(current_frame(1))
            return None

        def lined(code: CodeType, line: int) -> Any:
            if not self._is_wanted(code):
                return monitoring.DISABLE
            self._lined(code, line)
            return None

        monitoring.use_tool_id(_TOOL, "trysquare")
        monitoring.register_callback(_TOOL, events.PY_START, started)
        monitoring.register_callback(_TOOL, events.LINE, lined)
        monitoring.set_events(_TOOL, events.PY_START | events.LINE)
        monitoring.restart_events()


class ValueProbe:
    """Notes the values that some lines read when they ran last, and what they made of them."""

    def __init__(self, wanted: dict[tuple[str, int], tuple[list[str], list[str]]]) -> None:
        self._wanted = wanted
        """By file and line: the names that are read there, and those that are bound."""
        self._files = {file for file, _ in wanted}
        self._found: dict[tuple[str, int], dict[str, Any]] = {}
        self._open: dict[int, tuple[str, int]] = {}

    def begin(self) -> None:
        threading.settrace(self._traced)
        sys.settrace(self._traced)

    def end(self) -> list[dict[str, Any]]:
        sys.settrace(None)
        threading.settrace(cast(Any, None))
        return [{"file": file, "line": line, **found} for (file, line), found in self._found.items()]

    def _traced(self, frame: FrameType, event: str, value: Any) -> Any:
        return self._stepped if frame.f_code.co_filename in self._files else None

    def _stepped(self, frame: FrameType, event: str, value: Any) -> Any:
        key = self._open.pop(id(frame), None)
        if key is not None and event in ("line", "return"):
            made = self._values(frame, self._wanted[key][1])
            # What a coroutine gives while it waits is reported as a return, too.
            if event == "return" and value is not None and not frame.f_code.co_flags & SUSPENDABLE:
                made["return"] = show(value)
            self._found[key]["made"] = made
        if event == "line":
            key = (frame.f_code.co_filename, frame.f_lineno)
            if key in self._wanted:
                known = self._found.get(key)
                count = 1 if known is None else known["count"] + 1
                self._found[key] = {"count": count, "read": self._values(frame, self._wanted[key][0]), "made": {}}
                self._open[id(frame)] = key
        return self._stepped

    def _values(self, frame: FrameType, names: list[str]) -> dict[str, str]:
        known = frame.f_locals
        return {name: show(known[name], name=name)[:120] for name in names if name in known}


class CallRecorder:
    """Notes the calls of one function: arguments that can be written as literals, and the result or error."""

    def __init__(self, file: str, first_line: int) -> None:
        self._place = (file, first_line)
        self._open: dict[int, dict[str, Any]] = {}
        self._calls: list[dict[str, Any]] = []

    def begin(self) -> None:
        sys.settrace(self._traced)

    def end(self) -> list[dict[str, Any]]:
        sys.settrace(None)
        return self._calls

    def _traced(self, frame: FrameType, event: str, value: Any) -> Any:
        code = frame.f_code
        if (code.co_filename, code.co_firstlineno) != self._place or len(self._calls) >= _MAX_CALLS:
            return None
        count = code.co_argcount + code.co_kwonlyargcount
        names = code.co_varnames[:count]
        arguments = [[name, literal(frame.f_locals[name])] for name in names if name in frame.f_locals]
        call: dict[str, Any] = {
            "arguments": arguments,
            "positional": code.co_posonlyargcount,
            "is_open": bool(code.co_flags & (0x04 | 0x08 | 0x20 | 0x80 | 0x200)),
            "returned": None,
            "raised": "",
        }
        self._calls.append(call)

        def note(frame: FrameType, event: str, value: Any) -> Any:
            if event == "exception":
                call["raised"] = value[0].__name__
            elif event == "line":
                call["raised"] = ""
            elif event == "return" and not call["raised"]:
                call["returned"] = literal(value)
            return note

        return note


def literal(value: Any) -> str | None:
    """A value as source text, if that gives an equal value of the same type."""
    if not _is_plain(value, 6):
        return None
    text = repr(value)
    try:
        return text if len(text) <= _LONGEST_LITERAL and ast.literal_eval(text) == value else None
    except (SyntaxError, ValueError):
        return None


def _is_plain(value: Any, depth: int) -> bool:
    """Whether a value is made of built-in types alone, whose texts run no other code."""
    if type(value) in (type(None), bool, int, float, complex, str, bytes):
        return True
    if depth == 0 or type(value) not in (list, tuple, dict, set) or not len(value) or len(value) > 1000:
        return type(value) in (list, tuple, dict) and not len(value)
    parts = list(value)
    if type(value) is dict:
        parts += cast("dict[Any, Any]", value).values()
    return all(_is_plain(each, depth - 1) for each in parts)
