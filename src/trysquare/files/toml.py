"""TOML texts: the line of each key, and edits of one table that change no other byte."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from trysquare.core.json import JsonObject, map_leaves
from trysquare.files.edit import Edit, TextError, apply_edits, line_break

KeyPath: TypeAlias = tuple[str, ...]

_SPACE = re.compile(r"\ufeff?(?:[ \t\r\n]+|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
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
_BLANK_LINE = re.compile(r"\n(\r?\n)\Z")
_ERROR_POSITION = re.compile(r"\(at line (\d+), column (\d+)\)")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Statement:
    """A header, or a key with its value, to the end of its last line."""

    path: KeyPath
    start: int
    end: int
    is_header: bool


def key_lines(text: str) -> dict[KeyPath, int]:
    """Line, from 1, of each key path of a valid TOML text."""
    found: dict[KeyPath, int] = {}
    for statement in _statements(text):
        line = text.count("\n", 0, statement.start) + 1
        for depth in range(1, len(statement.path) + 1):
            found.setdefault(statement.path[:depth], line)
    return found


def read_entry(text: str, path: Sequence[str]) -> Any | None:
    value: Any = _parsed(text)
    for name in path:
        value = cast(JsonObject, value).get(name) if isinstance(value, dict) else None
    return value


def put_entry(text: str, path: Sequence[str], value: JsonObject) -> str:
    """Replace the table at a path, or add it at the end."""
    end = line_break(text)
    rendered = _rendered(path, value, end)
    if read_entry(text, path) is not None:
        first, *others = _table_spans(text, path)
        edits = [Edit(start=first.start, end=first.end, text=rendered), *others]
    else:
        body = text.removeprefix("\ufeff")
        gap = ("" if not body or body.endswith("\n") else end) + (end if body.strip() else "")
        edits = [Edit(start=len(text), end=len(text), text=gap + rendered)]
    return _checked(text, apply_edits(text, edits), path, value)


def remove_entry(text: str, path: Sequence[str]) -> str:
    """Remove the table at a path, if there is one."""
    if read_entry(text, path) is None:
        return text
    edits: list[Edit] = []
    for span in _table_spans(text, path):
        # The blank line before a table goes with it.
        blank = _BLANK_LINE.search(text, 0, span.start)
        edits.append(Edit(start=blank.start(1) if blank else span.start, end=span.end))
    return _checked(text, apply_edits(text, edits), path, None)


def _parsed(text: str) -> JsonObject:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        found = _ERROR_POSITION.search(str(error))
        if found is None:
            raise TextError(text, len(text), str(error)) from None
        line, column = map(int, found.groups())
        position = sum(len(each) + 1 for each in text.split("\n")[: line - 1]) + column - 1
        raise TextError(text, position, str(error)[: found.start()].strip()) from None


def _checked(before: str, after: str, path: Sequence[str], value: JsonObject | None) -> str:
    """The edited text, if it has exactly the expected contents: some forms of tables are not supported."""
    known = _parsed(before)
    expected = _without(known, path) if value is None else _with_value(known, path, value)
    try:
        found = _parsed(after)
    except TextError:
        found = None
    if found is not None and value is None and read_entry(after, path) is None:
        found = _without(found, path)
    # By their text, so that `nan` equals itself.
    if map_leaves(found, repr) != map_leaves(expected, repr):
        raise TextError(before, _find_key(before, path), f"`{'.'.join(path)}` has an unsupported form; edit it by hand")
    return after


def _with_value(document: JsonObject, path: Sequence[str], value: JsonObject) -> JsonObject:
    inner = document
    for name in path[:-1]:
        inner = inner.setdefault(name, {})
    inner[path[-1]] = value
    return document


def _without(document: JsonObject, path: Sequence[str]) -> JsonObject:
    """Remove a value, and parent tables that are empty without it."""
    name, *rest = path
    inner = document.get(name)
    if not rest or (isinstance(inner, dict) and not _without(cast(JsonObject, inner), rest)):
        document.pop(name, None)
    return document


def _find_key(text: str, path: Sequence[str]) -> int:
    return next((each.start for each in _statements(text) if each.path[0] == path[0]), 0)


def _rendered(path: Sequence[str], value: JsonObject, end: str) -> str:
    tables = {name: cast(JsonObject, part) for name, part in value.items() if isinstance(part, dict)}
    plain = [f"{_key_text(name)} = {_value_text(part)}" for name, part in value.items() if name not in tables]
    own = "".join(line + end for line in (f"[{'.'.join(map(_key_text, path))}]", *plain))
    return own + "".join(end + _rendered([*path, name], part, end) for name, part in tables.items())


def _key_text(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value_text(name)


def _value_text(value: Any) -> str:
    # Strings, numbers, booleans and lists of JSON are TOML too, except for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _table_spans(text: str, path: Sequence[str]) -> list[Edit]:
    """The table and its subtables, each from its header to the end of its last statement."""
    spans: list[Edit] = []
    inside = False
    for statement in _statements(text):
        if statement.is_header:
            inside = statement.path[: len(path)] == tuple(path)
        if inside:
            start = statement.start if statement.is_header else spans.pop().start
            spans.append(Edit(start=start, end=statement.end))
    if not spans:
        raise TextError(text, _find_key(text, path), f"`{'.'.join(path)}` is not a separate table; edit it by hand")
    return spans


def _statements(text: str) -> Iterator[_Statement]:
    table: KeyPath = ()
    start = _after_space(text, 0)
    while start < len(text):
        if is_header := text[start] == "[":
            table, position = _header(text, start)
            path = table
        else:
            key, position = _key(text, start)
            path, position = (*table, *key), text.index("=", position) + 1
        end = _after_line(text, position)
        yield _Statement(path=path, start=start, end=end, is_header=is_header)
        start = _after_space(text, end)


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


def _after_line(text: str, position: int) -> int:
    """Position after the line break that ends a value or a header."""
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
