"""Tracebacks of Python without the debugger's own frames, which stand between the interpreter and the program."""

from __future__ import annotations

import re

_FRAME = '  File "'
_OWN = re.compile(r'  File "[^"]*[/\\]debugpy[/\\](?:_vendored[/\\]pydevd|server|launcher|adapter)[/\\]')
_WARNINGS = (
    "Debugger warning:",
    "make the debugger miss",
    "to python to disable frozen",
    "Note: Debugging will proceed",
)
_WARNING = re.compile(r"\d+\.\d\ds - (?:" + "|".join(re.escape(text) for text in _WARNINGS) + ")")


class TracebackCleaner:
    """Takes the debugger's own lines out of a stream of text, however it is chopped."""

    def __init__(self) -> None:
        self._rest = ""
        self._inside = False

    def __call__(self, text: str) -> str:
        """What of this text is the program's own. An empty text means that the stream has ended."""
        *lines, last = (self._rest + text).split("\n")
        shown = "".join(f"{line}\n" for line in lines if not self._is_own(line))
        if text and last and self._may_be_own(last):
            self._rest = last
            return shown
        self._rest = ""
        return shown if not last or self._is_own(last) else shown + last

    def _may_be_own(self, start: str) -> bool:
        """Whether the beginning of a line may yet become a line of the debugger's."""
        return self._inside or start.startswith(_FRAME) or _FRAME.startswith(start) or start[0].isdigit()

    def _is_own(self, line: str) -> bool:
        if line.startswith(_FRAME):
            self._inside = _OWN.match(line) is not None
        elif not line.startswith("    "):
            self._inside = False
        return self._inside or _WARNING.match(line) is not None
