"""Hooks into a running program: which frames are recorded, by a trace function (Python 3.11) or `sys.monitoring`."""

from __future__ import annotations

import dis
import os
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from typing import TypeAlias  # newer than the oldest interpreter that is recorded

CodeKey: TypeAlias = "tuple[str, int, str]"
"""A function as its file, first line and name: the same in a copy of the process."""
USER = "user"
LIBRARY = "library"
STANDARD = "standard library"
FRAMEWORK = "test framework"
_COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")
_INSTALLED = ("site-packages", "dist-packages", "node_modules")
_FRAMEWORKS = ("pytest", "_pytest", "pluggy", "hypothesis", "xdist", "nose", "nose2")
COMMAND = "<-c>"
"""File name of a program that was given as `python -c TEXT`."""
GENERATOR = 0x20
SUSPENDABLE = GENERATOR | 0x80 | 0x200
"""Flags of generators, coroutines and asynchronous generators."""
_YIELDS = frozenset({"YIELD_VALUE", "YIELD_FROM", "SEND", "RESUME", "INSTRUMENTED_YIELD_VALUE"})
_RETURNS = frozenset({"RETURN_VALUE", "RETURN_GENERATOR"})
_TOOL = 4
"""Tool id of `sys.monitoring` that debuggers, profilers and coverage do not use."""


def _folder(path: str) -> str:
    return os.path.realpath(path).rstrip(os.sep) + os.sep


