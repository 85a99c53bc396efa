"""The tokens of a JSON text, found one after the other without recursion: also where the text is broken or hostile."""

from __future__ import annotations

import re
from typing import Final

MOST_NESTED: Final = 180
"""Levels of a message. Readers of JSON that clients are built on give up at about 200."""
TOKEN: Final = re.compile(
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[{]+|[\]}]+|[-+]?[A-Za-z_]\w*|-?[0-9][\w.+-]*', re.DOTALL
)
"""A string (the last one may lack its end), brackets that follow each other, a word, or a number."""
OPENING: Final = frozenset(b"[{")
CLOSING: Final = frozenset(b"]}")
MOST_DIGITS: Final = 4300
"""Digits of a number. Python reads no longer one, by default."""
_DIGITS: Final = frozenset(b"-0123456789")
_ALL_ZERO: Final = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER: Final = b"0" * MOST_DIGITS


def as_utf8(data: bytes) -> bytes:
    """The same bytes where they are UTF-8; else with a sign for each that is not."""
    if data.isascii():
        return data
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode(errors="replace").encode()
    return data


def is_deeper(data: bytes, most: int) -> bool:
    """Whether a JSON text has more than so many levels. Most texts have fewer brackets than that."""
    if data.count(b"[") + data.count(b"{") <= most:
        return False
    depth = 0
    for token in TOKEN.finditer(data):
        first = data[token.start()]
        if first in OPENING:
            depth += token.end() - token.start()
            if depth > most:
                return True
        elif first in CLOSING:
            depth -= token.end() - token.start()
    return False


def has_long_number(data: bytes) -> bool:
    """Whether a JSON text holds a number of more digits than clients can read."""
    if len(data) <= MOST_DIGITS or _LONG_NUMBER not in data.translate(_ALL_ZERO):
        return False
    return any(
        data[token.start()] in _DIGITS and token.end() - token.start() > MOST_DIGITS for token in TOKEN.finditer(data)
    )
