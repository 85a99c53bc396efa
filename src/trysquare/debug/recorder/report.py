"""Report of a recording: the exception with its chain and frames, and the exceptions raised before it."""

from __future__ import annotations

import linecache
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType, TracebackType
from typing import Any, cast

from trysquare.debug.recorder.hooks import Watcher, name_of
from trysquare.debug.recorder.values import show

VANISHED = "vanished"
"""Outcome in a report until its program has ended; a program that was killed leaves it there."""
_MAX_CHAIN = 5
_MAX_FRAMES = 60
_MAX_PARTS = 8
_MAX_DEPTH = 3
_MAX_MESSAGE = 4000
_MAX_RAISED = 40
_DEEP = 200
_NEAR = 50
_ORDINARY = (StopIteration, StopAsyncIteration)
"""Exceptions that end a loop and are not errors."""
_ASKING = ("__getattr__", "__getattribute__")
"""Functions that answer a question by raising."""


def failure(error: BaseException, watcher: Watcher) -> dict[str, Any]:
    """An exception as JSON, with its frames, outermost first, its causes and its parts."""
    watcher.is_paused = True
    try:
        others = watcher.also_raised(list(_family(error)))
        return _whole(error, watcher, depth=_MAX_DEPTH) | {"also_raised": others}
    finally:
        watcher.is_paused = False


def _whole(error: BaseException, watcher: Watcher, *, depth: int) -> dict[str, Any]:
    parts = _parts(error) if depth else ()
    return {
        **_described(error, watcher),
        "chain": [_linked(above, link, watcher) for link, above in _chain(error)],
        "parts": [_whole(part, watcher, depth=depth - 1) for part in parts[:_MAX_PARTS]],
        "parts_count": len(parts),
    }


def _parts(error: BaseException) -> Sequence[BaseException]:
    """The exceptions of a group, or the failing examples of a doctest."""
    # Before Python 3.11 groups come from a package; they have the same shape.
    inner = getattr(error, "exceptions", None) if type(error).__name__.endswith("ExceptionGroup") else None
    if isinstance(inner, tuple):
        return cast("tuple[BaseException, ...]", inner)
    failures = getattr(error, "failures", None) if type(error).__module__.startswith("_pytest.") else None
    return cast(Sequence[BaseException], failures) if isinstance(failures, list) else ()


def _linked(error: BaseException, link: str, watcher: Watcher) -> dict[str, Any]:
    parts = _parts(error)
    described = {"link": link, "parts": [_whole(part, watcher, depth=0) for part in parts[:_MAX_PARTS]]}
    return {**_described(error, watcher), **described, "parts_count": len(parts)}


def _described(error: BaseException, watcher: Watcher) -> dict[str, Any]:
    source = _source(error)
    if source is not None:
        source["label"] = watcher.label_of(source["file"])
    return {
        "type": type(error).__qualname__,
        "module": type(error).__module__,
        "message": _message(error),
        "notes": [str(note)[:200] for note in getattr(error, "__notes__", [])[:3]],
        "output": _output_of(error),
        "source": source,
        "frames": _frames(error.__traceback__, watcher),
    }


def _message(error: BaseException) -> str:
    if (example := _example(error)) is not None:
        return f"expected {example.want.strip()!r}, got {str(getattr(error, 'got', 'an exception')).strip()!r}"
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the text is made by the exception's own code, which may be broken
        text = ", ".join(show(part) for part in error.args)
    # In a message that contains a traceback, the error is at its end.
    return text if len(text) <= _MAX_MESSAGE else f"{text[: _MAX_MESSAGE // 2]}\n…\n{text[-_MAX_MESSAGE // 2 :]}"


def _output_of(error: BaseException) -> str:
    """The output of a child process, if the exception contains it."""
    for name in ("stderr", "stdout", "output"):
        text = vars(error).get(name) if hasattr(error, "__dict__") else None
        if isinstance(text, bytes):
            text = text.decode(errors="replace")
        if isinstance(text, str) and text.strip():
            return text[-_MAX_MESSAGE:]
    return ""


