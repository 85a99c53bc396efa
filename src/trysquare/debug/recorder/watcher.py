"""Watcher: what is told of the frames of a program that runs, and which of them are the user's own."""

from __future__ import annotations

import os
from types import CodeType, FrameType
from typing import Any

_MADE_UP = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")


class Watcher:
    """Hears of calls, lines and returns. What it does not want costs the program next to nothing."""

    def __init__(self, roots: list[str], *, skip: str, lines: int) -> None:
        self._roots = tuple(root.rstrip(os.sep) + os.sep for root in roots)
        self._skip = skip
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

    def is_own_file(self, file: str) -> bool:
        """Whether a file belongs to the user: it lies in the workspace, and not among installed packages."""
        path = os.path.abspath(file)
        if not path.startswith(self._roots) or path.startswith(self._skip):
            return False
        inner = path.replace("\\", "/")
        return "/site-packages/" not in inner and "/dist-packages/" not in inner and "/node_modules/" not in inner

    def is_own(self, code: CodeType) -> bool:
        """Whether a function was written by the user, and not made up by the interpreter."""
        name = code.co_filename
        return not name.startswith("<") and code.co_name not in _MADE_UP and self.is_own_file(name)

    def _is_wanted(self, code: CodeType) -> bool:
        return self.is_own(code)


def name_of(code: CodeType) -> str:
    """A function's name with those of the classes around it."""
    return code.co_qualname.replace("<locals>.", "") if hasattr(code, "co_qualname") else code.co_name


def is_resumed(frame: FrameType) -> bool:
    """Whether a generator or coroutine goes on, and does not begin."""
    return bool(frame.f_code.co_flags & SUSPENDABLE) and frame.f_lineno != frame.f_code.co_firstlineno


SUSPENDABLE = 0x20 | 0x80 | 0x200
"""Flags of generators, coroutines and asynchronous generators."""
