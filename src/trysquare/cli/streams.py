"""Standard output and standard error of the command line: nothing that others wrote controls the terminal.

Whatever a command prints may hold text from outside: names and errors of servers, arguments of a model, the subject of
a token. So every character that a terminal would obey, or that nobody sees, is written as its escape here, once, and
no command has to think of it. What the command line itself wants to say to the terminal goes through `control`.
"""

from __future__ import annotations

import functools
import re
import secrets
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from trysquare.core.untrusted import block

# Random, so that no text from outside can hold the sign by which our own sequences are known.
_SIGN = secrets.token_hex(8)


class SafeStream:
    """A text stream on which text is harmless; everything else is left to the stream behind it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if text.isascii() and text.isprintable():
            return self._stream.write(text)
        parts = _own_sequences().split(text)
        self._stream.write("".join(block(part) if at % 2 == 0 else part for at, part in enumerate(parts)))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def control(sequence: str, stream: TextIO) -> str:
    """A control sequence of our own, which a stream of ours lets through."""
    return f"\x02{_SIGN}{sequence}\x03" if isinstance(stream, SafeStream) else sequence


@contextmanager
def safe_streams() -> Generator[None]:
    """Print nothing but harmless text within the block, whoever wrote it."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_safe(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _safe(stream: TextIO) -> TextIO:
    return stream if isinstance(stream, SafeStream) else cast(TextIO, SafeStream(stream))


@functools.cache
def _own_sequences() -> re.Pattern[str]:
    return re.compile(f"\x02{_SIGN}(.*?)\x03")