def _example(error: BaseException) -> Any:
    doctest: Any = sys.modules.get("doctest")
    is_failure = doctest is not None and isinstance(error, (doctest.DocTestFailure, doctest.UnexpectedException))
    return cast(Any, error).example if is_failure else None


def _source(error: BaseException) -> dict[str, Any] | None:
    """The location of code that could not be compiled, which no frame has."""
    if (example := _example(error)) is not None:
        test = cast(Any, error).test
        line = (test.lineno or 0) + example.lineno + 1
        return {"file": str(test.filename), "line": line, "code": str(example.source).strip()}
    if not isinstance(error, SyntaxError) or not error.filename or not error.lineno:
        return None
    return {"file": error.filename, "line": error.lineno, "code": (error.text or "").strip()}


def _chain(error: BaseException) -> list[tuple[str, BaseException]]:
    """The causes of an exception, the nearest first. A chain may lead back to itself."""
    chain: list[tuple[str, BaseException]] = []
    seen = {id(error)}
    while len(chain) < _MAX_CHAIN:
        above = _above(error)
        link = "context" if above is error.__context__ and error.__cause__ is None else "cause"
        if above is None or id(above) in seen:
            break
        seen.add(id(above))
        chain.append((link, above))
        error = above
    return chain


def _above(error: BaseException) -> BaseException | None:
    if _example(error) is not None and (described := getattr(error, "exc_info", None)):
        return cast(BaseException, described[1])
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _family(error: BaseException, depth: int = 2 * _MAX_DEPTH) -> Iterator[BaseException]:
    """An exception with those of its chain and its groups; also a suppressed context."""
    yield error
    for each in [_above(error), error.__context__, *_parts(error)] if depth else ():
        if each is not None:
            yield from _family(each, depth - 1)


def _frames(trace: TracebackType | None, watcher: Watcher) -> list[dict[str, Any]]:
    """The last frames, from the user's first on: those of a test runner above it explain nothing."""
    levels: deque[TracebackType] = deque(maxlen=_MAX_FRAMES)
    every: deque[TracebackType] = deque(maxlen=_MAX_FRAMES)
    while trace is not None:
        every.append(trace)
        if levels or watcher.is_own_file(trace.tb_frame.f_code.co_filename):
            levels.append(trace)
        trace = trace.tb_next
    shown = _without_recorder(list(levels or every), watcher)
    return [_frame(each.tb_frame, each.tb_lineno, watcher) for each in shown]


def _without_recorder(levels: list[TracebackType], watcher: Watcher) -> list[TracebackType]:
    """Without the recorder's frames: a stack may overflow there, when a call is being recorded."""
    first = next((i for i, each in enumerate(levels) if watcher.is_recorder(each.tb_frame.f_code)), len(levels))
    own = levels[:first]
    if 1 < len(own) < len(levels) and own[-1].tb_lineno == own[-1].tb_frame.f_code.co_firstlineno:
        own.pop()
    return own or levels


def still_running(seconds: float, watcher: Watcher) -> dict[str, Any]:
    """The current line of the main thread, in the form of a failure."""
    frame = _current_frames().get(threading.main_thread().ident or 0)
    return stack_failure("StillRunning", f"it had not ended after {seconds:g} s", frame, watcher)


def stack_failure(kind: str, message: str, frame: FrameType | None, watcher: Watcher) -> dict[str, Any]:
    """A frame that is running, with the user's frames above it, in the form of a failure."""
    levels: list[FrameType] = []
    while frame is not None and len(levels) < _MAX_FRAMES:
        levels.append(frame)
        frame = frame.f_back
    own = [each for each in reversed(levels) if watcher.is_own_file(each.f_code.co_filename)]
    frames = [_frame(each, each.f_lineno, watcher) for each in own]
    return {"type": kind, "message": message, "chain": [], "frames": frames}


_current_frames: Any = getattr(sys, "_current_frames")  # noqa: B009 - the way to other threads has no public name


