"""The line on which each key of a TOML text stands. `tomllib` reads the values but forgets where they were."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any, TypeAlias, cast

KeyPath: TypeAlias = tuple[str, ...]

_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_KEY = re.compile(r"""(?:"(?:\\.|[^"\\])*"|'[^']*'|[A-Za-z0-9_-]+|[ \t]*\.[ \t]*)+""")
_VALUE_PIECE = re.compile(
    r'"{3}(?:\\.|[^\\])*?"{3,5}'
    r"|'{3}.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*"
    r"|[\[\]{}]"
    r"|\n"
    r"|[^\"'\#\[\]{}\n]+",
    re.DOTALL,
)


def key_lines(text: str) -> dict[KeyPath, int]:
    """Each key path of a valid TOML text with the line, from 1, where it is first given."""
    found: dict[KeyPath, int] = {}
    for path, position in _statements(text):
        line = text.count("\n", 0, position) + 1
        for depth in range(1, len(path) + 1):
            found.setdefault(path[:depth], line)
    return found


def _statements(text: str) -> Iterator[tuple[KeyPath, int]]:
    table: KeyPath = ()
    position = _after_space(text, 0)
    while position < len(text):
        start = position
        if text[position] == "[":
            table, position = _header(text, position)
            yield table, start
        else:
            key, position = _key(text, position)
            yield (*table, *key), start
            position = _after_value(text, text.index("=", position) + 1)
        position = _after_space(text, position)


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _header(text: str, position: int) -> tuple[KeyPath, int]:
    while text[position] in "[ \t":
        position += 1
    key, position = _key(text, position)
    while position < len(text) and text[position] in "] \t":
        position += 1
    return key, position


def _key(text: str, position: int) -> tuple[KeyPath, int]:
    match = _KEY.match(text, position)
    if match is None:
        raise ValueError(f"no TOML key at position {position}")
    return _parts(match.group()), match.end()


def _parts(key: str) -> KeyPath:
    inner: Any = tomllib.loads(f"{key.strip()} = 0")
    parts: list[str] = []
    while inner:
        [(part, inner)] = cast(dict[str, Any], inner).items()
        parts.append(part)
    return tuple(parts)


def _after_value(text: str, position: int) -> int:
    depth = 0
    while position < len(text):
        match = _VALUE_PIECE.match(text, position)
        if match is None:
            raise ValueError(f"no TOML value at position {position}")
        piece, position = match.group(), match.end()
        depth += (piece in "[{") - (piece in "]}")
        if piece == "\n" and depth <= 0:
            break
    return position
