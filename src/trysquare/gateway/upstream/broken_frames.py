"""Broken frames: messages that are not strict JSON, repaired where their meaning is plain, else traced to a request.

Half a character becomes U+FFFD: a server that cuts a text in the middle of an emoji has said everything else well. What
JSON cannot say (`NaN`) and what nobody could read (a thousand levels) is replaced by a mark, and the message is flawed.
Everything here is one pass over the bytes without recursion, since whoever sends such a message may mean harm.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from typing import Final, NamedTuple

from trysquare.gateway.answers.json_tokens import CLOSING, MOST_NESTED, OPENING, TOKEN, as_utf8
from trysquare.gateway.upstream.frames import Frame, NotAFrame, decode_frames

MARK: Final = b'"unreadable-%s"' % secrets.token_hex(16).encode()
"""What stands where something could not be read. Nobody else can write it."""

_STRING = ord('"')
_DIGITS = frozenset(b"0123456789")
_WORDS = frozenset({b"true", b"false", b"null"})
_COLON = re.compile(rb"\s*:\s*")
_ID = re.compile(rb'(-?[0-9]{1,18})(?:\.0+)?\s*[,}]|"([^"\\]{0,256})"')
_CONTROL = re.compile(rb"[\x00-\x1f]")
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_LONGEST_NAME = 64


class Trace(NamedTuple):
    """What can be told of a message that cannot be read: whose answer or question it was."""

    id: int | str | None
    names: frozenset[str]
    """The names at its top."""

    @property
    def is_answer(self) -> bool:
        """Whether it was meant to answer a request."""
        return "method" not in self.names and bool(self.names & {"result", "error"})


class Salvaged(NamedTuple):
    """What is left of a broken message: its frames, or traces of them, and what is wrong with it.

    Frames without a flaw say what the server meant. In those with one the mark stands for what could not be read.
    """

    frames: list[Frame]
    traces: list[Trace]
    flaw: str


def salvage(message: bytes | bytearray) -> Salvaged:
    """Read a message that strict reading refused."""
    data = as_utf8(bytes(message))
    repair = _Repair(data)
    try:
        return Salvaged(decode_frames(repair.text), [], repair.flaw)
    except NotAFrame as error:
        return Salvaged([], list(_traces(data)), repair.flaw or f"it is not JSON ({error})")


class _Repair:
    """A message, written again with whole characters and with the mark for what JSON cannot say or nobody can read."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._pieces: list[bytes] = []
        self._kept = 0
        self._depth = 0
        self.flaw = ""
        for token in TOKEN.finditer(data):
            self._take(*token.span())

    @property
    def text(self) -> bytes:
        """The message as it can be read."""
        return b"".join((*self._pieces, self._data[self._kept :])) if self._pieces else self._data

    def _take(self, start: int, end: int) -> None:
        first = self._data[start]
        if first in OPENING:
            self._open(start, end)
        elif first in CLOSING:
            self._close(start, end)
        elif self._depth > MOST_NESTED:
            return
        elif first == _STRING:
            if (text := _whole_text(self._data[start:end])) is not None:
                self._put(start, end, text)
        elif not _is_plain(word := self._data[start:end]):
            self._mark(start, end, f"it holds `{word[:20].decode(errors='replace')}`, which JSON does not have")

    def _open(self, start: int, end: int) -> None:
        before, self._depth = self._depth, self._depth + end - start
        if before <= MOST_NESTED < self._depth:
            self._mark(start + MOST_NESTED - before, end, f"it is nested more than {MOST_NESTED} levels deep")

    def _close(self, start: int, end: int) -> None:
        before, self._depth = self._depth, self._depth - (end - start)
        if before > MOST_NESTED >= self._depth:
            self._kept = start + before - MOST_NESTED

    def _mark(self, start: int, end: int, flaw: str) -> None:
        self.flaw = self.flaw or flaw
        self._put(start, end, MARK)

    def _put(self, start: int, end: int, instead: bytes) -> None:
        self._pieces.extend((self._data[self._kept : start], instead))
        self._kept = end


def _is_plain(token: bytes) -> bool:
    return token in _WORDS or token[0] in _DIGITS or (token[:1] == b"-" and token[1:2].isdigit())


def _whole_text(token: bytes) -> bytes | None:
    """A string without halves of characters and with its controls escaped; None where it is well as it is."""
    fixed = token
    if b"\\u" in token:
        fixed = _ESCAPE.sub(lambda escape: b"\\ufffd" if escape[1] else escape[0], fixed)
    if _CONTROL.search(fixed):
        fixed = _CONTROL.sub(lambda control: b"\\u%04x" % ord(control[0]), fixed)
    return None if fixed == token else fixed


def _traces(data: bytes) -> Iterator[Trace]:
    """What stands at the top of a message, or of each part of a batch."""
    top = 2 if data.lstrip()[:1] == b"[" else 1
    depth, found, names = 0, None, set[str]()
    for token in TOKEN.finditer(data):
        first = data[token.start()]
        if first in OPENING:
            depth += token.end() - token.start()
        elif first in CLOSING:
            before, depth = depth, depth - (token.end() - token.start())
            if before >= top > depth and names:
                yield Trace(found, frozenset(names))
                found, names = None, set[str]()
        elif first == _STRING and depth == top and (colon := _COLON.match(data, token.end())):
            name = token.group()[1:-1][:_LONGEST_NAME].decode(errors="replace")
            names.add(name)
            if name == "id" and (value := _ID.match(data, colon.end())):
                found = int(value[1]) if value[1] is not None else value[2].decode(errors="replace")
    if names:
        yield Trace(found, frozenset(names))