def _frame(frame: FrameType, line: int, watcher: Watcher) -> dict[str, Any]:
    code = frame.f_code
    own = watcher.is_own_file(code.co_filename)
    described: dict[str, Any] = {
        **_location(code, line, frame.f_globals),
        "own": own,
        "label": watcher.label_of(code.co_filename),
        "test": code in watcher.tests,
    }
    if own:
        known = list(frame.f_locals.items())[:40]
        described["locals"] = {name: show(value, name=name) for name, value in known}
        described["types"] = {name: type(value).__qualname__ for name, value in known}
        if (record := watcher.record_of(frame)) is not None:
            described["record"] = record
    return described


class RaisedLog:
    """Log of the last exceptions, one for each line that raised, as texts: an exception keeps its frames alive."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, int], dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._last: dict[int, tuple[int, int, int, dict[str, Any]]] = {}
        """By thread: the last exception, its traceback entry, the depth of that, and its log entry."""

    def clear(self) -> None:
        self._found.clear()

    def note(self, frame: FrameType, error: BaseException, trace: TracebackType | None) -> dict[str, Any] | None:
        """Log an exception that was raised in a frame, or came from a call."""
        if not isinstance(error, Exception) or isinstance(error, _ORDINARY) or trace is None:
            return None
        if frame.f_code.co_name in _ASKING:
            return None
        thread = threading.current_thread()
        entry, depth = self._known(error, trace) or self._new(error, trace)
        self._last[threading.get_ident()] = (id(error), id(trace), depth, entry)
        entry["thread"] = "" if thread is threading.main_thread() else thread.name
        entry["left"] = name_of(frame.f_code)
        entry["caught"] = None
        return entry

    def _known(self, error: BaseException, trace: TracebackType) -> tuple[dict[str, Any], int] | None:
        """The entry of an exception that unwinds a deep stack, without walking its whole traceback at each frame."""
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

    def _new(self, error: BaseException, trace: TracebackType) -> tuple[dict[str, Any], int]:
        code, line, depth = _raise_site(trace)
        key = (type(error).__qualname__, code.co_filename, line)
        with self._lock:
            entry = self._found.pop(key, None)
            if entry is None:
                text = ", ".join(show(part) for part in error.args[:3])
                entry = {"type": key[0], "message": text, **_location(code, line)}
            self._found[key] = entry
            while len(self._found) > _MAX_RAISED:
                self._found.pop(next(iter(self._found)))
        return entry, depth

    def caught(self, frame: FrameType, entry: dict[str, Any]) -> None:
        """Note that a line runs in the frame that an exception came to."""
        entry["caught"] = {**_location(frame.f_code, frame.f_lineno), "of": id(frame)}

    def passed_on(self, frame: FrameType) -> None:
        """Note that a frame ended by an exception after all: what ran in it was a `finally` or the like."""
        for entry in list(self._found.values()):
            if entry["caught"] is not None and entry["caught"]["of"] == id(frame):
                entry["caught"] = None

    def others(self, known: list[BaseException]) -> list[dict[str, Any]]:
        """All but the known ones, in the order in which they were last raised."""
        keys: set[tuple[str, str, int]] = set()
        for error in known:
            if error.__traceback__ is not None:
                code, line, _ = _raise_site(error.__traceback__)
                keys.add((type(error).__qualname__, code.co_filename, line))
        return [entry for key, entry in self._found.items() if key not in keys]


def _location(code: CodeType, line: int, module: dict[str, Any] | None = None) -> dict[str, Any]:
    text = linecache.getline(code.co_filename, line, module).strip()
    return {"file": code.co_filename, "line": line, "function": name_of(code), "code": text}


def _raise_site(trace: TracebackType) -> tuple[CodeType, int, int]:
    """The function and the line that raised, and how many levels the traceback has."""
    depth = 1
    while trace.tb_next is not None:
        trace, depth = trace.tb_next, depth + 1
    return trace.tb_frame.f_code, trace.tb_lineno, depth