_STANDARD = tuple({_folder(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")})
_SCRIPTS = _folder(sysconfig.get_path("scripts"))


class Watcher:
    """Receives calls, lines and returns of the functions that it wants; others cost the program next to nothing."""

    def __init__(self, roots: list[str], *, skip: str, lines: int) -> None:
        self._roots = tuple(_folder(root) for root in roots)
        self._skip = _folder(skip)
        self._labels: dict[str, str] = {}
        self._framework: set[str] = set()
        self.tests: set[CodeType] = set()
        """The functions that are tests."""
        self.is_paused = False
        """Whether what runs now is part of the report, and not of the program."""
        self._limit = lines
        self._wanted: dict[CodeType, bool] = {}
        self.lines = 0
        """Lines that were recorded."""
        self.spent = 0.0
        """Seconds that recording itself took."""

    @property
    def is_full(self) -> bool:
        return self.lines >= self._limit

    def wants(self, code: CodeType) -> bool:
        known = self._wanted.get(code)
        if known is None:
            known = self._wanted[code] = self._is_wanted(code)
        return known

    def wants_line(self, code: CodeType, line: int) -> bool:
        """Whether a line of a wanted function is recorded."""
        return True

    def wants_call(self, frame: FrameType) -> bool:
        """Whether a call of a wanted function is recorded."""
        return True

    def focus(self, codes: set[CodeKey]) -> None:
        """Record in full only what concerns these functions, in which the test fails."""

    def called(self, frame: FrameType) -> None:
        """A frame began, or was resumed."""

    def stepped(self, frame: FrameType) -> None:
        """A line of a frame is about to run."""

    def left(self, frame: FrameType, value: Any, *, raised: bool) -> None:
        """A frame ended with a value, or by an exception."""

    def record_of(self, frame: FrameType) -> dict[str, Any] | None:
        """The record of a frame that an exception left."""
        return None

    def to_json(self) -> dict[str, Any]:
        return {}

    def begin_test(self) -> None:
        """Another test begins."""

    def yielded(self, frame: FrameType, value: Any) -> None:
        """A generator yielded a value."""

    def raised(self, frame: FrameType, error: BaseException, trace: TracebackType | None) -> Any:
        """An exception was raised in a frame, or came from a call; the result is passed to `handled`."""
        return None

    def handled(self, frame: FrameType, raised: Any) -> None:
        """A line runs in a frame after an exception came to it: in an `except` or a `finally`."""

    def also_raised(self, known: list[BaseException]) -> list[dict[str, Any]]:
        """Exceptions of the user's functions other than the known ones."""
        return []

    def add_root(self, folder: str) -> None:
        """Treat the files of one more directory as the user's."""
        self._roots = (*self._roots, _folder(folder))
        self._labels.clear()
        self._wanted.clear()

    def add_framework_file(self, file: str) -> None:
        """Treat a file outside of the workspace, such as a plugin's in development, as the test framework's."""
        path = os.path.realpath(file)
        if not path.startswith(self._roots):
            self._framework.add(path)
            self._labels.clear()
            self._wanted.clear()

    def label_of(self, file: str) -> str:
        """Whose code a file is: the user's, a library's, the standard library's or a test framework's.

        The user's are files in the workspace that are not installed into it, and files elsewhere that are not
        installed, such as a package in development.
        """
        if file not in self._labels:
            self._labels[file] = self._label(file)
        return self._labels[file]

    def is_own_file(self, file: str) -> bool:
        return self.label_of(file) == USER

    def is_recorder(self, code: CodeType) -> bool:
        return os.path.realpath(code.co_filename).startswith(self._skip)

    def _label(self, file: str) -> str:
        if file.startswith("<"):
            is_own = file == COMMAND or file.startswith("<doctest ")
            return USER if is_own else STANDARD if file.startswith("<frozen ") else LIBRARY
        path = os.path.realpath(file)
        if path.startswith(self._skip) or path in self._framework:
            return FRAMEWORK
        for root in self._roots:
            if path.startswith(root) and not _is_installed(path[len(root) :]) and not _is_standard(path, root):
                return USER
        if _is_installed(path):
            return FRAMEWORK if _package(path) in _FRAMEWORKS else LIBRARY
        if _is_standard(path, ""):
            return FRAMEWORK if f"{os.sep}unittest{os.sep}" in path else STANDARD
        return LIBRARY if ".zip" + os.sep in path or path.startswith(_SCRIPTS) else USER

    def is_own(self, code: CodeType) -> bool:
        """Whether a function is the user's, and not a comprehension."""
        return code.co_name not in _COMPREHENSIONS and self.is_own_file(code.co_filename)

    def _is_wanted(self, code: CodeType) -> bool:
        return self.is_own(code)


def _is_installed(path: str) -> bool:
    parts = path.replace("\\", "/").split("/")
    return any(name in parts for name in _INSTALLED)


def _is_standard(path: str, root: str) -> bool:
    """Whether a file is the standard library's; if the workspace is part of it, it is the user's."""
    return path.startswith(_STANDARD) and not root.startswith(_STANDARD)


def _package(path: str) -> str:
    parts = path.replace("\\", "/").split("/")
    at = max(index for index, part in enumerate(parts) if part in _INSTALLED)
    name = parts[at + 1].removesuffix(".py") if at + 1 < len(parts) else ""
    return "pytest" if name.startswith("pytest_") else name


def key_of(code: CodeType) -> CodeKey:
    return code.co_filename, code.co_firstlineno, code.co_name


def name_of(code: CodeType) -> str:
    """A function's name with those of the classes around it."""
    return code.co_qualname.replace("<locals>.", "") if hasattr(code, "co_qualname") else code.co_name


def is_resumed(frame: FrameType) -> bool:
    """Whether a generator or coroutine continues, and does not begin."""
    return bool(frame.f_code.co_flags & SUSPENDABLE) and frame.f_lineno != frame.f_code.co_firstlineno


def record(watcher: Watcher) -> None:
    """Start recording, in this thread and in those that start later."""
    if sys.version_info >= (3, 12):
        _monitor(watcher)
    else:
        tracer = _Tracer(watcher)
        threading.settrace(tracer.trace)
        sys.settrace(tracer.trace)


def stop() -> None:
    if sys.version_info >= (3, 12):
        monitoring: Any = _monitoring()
        if monitoring.get_tool(_TOOL) is not None:
            monitoring.set_events(_TOOL, 0)
            # A freed tool id still has the events of single functions set.
            monitoring.free_tool_id(_TOOL)
    else:
        sys.settrace(None)
        threading.settrace(cast(Any, None))


current_frame: Callable[[int], FrameType] = getattr(sys, "_getframe")  # noqa: B009 - the way to frames has no public name


def _monitoring() -> Any:
    return getattr(sys, "monitoring")  # noqa: B009 - checked against a Python that lacks it


class _Tracer:
    """The trace functions for Python 3.11: of all frames, and of wanted ones."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._unwanted: set[CodeType] = set()
        """The functions of which no call is recorded: most calls are of them, and each is asked for here."""
        self._unwinding: dict[int, Any] = {}
        """The watcher's entry of the exception that came to a frame, until a line runs there again."""

    def trace(self, frame: FrameType, event: str, value: Any) -> Any:
        code = frame.f_code
        if code in self._unwanted:
            return None
        watcher = self._watcher
        if not watcher.wants(code):
            self._unwanted.add(code)
            return None
        if event != "call" or watcher.is_paused or watcher.is_full:
            return None
        if not watcher.wants_call(frame):
            frame.f_trace_lines = False
            return self._unrecorded
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
            self._raised(frame, value)
        elif event == "return":
            self._return(frame, value)
        watcher.spent += time.perf_counter() - begun
        return None if watcher.is_full else self._local

    def _unrecorded(self, frame: FrameType, event: str, value: Any) -> Any:
        """Of a call that is not recorded: whether it catches what is raised."""
        if event == "exception" and not self._watcher.is_paused:
            self._raised(frame, value)
        elif event == "line" and id(frame) in self._unwinding:
            self._watcher.handled(frame, self._unwinding.pop(id(frame)))
            frame.f_trace_lines = False
        elif event == "return" and id(frame) in self._unwinding:
            self._return(frame, value)
        return self._unrecorded

    def _raised(self, frame: FrameType, value: Any) -> None:
        self._unwinding[id(frame)] = self._watcher.raised(frame, value[1], value[2])
        # The next line of the frame tells that it caught the exception.
        frame.f_trace_lines = True

    def _line(self, frame: FrameType) -> None:
        if id(frame) in self._unwinding:
            self._watcher.handled(frame, self._unwinding.pop(id(frame)))
        if self._watcher.wants_line(frame.f_code, frame.f_lineno):
            self._watcher.stepped(frame)

    def _return(self, frame: FrameType, value: Any) -> None:
        # A generator or coroutine that is suspended is reported to the trace function as a return, too.
        if not (frame.f_code.co_flags & SUSPENDABLE and _is_at(frame, _YIELDS)):
            # An exception that leaves a frame is reported to the trace function as a return of None.
            self._watcher.left(frame, value, raised=value is None and not _is_at(frame, _RETURNS))
            self._unwinding.pop(id(frame), None)
        elif frame.f_code.co_flags & GENERATOR:
            self._watcher.yielded(frame, value)


def _is_at(frame: FrameType, instructions: frozenset[str]) -> bool:
    return frame.f_lasti >= 0 and dis.opname[frame.f_code.co_code[frame.f_lasti]] in instructions


def _monitor(watcher: Watcher) -> None:
    """Record by `sys.monitoring`, since Python 3.12: events only for wanted functions, so that others cost nothing."""
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
    # An earlier recording may have disabled what this one wants.
    monitoring.restart_events()


class _Monitor:
    """Callbacks of `sys.monitoring`. Events of unwanted functions are disabled where possible."""

    def __init__(self, watcher: Watcher, monitoring: Any) -> None:
        self._watcher = watcher
        self._monitoring = monitoring
        events = monitoring.events
        self._caught: dict[int, Any] = {}
        """The watcher's entry of the exception that a frame has just caught, until the line that does so begins."""
        self._observed: set[CodeType] = set()
        self._local = events.LINE | events.PY_RETURN | events.PY_START | events.PY_YIELD

    def started(self, code: CodeType, offset: int) -> Any:
        if self._is_unwanted(code):
            return self._monitoring.DISABLE
        if self._watcher.wants_call(current_frame(1)):
            self._deliver(code, self._start)
        return None

    def lined(self, code: CodeType, line: int) -> Any:
        return self._deliver(code, self._line) if self._watcher.wants_line(code, line) else self._monitoring.DISABLE

    def returned(self, code: CodeType, offset: int, value: Any) -> Any:
        return self._deliver(code, lambda frame: self._watcher.left(frame, value, raised=False))

    def yielded(self, code: CodeType, offset: int, value: Any) -> Any:
        if not code.co_flags & GENERATOR:
            return self._monitoring.DISABLE
        return self._deliver(code, lambda frame: self._watcher.yielded(frame, value))

    def _deliver(self, code: CodeType, work: Callable[[FrameType], None]) -> Any:
        if self._is_unwanted(code):
            return self._monitoring.DISABLE
        if not self._watcher.is_paused:
            begun = time.perf_counter()
            work(current_frame(2))
            self._watcher.spent += time.perf_counter() - begun
        return None

    def _start(self, frame: FrameType) -> None:
        self._watcher.called(frame)
        if frame.f_code not in self._observed:
            self._observed.add(frame.f_code)
            self._monitoring.set_local_events(_TOOL, frame.f_code, self._local)

    def _line(self, frame: FrameType) -> None:
        if id(frame) in self._caught:
            self._watcher.handled(frame, self._caught.pop(id(frame)))
        self._watcher.stepped(frame)

    def unwound(self, code: CodeType, offset: int, error: BaseException) -> None:
        if self._is_recorded(code):
            frame = current_frame(1)
            self._caught.pop(id(frame), None)
            self._watcher.left(frame, None, raised=True)

    def raised(self, code: CodeType, offset: int, error: BaseException) -> None:
        if self._is_recorded(code):
            self._watcher.raised(current_frame(1), error, error.__traceback__)

    def handled(self, code: CodeType, offset: int, error: BaseException) -> None:
        if self._is_recorded(code):
            frame = current_frame(1)
            self._caught[id(frame)] = self._watcher.raised(frame, error, error.__traceback__)
            self._watcher.handled(frame, self._caught[id(frame)])

    def _is_unwanted(self, code: CodeType) -> bool:
        return self._watcher.is_full or not self._watcher.wants(code)

    def _is_recorded(self, code: CodeType) -> bool:
        return not self._is_unwanted(code) and not self._watcher.is_paused
