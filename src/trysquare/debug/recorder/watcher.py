"""Watcher: what is told of the frames of a program that runs, and which of them are the user's own."""

from __future__ import annotations

import os
import sysconfig
from types import CodeType, FrameType, TracebackType
from typing import Any

USER = "user"
LIBRARY = "library"
STANDARD = "standard library"
FRAMEWORK = "test framework"
_MADE_UP = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")
_INSTALLED = ("site-packages", "dist-packages", "node_modules")
_FRAMEWORKS = ("pytest", "_pytest", "pluggy", "hypothesis", "xdist", "nose", "nose2")
COMMAND = "<-c>"
"""The file name of a program that was given as `python -c TEXT`."""


def _folder(path: str) -> str:
    return os.path.realpath(path).rstrip(os.sep) + os.sep


_STANDARD = tuple({_folder(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")})
_SCRIPTS = _folder(sysconfig.get_path("scripts"))


class Watcher:
    """Hears of calls, lines and returns. What it does not want costs the program next to nothing."""

    def __init__(self, roots: list[str], *, skip: str, lines: int) -> None:
        self._roots = tuple(_folder(root) for root in roots)
        self._skip = _folder(skip)
        self._labels: dict[str, str] = {}
        self.tests: set[CodeType] = set()
        """The functions that are tests."""
        self.is_paused = False
        """Whether what runs now is for the report alone, and no part of what the program did."""
        self._limit = lines
        self._wanted: dict[CodeType, bool] = {}
        self.lines = 0
        """Lines that were recorded."""
        self.spent = 0.0
        """Seconds that recording itself took."""

    @property
    def is_full(self) -> bool:
        """Whether the limit of lines was reached, so that what came after it is not known."""
        return self.lines >= self._limit

    def wants(self, code: CodeType) -> bool:
        """Whether calls of a function are to be told."""
        known = self._wanted.get(code)
        if known is None:
            known = self._wanted[code] = self._is_wanted(code)
        return known

    def wants_line(self, code: CodeType, line: int) -> bool:
        """Whether a line of a wanted function is to be told."""
        return True

    def called(self, frame: FrameType) -> None:
        """A frame began, or goes on after it was suspended."""

    def stepped(self, frame: FrameType) -> None:
        """A line of a frame is about to run."""

    def left(self, frame: FrameType, value: Any, *, raised: bool) -> None:
        """A frame ended with a value, or by an exception that goes on to its caller."""

    def record_of(self, frame: FrameType) -> dict[str, Any] | None:
        """What is known of the life of a frame that an exception left."""
        return None

    def to_json(self) -> dict[str, Any]:
        """What was recorded."""
        return {}

    def begin_test(self) -> None:
        """Another test begins: what was raised before belongs to those before it."""

    def yielded(self, frame: FrameType, value: Any) -> None:
        """A generator gave a value and waits to be asked for the next."""

    def raised(self, frame: FrameType, error: BaseException, trace: TracebackType | None) -> Any:
        """An exception was raised in a frame, or came to it from a call; what is returned is given to `handled`."""
        return None

    def handled(self, frame: FrameType, raised: Any) -> None:
        """A line runs in a frame after an exception came to it: it was caught there, or goes on after a `finally`."""

    def also_raised(self, known: list[BaseException]) -> list[dict[str, Any]]:
        """Exceptions of the user's functions beside those that are known."""
        return []

    def add_root(self, folder: str) -> None:
        """Take what lies in one more folder as the user's."""
        self._roots = (*self._roots, _folder(folder))
        self._labels.clear()
        self._wanted.clear()

    def label_of(self, file: str) -> str:
        """Whose code a file is: the user's, a library's, the standard library's or a test framework's.

        The user's is what lies in the workspace and is not installed into it, and what is imported from elsewhere
        without being installed, such as a package in development.
        """
        known = self._labels.get(file)
        if known is None:
            known = self._labels[file] = self._label(file)
        return known

    def is_own_file(self, file: str) -> bool:
        """Whether a file belongs to the user."""
        return self.label_of(file) == USER

    def is_recorder(self, code: CodeType) -> bool:
        """Whether a function is the recorder's own."""
        return os.path.realpath(code.co_filename).startswith(self._skip)

    def _label(self, file: str) -> str:
        if file.startswith("<"):
            is_own = file == COMMAND or file.startswith("<doctest ")
            return USER if is_own else STANDARD if file.startswith("<frozen ") else LIBRARY
        path = os.path.realpath(file)
        if path.startswith(self._skip):
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
        """Whether a function was written by the user, and not made up by the interpreter."""
        name = code.co_filename
        return code.co_name not in _MADE_UP and self.is_own_file(name)

    def _is_wanted(self, code: CodeType) -> bool:
        return self.is_own(code)


def _is_installed(path: str) -> bool:
    parts = path.replace("\\", "/").split("/")
    return any(name in parts for name in _INSTALLED)


def _is_standard(path: str, root: str) -> bool:
    """Whether a file is the standard library's; one that is worked on in its own folder is the user's."""
    return path.startswith(_STANDARD) and not root.startswith(_STANDARD)


def _package(path: str) -> str:
    """The name of the installed package that a file belongs to."""
    parts = path.replace("\\", "/").split("/")
    at = max(index for index, part in enumerate(parts) if part in _INSTALLED)
    name = parts[at + 1].removesuffix(".py") if at + 1 < len(parts) else ""
    return "pytest" if name.startswith("pytest_") else name


def name_of(code: CodeType) -> str:
    """A function's name with those of the classes around it."""
    return code.co_qualname.replace("<locals>.", "") if hasattr(code, "co_qualname") else code.co_name


def is_resumed(frame: FrameType) -> bool:
    """Whether a generator or coroutine goes on, and does not begin."""
    return bool(frame.f_code.co_flags & SUSPENDABLE) and frame.f_lineno != frame.f_code.co_firstlineno


GENERATOR = 0x20
SUSPENDABLE = GENERATOR | 0x80 | 0x200
"""Flags of generators, coroutines and asynchronous generators."""
