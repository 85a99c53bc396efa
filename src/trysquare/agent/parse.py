"""Calls read from plain text, for models that no grammar holds.

A call is read where it stands as one, and nowhere else:

* the whole answer is JSON: an object, or an array of them;
* an element `<tool_call>…</tool_call>`, or a fenced block that is marked so, anywhere outside of thinking and quotes;
* an object on lines of its own, or in a fenced block of JSON, at the end of the answer: prose may stand before the
  calls, and none behind or between them.

What stands in the middle of a sentence, in front of further prose, in a quotation, in a block of another language or in
the model's thinking is not run, because it may be what a file says or what the model decided against. Nothing that
looks like a call is lost without a word: the loop tells the model what was not run, and how to send it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal, cast

from trysquare.agent.names import KnownNames
from trysquare.core.shortening import short
from trysquare.core.types import JsonObject
from trysquare.models.messages import CallRequest

MAX_TEXT = 200_000
MAX_PIECES = 64
_MAX_STARTS = 100
"""Braces that are tried without success before the rest is left: a text of braces alone must not cost a minute."""
_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[ \t]*([^\s`]*)[^\n]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_ELEMENT = re.compile(
    r"(?:<\|?|\[)(?P<tag>(?:tool|function)_?calls?)(?:\|?>|\])(?P<body>.*?)(?:(?:<\|?/|<\|?|\[/)(?P=tag)(?:_end)?(?:\|?>|\])|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_CALL_BLOCKS = frozenset({"tool", "tool_call", "tool_calls", "function_call"})
_JSON_BLOCKS = frozenset({"", "json", "json5", "jsonc", "jsonl"})
_THINKING = re.compile(
    r"[<\[◁](?P<close>/)?\|?(?P<tag>[\w:.-]*(?:think|thought|reason|analysis|reflect|scratchpad|monologue)[\w:.-]*)\|?[>\]▷]"
    r"|<\|channel\|>\s*(?P<channel>\w+)[^<]*<\|message\|>",
    re.IGNORECASE,
)
_FINAL_CHANNELS = frozenset({"final", "commentary"})
_BETWEEN = re.compile(r"[\s,;\[\]]*")
"""What may stand between calls, and behind the last one."""
_MARK = re.compile(r'"(?:\\.|[^"\\])*"|[{}]', re.DOTALL)
_CALL_START = re.compile(r"""\{\s*["']?(?:name|tool|function)["']?\s*:""")
_DECODER = json.JSONDecoder()
_NOT_ALONE = (
    "it stands within other text, in a quotation or in thinking, where nothing is run; "
    "to make this call, send it again as the last thing of your answer, on a line of its own"
)
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
    """Why a piece that looks like a call is not JSON."""
    stands: Literal["marked", "alone", "within"] = "alone"
    """Marked as a call, on lines of its own, or within something else."""


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
            self.drop(_part(self._text, piece), piece.broken)
        if piece.stands == "within":
            self._leave(piece)
            return
        for value in piece.values:
            try:
                self._take_value(value)
            except _NoCall as reason:
                self.drop(json.dumps(value, ensure_ascii=False), str(reason))

    def _leave(self, piece: _Piece) -> None:
        """Tell of a call that stands where none is run; other JSON, such as a file's, is nobody's business."""
        for value in piece.values:
            try:
                name, _ = _name_and_arguments(value)
            except _NoCall:
                continue
            if self._names.resolve(name) is not None:
                self.drop(json.dumps(value, ensure_ascii=False), _NOT_ALONE)

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
    thoughts = list(_thoughts(text))
    said = _without(text, thoughts)
    answer = _read_json(said)
    if answer is not None:
        return [_Piece(start=0, end=len(text), values=answer)]
    marked = list(_elements(said))
    rest = _without(said, marked)
    fenced, quoted = _fenced(rest)
    rest = _without(rest, quoted, blank="x")
    # What comes behind so many is taken for prose, so that nothing before it is run.
    loose = list(islice(_braces(_without(rest, fenced)), 2 * MAX_PIECES))
    prose = _without(rest, [*fenced, *loose])
    found = [*marked, *fenced, *(replace(piece, stands=_standing(prose, piece)) for piece in loose)]
    found = _placed(found, end_of_prose=len(prose.rstrip(" \t\r\n,;[]")))
    in_quotes = [piece for quote in quoted for piece in _within(_part(text, quote), quote.start)]
    in_thoughts = [piece for thought in thoughts for piece in _within(_part(text, thought), thought.start)]
    return [*found, *in_quotes, *in_thoughts]


def _part(text: str, piece: _Piece) -> str:
    """The part of a text that a piece takes."""
    return text[piece.start : piece.end]


def _within(text: str, start: int) -> Iterator[_Piece]:
    """What looks like a call in a text that is quoted or only thought."""
    for piece in _braces(text):
        if piece.values:
            yield replace(piece, start=piece.start + start, end=piece.end + start, stands="within")


def _placed(found: list[_Piece], *, end_of_prose: int) -> list[_Piece]:
    """The pieces with those taken out that are calls by where they stand, and yet in front of prose."""

    def is_early(piece: _Piece) -> bool:
        return piece.stands == "alone" and piece.start < end_of_prose and piece.broken is None

    # Where some calls stand before prose and others behind it, nobody knows which are meant, and their order counts.
    unclear = any(_is_call_like(value) for piece in found if is_early(piece) for value in piece.values)
    return [
        replace(piece, stands="within") if is_early(piece) or (unclear and piece.stands == "alone") else piece
        for piece in found
    ]


def _standing(prose: str, piece: _Piece) -> Literal["alone", "within"]:
    """Whether nothing but further calls is on the lines of a piece; `prose` is the text without any piece."""
    start = prose.rfind("\n", 0, piece.start) + 1
    end = prose.find("\n", piece.end)
    around = prose[start : len(prose) if end < 0 else end]
    return "alone" if _BETWEEN.fullmatch(around) else "within"


def _thoughts(text: str) -> Iterator[_Piece]:
    """The parts of a text that are thinking: between its marks, before a closing mark alone, or to the end."""
    depth, start = 0, 0
    for mark in _THINKING.finditer(text):
        if mark["channel"] is not None:
            opens = mark["channel"].lower() not in _FINAL_CHANNELS
            if depth and not opens:
                yield _Piece(start=start, end=mark.end())
            depth, start = (1, start if depth else mark.start()) if opens else (0, mark.end())
        elif mark["close"] is None:
            start = start if depth else mark.start()
            depth += 1
        elif depth <= 1:
            # Some templates write the opening mark into the prompt, so that an answer begins with thinking.
            yield _Piece(start=start if depth else 0, end=mark.end())
            depth = 0
        else:
            depth -= 1
    if depth:
        yield _Piece(start=start, end=len(text))


def _without(text: str, pieces: Iterable[_Piece], *, blank: str = " ") -> str:
    """The text with the pieces blanked out, so that every position stays what it was."""
    parts: list[str] = []
    at = 0
    for piece in sorted(pieces, key=lambda each: each.start):
        parts.append(text[at : piece.start])
        at = max(at, piece.start)
        parts.append(re.sub(r"[^\n]", blank, text[at : piece.end]))
        at = max(at, piece.end)
    return "".join((*parts, text[at:]))


def _elements(text: str) -> Iterator[_Piece]:
    """The elements that are marked as calls."""
    for element in _ELEMENT.finditer(text):
        yield from _marked(element["body"], element.start(), element.end())


def _fenced(text: str) -> tuple[list[_Piece], list[_Piece]]:
    """The fenced blocks that hold calls, and those that quote something else."""
    calls: list[_Piece] = []
    quoted: list[_Piece] = []
    for block in _FENCE.finditer(text):
        whole = _Piece(start=block.start(), end=block.end())
        language = block[2].lower()
        if language in _CALL_BLOCKS:
            calls.extend(_marked(block[3], *block.span()))
        elif language in _JSON_BLOCKS:
            calls.extend([replace(piece, stands="alone") for piece in _marked(block[3], *block.span())] or [whole])
        else:
            quoted.append(whole)
    return calls, quoted


def _marked(text: str, start: int, end: int) -> Iterator[_Piece]:
    """The calls that a marked part of an answer holds, each in the place of the whole part."""
    values = _read_json(text)
    if values is not None:
        yield _Piece(start=start, end=end, values=values, stands="marked")
        return
    for piece in _braces(text):
        yield replace(piece, start=start, end=end, stands="marked")


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
        return f"it is not JSON: {error.msg} at character {error.pos + 1}"
    except (ValueError, RecursionError) as error:
        return f"it is not JSON: {error}"
    return "it is not a call"


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
        raise _NoCall(f"`{key}` is not an object")
    return cast(JsonObject, given)


def _decoded(text: str, key: str) -> Any:
    """Arguments that were written as a text of JSON, as some servers do."""
    try:
        return json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        raise _NoCall(f"`{key}` is a text that is not JSON") from None


def dropped_note(parsed: ParsedText) -> str | None:
    """What the model is told of pieces that were not used and names that were put right; None where all was well."""
    lines = [f"- {piece.text}: {piece.reason}." for piece in parsed.dropped]
    if lines:
        lines.insert(0, "These parts of your answer were not run:")
    lines.extend(f"Note: {repair}." for repair in parsed.repairs)
    return "\n".join(lines) or None
