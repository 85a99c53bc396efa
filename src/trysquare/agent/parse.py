"""Calls read from plain text, for models that no grammar holds.

The text is tried as a whole, then its fenced blocks, then its lines, then every brace; each way looks only at what the
ways before it left. What looks like a call and is none is not lost: the loop tells the model what was wrong with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from trysquare.agent.names import KnownNames
from trysquare.core.shortening import short
from trysquare.core.types import JsonObject
from trysquare.models.messages import CallRequest

MAX_TEXT = 200_000
MAX_PIECES = 64
_MAX_STARTS = 100
"""Braces that are tried without success before the rest is left: a text of braces alone must not cost a minute."""
_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[^\n]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"^[ \t]*([\[{].*[\]}])[ \t]*,?[ \t]*$", re.MULTILINE)
_MARK = re.compile(r'"(?:\\.|[^"\\])*"|[{}]', re.DOTALL)
_CALL_START = re.compile(r"""\{\s*["']?(?:name|tool|function)["']?\s*:""")
_DECODER = json.JSONDecoder()
_NAME_KEYS = ("name", "tool")
_ARGUMENT_KEYS = ("args", "arguments", "parameters", "input")


@dataclass(frozen=True, kw_only=True, slots=True)
class Dropped:
    """A piece of a text that looked like a call and could not be used."""

    text: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedText:
    """What a text holds: calls, pieces that could not be used, and names that were put right."""

    calls: tuple[CallRequest, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Piece:
    start: int
    end: int
    values: tuple[Any, ...] = ()
    broken: str | None = None
    """Why a piece that looks like a call is no JSON."""


class _NoCall(ValueError):
    """Why a value is no call."""


def parse_calls(text: str, names: KnownNames, *, prefix: str = "text") -> ParsedText:
    """The calls that a text holds, in its order. Their ids begin with `prefix`."""
    reading = _Reading(text=text, names=names, prefix=prefix)
    if len(text) > MAX_TEXT:
        reading.drop(text, f"the answer is longer than {MAX_TEXT:,} characters; only its beginning was read")
    pieces = sorted(_pieces(text[:MAX_TEXT]), key=lambda piece: piece.start)
    for piece in pieces[:MAX_PIECES]:
        reading.take(piece)
    if len(pieces) > MAX_PIECES:
        reading.drop(text[pieces[MAX_PIECES].start :], f"only the first {MAX_PIECES} pieces of an answer are read")
    return reading.parsed()


class _Reading:
    """The pieces of one text, as they are taken in."""

    def __init__(self, *, text: str, names: KnownNames, prefix: str) -> None:
        self._text, self._names, self._prefix = text, names, prefix
        self._calls: list[CallRequest] = []
        self._dropped: list[Dropped] = []
        self._repairs: list[str] = []

    def take(self, piece: _Piece) -> None:
        if piece.broken is not None:
            self.drop(self._text[piece.start : piece.end], piece.broken)
        for value in piece.values:
            try:
                self._take_value(value)
            except _NoCall as reason:
                self.drop(json.dumps(value, ensure_ascii=False), str(reason))

    def _take_value(self, value: Any) -> None:
        name, arguments = _name_and_arguments(value)
        known = self._names.resolve(name)
        if known is None:
            raise _NoCall(self._names.unknown(name))
        if known.name != name:
            self._repairs.append(f"`{short(name)}` was read as `{known.name}`")
        if known.action is not None:
            arguments = {"action": known.action, **arguments}
        number = len(self._calls) + 1
        self._calls.append(CallRequest(id=f"{self._prefix}-{number}", name=known.name, arguments=arguments))

    def drop(self, text: str, reason: str) -> None:
        self._dropped.append(Dropped(text=short(text.strip(), 160), reason=reason))

    def parsed(self) -> ParsedText:
        return ParsedText(calls=tuple(self._calls), dropped=tuple(self._dropped), repairs=tuple(self._repairs))


def _pieces(text: str) -> list[_Piece]:
    whole = _read_json(text)
    if whole is not None:
        return [_Piece(start=0, end=len(text), values=whole)]
    found: list[_Piece] = []
    for way in (_fenced, _lines, _braces):
        found.extend(list(way(_without(text, found))))
    return found


def _without(text: str, pieces: Iterable[_Piece]) -> str:
    """The text with the pieces blanked out, so that every position stays what it was."""
    for piece in pieces:
        text = text[: piece.start] + " " * (piece.end - piece.start) + text[piece.end :]
    return text


def _fenced(text: str) -> Iterator[_Piece]:
    for block in _FENCE.finditer(text):
        values = _read_json(block[2])
        if values is not None:
            yield _Piece(start=block.start(), end=block.end(), values=values)


def _lines(text: str) -> Iterator[_Piece]:
    for line in _LINE.finditer(text):
        values = _read_json(line[1])
        if values is not None and any(_is_call_like(value) for value in values):
            yield _Piece(start=line.start(), end=line.end(), values=values)


def _braces(text: str) -> Iterator[_Piece]:
    """Every outermost object, wherever it stands; braces inside of strings do not count."""
    start, tried = text.find("{"), 0
    while start >= 0 and tried < _MAX_STARTS:
        piece = _object(text, start) or _broken(text, start)
        if piece is not None:
            yield piece
        tried += piece is None or piece.broken is not None
        start = text.find("{", start + 1 if piece is None else piece.end)


def _object(text: str, start: int) -> _Piece | None:
    """The object that begins at a brace, where it is JSON."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return _Piece(start=start, end=end, values=(value,) if _is_call_like(value) else ())


def _broken(text: str, start: int) -> _Piece | None:
    """What begins at a brace like a call and is no JSON; None where it does not look like one."""
    if _CALL_START.match(text, start) is None:
        return None
    end = _closing(text, start)
    if end is None:
        return _Piece(start=start, end=len(text), broken="its braces never close; it was cut")
    return _Piece(start=start, end=end, broken=_json_problem(text[start:end]))


def _closing(text: str, start: int) -> int | None:
    depth = 0
    for mark in _MARK.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        if depth == 0:
            return mark.end()
    return None


def _read_json(text: str) -> tuple[Any, ...] | None:
    """The values of a JSON array or object; None for any other text."""
    stripped = text.strip()
    if not stripped.startswith(("{", "[")):
        return None
    try:
        value = json.loads(stripped)
    except (ValueError, RecursionError):
        return None
    return tuple(cast(list[Any], value)) if isinstance(value, list) else (value,)


def _json_problem(text: str) -> str:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"it is no JSON: {error.msg} at character {error.pos + 1}"
    except (ValueError, RecursionError) as error:
        return f"it is no JSON: {error}"
    return "it is no call"


def _is_call_like(value: Any) -> bool:
    return isinstance(value, dict) and any(key in value for key in (*_NAME_KEYS, "function"))


def _name_and_arguments(value: Any) -> tuple[str, JsonObject]:
    if not isinstance(value, dict):
        raise _NoCall('a call is an object: {"name": "…", "args": {…}}')
    call = cast(JsonObject, value)
    inner = call.get("function")
    if isinstance(inner, dict):
        call = cast(JsonObject, inner)
    key = next((key for key in (*_NAME_KEYS, "function") if isinstance(call.get(key), str)), None)
    if key is None:
        raise _NoCall("it has neither `name` nor `tool`")
    return str(call[key]).strip(), _arguments(call, key)


def _arguments(call: Mapping[str, Any], name_key: str) -> JsonObject:
    key = next((key for key in _ARGUMENT_KEYS if key in call), None)
    if key is None:
        return {name: part for name, part in call.items() if name not in (name_key, "id", "type")}
    given = call[key]
    if isinstance(given, str):
        given = _decoded(given, key)
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise _NoCall(f"`{key}` is no object")
    return cast(JsonObject, given)


def _decoded(text: str, key: str) -> Any:
    """Arguments that were written as a text of JSON, as some servers do."""
    try:
        return json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        raise _NoCall(f"`{key}` is a text that is no JSON") from None


def dropped_note(parsed: ParsedText) -> str | None:
    """What the model is told of pieces that were not used and names that were put right; None where all was well."""
    lines = [f"- {piece.text}: {piece.reason}." for piece in parsed.dropped]
    if lines:
        lines.insert(0, "These parts of your answer were not run:")
    lines.extend(f"Note: {repair}." for repair in parsed.repairs)
    return "\n".join(lines) or None
