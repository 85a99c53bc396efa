"""Edit one table of a TOML file that people wrote; everything else in it stays as it is.

`tomllib` says whether the file is valid and what it holds; a scan of the statements says where the table stands.
Pure functions: text in, text out.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from trysquare.core.types import JsonObject
from trysquare.settings.text_edits import Edit, TextError, apply_edits, line_break

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"\n(\r?\n)\Z")
_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")
_PIECE = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|\#[^\n]*|[\[\]{}]|\n|[^\[\]{}"\'\#\n]+',
    re.DOTALL,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """A header or a key with its value: from its first character to the end of its last line."""

    start: int
    end: int
    table: tuple[str, ...]
    """The table that the statement opens or stands in."""
    key: tuple[str, ...] | None
    """The key that it sets; None for a header."""


def read_entry(text: str, path: Sequence[str]) -> Any | None:
    """The value at a path of keys, or None where there is none."""
    value: Any = _parsed(text)
    for name in path:
        if not isinstance(value, dict):
            return None
        value = cast(JsonObject, value).get(name)
    return value


def put_entry(text: str, path: Sequence[str], value: JsonObject) -> str:
    """The text with the table at a path, added at the end or in place of what was there."""
    if read_entry(text, path) is None:
        return _checked(text, _appended(text, path, value), path, value)
    spans = _table_spans(text, path)
    edits = [Edit(start=start, end=end) for start, end in spans]
    edits[0] = Edit(start=edits[0].start, end=edits[0].end, text=_render(path, value, line_break(text)))
    return _checked(text, apply_edits(text, edits), path, value)


def remove_entry(text: str, path: Sequence[str]) -> str:
    """The text without the table at a path; the same text where there is none."""
    if read_entry(text, path) is None:
        return text
    edits: list[Edit] = []
    for start, end in _table_spans(text, path):
        # The empty line before a table belongs to it; what comes after belongs to the next one.
        blank = _BLANK.search(text, 0, start)
        start = start if blank is None else blank.start(1)
        edits.append(Edit(start=start, end=end))
    return _checked(text, apply_edits(text, edits), path, None)


def _parsed(text: str) -> JsonObject:
    # tomllib knows no byte order mark, and takes a carriage return only before a line feed.
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        found = _PLACE.search(str(error))
        if found is None:
            raise TextError(text, len(text), str(error)) from None
        line, column = int(found.group(1)), int(found.group(2))
        lines = text.split("\n")
        position = sum(len(each) + 1 for each in lines[: line - 1]) + column - 1
        raise TextError(text, position, str(error)[: found.start()].strip()) from None


def _checked(before: str, after: str, path: Sequence[str], value: JsonObject | None) -> str:
    """The edited text, if it holds exactly what was meant; TOML has forms that this editor does not write."""
    expected = _parsed(before)
    inner = expected
    for name in path[:-1]:
        inner = inner.setdefault(name, {})
    inner.pop(path[-1], None)
    if value is not None:
        inner[path[-1]] = value
    try:
        found: JsonObject | None = _parsed(after)
    except TextError:
        found = None
    if value is None:
        _drop_empty(expected, path)
        found = found if found is None else _drop_empty(found, path)
    if found is None or _comparable(found) != _comparable(expected):
        name = ".".join(path)
        raise TextError(before, _mention(before, path), f"`{name}` is written in a form that only a person should edit")
    return after


def _comparable(value: Any) -> Any:
    """The value in a form in which the same file content is always equal, `nan` included, whatever the order."""
    if isinstance(value, dict):
        return {name: _comparable(part) for name, part in cast(JsonObject, value).items()}
    if isinstance(value, list):
        return [_comparable(part) for part in cast(list[Any], value)]
    return repr(value)


def _drop_empty(document: JsonObject, path: Sequence[str]) -> JsonObject:
    """Forget the parent tables that stood only for what was removed."""
    if len(path) > 1 and isinstance(document.get(path[0]), dict):
        inner = _drop_empty(document[path[0]], path[1:])
        if not inner:
            del document[path[0]]
    return document


def _mention(text: str, path: Sequence[str]) -> int:
    for statement in _statements(text):
        full = statement.table + (statement.key or ())
        if full[:1] == tuple(path[:1]):
            return statement.start
    return 0


def _appended(text: str, path: Sequence[str], value: JsonObject) -> str:
    end = line_break(text)
    body = text.removeprefix("\ufeff")
    gap = "" if not body or body.endswith("\n") else end
    blank = end if body.strip() else ""
    return f"{text}{gap}{blank}{_render(path, value, end)}"


def _render(path: Sequence[str], value: JsonObject, end: str) -> str:
    header = "[" + ".".join(_key(name) for name in path) + "]"
    plain = {name: part for name, part in value.items() if not isinstance(part, dict)}
    tables = {name: cast(JsonObject, part) for name, part in value.items() if isinstance(part, dict)}
    lines = [header, *(f"{_key(name)} = {_value(part)}" for name, part in plain.items())]
    own = "".join(line + end for line in lines)
    return own + "".join(end + _render([*path, name], part, end) for name, part in tables.items())


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_value(part) for part in cast(list[Any], value)) + "]"
    # JSON's texts, numbers and booleans are TOML's too, but for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _table_spans(text: str, path: Sequence[str]) -> list[tuple[int, int]]:
    """Where the table and the tables in it stand: each from its header to the end of its last statement."""
    wanted = tuple(path)
    spans: list[tuple[int, int]] = []
    inside = False
    for statement in _statements(text):
        if statement.key is None:
            inside = statement.table[: len(wanted)] == wanted
            if inside:
                spans.append((statement.start, statement.end))
        elif inside:
            spans[-1] = (spans[-1][0], statement.end)
    if not spans:
        raise TextError(text, _mention(text, path), f"`{'.'.join(path)}` has no table of its own; edit it by hand")
    return spans


def _statements(text: str) -> Iterator[Statement]:
    """The statements of a valid document, in order."""
    table: tuple[str, ...] = ()
    place = 1 if text.startswith("\ufeff") else 0
    while place < len(text):
        end = _statement_end(text, place)
        raw = text[place:end]
        code = raw.lstrip()
        if code and not code.startswith("#"):
            start = place + len(raw) - len(code)
            if code.startswith("["):
                table = _header_path(code)
                yield Statement(start=start, end=end, table=table, key=None)
            else:
                yield Statement(start=start, end=end, table=table, key=_key_path(code))
        place = end


def _statement_end(text: str, place: int) -> int:
    """Just after the line break that ends the statement, the comment or the empty line at a position."""
    depth = 0
    while place < len(text):
        found = _PIECE.match(text, place)
        if found is None:
            return len(text)
        piece, place = found.group(), found.end()
        if piece in "[{":
            depth += 1
        elif piece in "]}":
            depth -= 1
        elif piece == "\n" and depth <= 0:
            return place
    return place


def _header_path(code: str) -> tuple[str, ...]:
    return _path_of(tomllib.loads(code.rstrip("\r\n")))


def _key_path(code: str) -> tuple[str, ...]:
    place = 0
    while code[place] != "=":
        found = _PIECE.match(code, place)
        piece = found.group() if found else code[place]
        place += piece.index("=") if "=" in piece and piece[0] not in "\"'" else len(piece)
    return _path_of(tomllib.loads(code[:place] + "= 0"))


def _path_of(document: Any) -> tuple[str, ...]:
    """The one path of keys in a document that has only one."""
    path: list[str] = []
    while isinstance(document, (dict, list)) and document:
        if isinstance(document, list):
            document = cast(list[Any], document)[0]
            continue
        [(name, document)] = cast(JsonObject, document).items()
        path.append(name)
    return tuple(path)
