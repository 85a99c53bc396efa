"""The report of a recording: the exception with its chain, its frames, and what happened in each that is the user's."""

from __future__ import annotations

import linecache
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from types import FrameType, TracebackType
from typing import Any, cast

from trysquare.debug.recorder.shown import show
from trysquare.debug.recorder.watcher import Watcher, name_of

VANISHED = "vanished"
"""The outcome that stands in a report until its program has ended: one that is found so was ended by force."""
_CHAIN = 5
_FRAMES = 60
_PARTS = 8
_DEPTH = 3
_MESSAGE = 4000


def failure(error: BaseException, watcher: Watcher) -> dict[str, Any]:
    """An exception as JSON: itself with its frames, outermost first, what it came from, and its parts."""
    watcher.is_paused = True
    try:
        known = list(_family(error))
        told = _whole(error, watcher, depth=_DEPTH)
        return told | {"also_raised": watcher.also_raised(known)}
    finally:
        watcher.is_paused = False


def _whole(error: BaseException, watcher: Watcher, *, depth: int) -> dict[str, Any]:
    parts = _parts(error) if depth else ()
    return {
        **_told(error, watcher),
        "chain": [_linked(above, link, watcher) for link, above in _chain(error)],
        "parts": [_whole(part, watcher, depth=depth - 1) for part in parts[:_PARTS]],
        "parts_count": len(parts),
    }


def _parts(error: BaseException) -> Sequence[BaseException]:
    """The exceptions that an exception stands for: those of a group, or the failing examples of a doctest."""
    if isinstance(error, BaseExceptionGroup):
        return cast(BaseExceptionGroup[BaseException], error).exceptions
    failures = getattr(error, "failures", None) if type(error).__module__.startswith("_pytest.") else None
    return cast(Sequence[BaseException], failures) if isinstance(failures, list) else ()


def _linked(error: BaseException, link: str, watcher: Watcher) -> dict[str, Any]:
    parts = _parts(error)
    told = {"link": link, "parts": [_whole(part, watcher, depth=0) for part in parts[:_PARTS]]}
    return {**_told(error, watcher), **told, "parts_count": len(parts)}


def _told(error: BaseException, watcher: Watcher) -> dict[str, Any]:
    source = _source(error)
    if source is not None:
        source["label"] = watcher.label_of(source["file"])
    return {
        "type": type(error).__qualname__,
        "module": type(error).__module__,
        "message": _message(error),
        "arguments": [show(part) for part in error.args[:4]],
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
    except Exception:  # noqa: BLE001 - the text is made by the exception's own code, which may be what is broken
        text = ", ".join(show(part) for part in error.args)
    # The end of a long message is kept too: where it holds a traceback, the error stands there.
    return text if len(text) <= _MESSAGE else f"{text[: _MESSAGE // 2]}\n…\n{text[-_MESSAGE // 2 :]}"


def _output_of(error: BaseException) -> str:
    """What a child process wrote before it failed, where the exception brings it along."""
    for name in ("stderr", "stdout", "output"):
        text = vars(error).get(name) if hasattr(error, "__dict__") else None
        if isinstance(text, bytes):
            text = text.decode(errors="replace")
        if isinstance(text, str) and text.strip():
            return text[-_MESSAGE:]
    return ""


def _example(error: BaseException) -> Any:
    """The example of a doctest that failed."""
    doctest: Any = sys.modules.get("doctest")
    is_failure = doctest is not None and isinstance(error, (doctest.DocTestFailure, doctest.UnexpectedException))
    return cast(Any, error).example if is_failure else None


def _source(error: BaseException) -> dict[str, Any] | None:
    """The place of code that could not be compiled: nothing ran there, so that no frame has it."""
    if (example := _example(error)) is not None:
        test = cast(Any, error).test
        line = (test.lineno or 0) + example.lineno + 1
        return {"file": str(test.filename), "line": line, "code": str(example.source).strip()}
    if not isinstance(error, SyntaxError) or not error.filename or not error.lineno:
        return None
    return {"file": error.filename, "line": error.lineno, "code": (error.text or "").strip()}


def _chain(error: BaseException) -> list[tuple[str, BaseException]]:
    """What an exception came from, the nearest first. A chain may lead back to itself."""
    chain: list[tuple[str, BaseException]] = []
    seen = {id(error)}
    while len(chain) < _CHAIN:
        above = _above(error)
        link = "context" if above is error.__context__ and error.__cause__ is None else "cause"
        if above is None or id(above) in seen:
            break
        seen.add(id(above))
        chain.append((link, above))
        error = above
    return chain


def _above(error: BaseException) -> BaseException | None:
    if _example(error) is not None and (told := getattr(error, "exc_info", None)):
        return cast(BaseException, told[1])
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _family(error: BaseException, depth: int = 2 * _DEPTH) -> Iterator[BaseException]:
    """An exception, those of its chain, and those of its groups; also a context that it hides, which it replaced."""
    yield error
    if not depth:
        return
    parts = _parts(error)
    for each in [_above(error), error.__context__, *parts]:
        if each is not None:
            yield from _family(each, depth - 1)


def _frames(trace: TracebackType | None, watcher: Watcher) -> list[dict[str, Any]]:
    """From the user's first frame on: what a test runner does above it explains nothing. Of many, the last matter."""
    levels: deque[TracebackType] = deque(maxlen=_FRAMES)
    every: deque[TracebackType] = deque(maxlen=_FRAMES)
    while trace is not None:
        every.append(trace)
        if levels or watcher.is_own_file(trace.tb_frame.f_code.co_filename):
            levels.append(trace)
        trace = trace.tb_next
    kept = _without_recorder(list(levels or every), watcher)
    return [_frame(each.tb_frame, each.tb_lineno, watcher, columns=_columns(each)) for each in kept]


def _without_recorder(levels: list[TracebackType], watcher: Watcher) -> list[TracebackType]:
    """A stack that overflows may do so in the recorder, when a call is told to it: that call was about to be made."""
    first = next((i for i, each in enumerate(levels) if watcher.is_recorder(each.tb_frame.f_code)), len(levels))
    kept = levels[:first]
    if 1 < len(kept) < len(levels) and kept[-1].tb_lineno == kept[-1].tb_frame.f_code.co_firstlineno:
        kept.pop()
    return kept or levels


def still_running(seconds: float, watcher: Watcher) -> dict[str, Any]:
    """Where the main thread is, in the form of a failure: a program that hangs explains itself by its place."""
    frame = _current_frames().get(threading.main_thread().ident or 0)
    return _standing("StillRunning", f"it had not ended after {seconds:g} s", frame, watcher)


def ended_here(status: int, frame: FrameType, watcher: Watcher) -> dict[str, Any]:
    """Where a program ended itself without unwinding, in the form of a failure."""
    return _standing("os._exit", f"the program ended itself with exit code {status}", frame, watcher)


def _standing(kind: str, message: str, frame: FrameType | None, watcher: Watcher) -> dict[str, Any]:
    levels: list[FrameType] = []
    while frame is not None and len(levels) < _FRAMES:
        levels.append(frame)
        frame = frame.f_back
    own = [each for each in reversed(levels) if watcher.is_own_file(each.f_code.co_filename)]
    frames = [_frame(each, each.f_lineno, watcher) for each in own]
    return {"type": kind, "message": message, "chain": [], "frames": frames}


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
        "label": watcher.label_of(code.co_filename),
        "test": code in watcher.tests,
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
