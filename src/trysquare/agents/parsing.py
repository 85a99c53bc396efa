"""Parser of tool calls in a model's text, and resolution of tool names."""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal, cast

from trysquare.core.json import JsonObject, as_list, properties_of
from trysquare.core.text import truncate
from trysquare.models import CallRequest, ToolSpec

_PREFIXES = ("functions.", "function.", "tools.", "tool.", "mcp.")
_CLOSE = 0.8
_LEAD = 0.1
"""Lead of the best match over the second; anything less is a guess."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolved:
    name: str
    action: str | None = None


class KnownNames:
    """Names of tools and actions that a request offered."""

    def __init__(self, actions: Mapping[str, Iterable[str]]) -> None:
        self._names = tuple(actions)
        self._actions: dict[str, list[str]] = {}
        for name, own in actions.items():
            for action in own:
                self._actions.setdefault(action, []).append(name)
        folds = Counter(map(_fold, self._names))
        self._folded = {_fold(name): name for name in self._names if folds[_fold(name)] == 1}

    @classmethod
    def of_offers(cls, offers: Iterable[ToolSpec]) -> KnownNames:
        actions = ((offer.name, properties_of(offer.flat).get("action", {}).get("enum")) for offer in offers)
        return cls({name: map(str, as_list(known)) for name, known in actions})

    def resolve(self, name: str) -> Resolved | None:
        """The tool that a name refers to; None if it is unknown or ambiguous."""
        if name in self._names:
            return Resolved(name=name)
        prefix = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), "")
        bare = name.removeprefix(prefix)
        if (folded := self._folded.get(_fold(bare))) is not None:
            return Resolved(name=folded)
        return self._by_action(bare) or self._by_spelling(bare)

    def unknown(self, name: str) -> str:
        known = ", ".join(self._names[:20]) + (" …" if len(self._names) > 20 else "")
        return f"unknown tool `{truncate(name)}`; use one of {known}"

    def _by_action(self, name: str) -> Resolved | None:
        """Resolve `file.read` or `file_read`, or `grep` if only one tool has this action."""
        for tool in self._names:
            action = name.removeprefix(tool)[1:]
            if name.startswith(tool) and name[len(tool) : len(tool) + 1] in ("_", ".", ":", "/") and action:
                return Resolved(name=tool, action=action) if tool in self._actions.get(action, ()) else None
        owners = self._actions.get(name, [])
        return Resolved(name=owners[0], action=name) if len(owners) == 1 else None

    def _by_spelling(self, name: str) -> Resolved | None:
        if not 3 <= len(name) <= 100:
            return None
        wanted = _fold(name)
        close = difflib.get_close_matches(wanted, self._folded, n=2, cutoff=_CLOSE)
        if not close:
            return None
        ratios = [difflib.SequenceMatcher(None, match, wanted).ratio() for match in close]
        if len(ratios) > 1 and ratios[0] - ratios[1] < _LEAD:
            return None
        return Resolved(name=self._folded[close[0]])


def _fold(name: str) -> str:
    return name.lower().replace("-", "_").replace(" ", "_").replace(".", "_")


MAX_TEXT = 200_000
MAX_PIECES = 64
_MAX_STARTS = 100
"""Limits failed attempts, so that a text of braces alone stays cheap."""
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
"""What may stand between calls and after the last one."""
_MARK = re.compile(r'"(?:\\.|[^"\\])*"|[{}]', re.DOTALL)
_CALL_START = re.compile(r"""\{\s*["']?(?:name|tool|function)["']?\s*:""")
_DECODER = json.JSONDecoder()
_QUOTED = (
    "it is inside other text, a quotation or thinking, where nothing is run; "
    "to make this call, send it again at the end of your answer, on a line of its own"
)
_NAME_KEYS = ("name", "tool")
_ARGUMENT_KEYS = ("args", "arguments", "parameters", "input")


@dataclass(frozen=True, kw_only=True, slots=True)
class Dropped:
    """A piece of text that looks like a call and was not used."""

    text: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedText:
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
    position: Literal["marked", "alone", "within"] = "alone"


class _NotACall(ValueError):
    """Why a value is not a call."""


def parse_calls(text: str, names: KnownNames, *, prefix: str = "text") -> ParsedText:
    """Parse the calls of an answer, in order; their ids start with `prefix`.

    A call counts where it is marked as one, or on lines of its own at the end. In a sentence, before prose, in a
    quotation or in thinking it is not run, since it may be what a file says or what the model decided against; such
    calls are reported to the model.
    """
    reading = _Reading(text=text, names=names, prefix=prefix)
    if len(text) > MAX_TEXT:
        reading.drop(text, f"the answer is longer than {MAX_TEXT:,} characters; the rest was ignored")
    pieces = sorted(_pieces(text[:MAX_TEXT]), key=lambda piece: piece.start)
    for piece in pieces[:MAX_PIECES]:
        reading.add(piece)
    if len(pieces) > MAX_PIECES:
        reading.drop(text[pieces[MAX_PIECES].start :], f"only the first {MAX_PIECES} calls of an answer are read")
    return reading.parsed()


class _Reading:
    def __init__(self, *, text: str, names: KnownNames, prefix: str) -> None:
        self._text, self._names, self._prefix = text, names, prefix
        self._calls: list[CallRequest] = []
        self._dropped: list[Dropped] = []
        self._repairs: list[str] = []

    def add(self, piece: _Piece) -> None:
        if piece.broken is not None:
            self.drop(_part(self._text, piece), piece.broken)
        if piece.position == "within":
            self._report_quoted(piece)
            return
        for value in piece.values:
            try:
                self._add_call(value)
            except _NotACall as reason:
                self.drop(json.dumps(value, ensure_ascii=False), str(reason))

    def _report_quoted(self, piece: _Piece) -> None:
        """Report calls in places where none is run; other JSON is ignored."""
        for value in piece.values:
            try:
                name, _ = _name_and_arguments(value)
            except _NotACall:
                continue
            if self._names.resolve(name) is not None:
                self.drop(json.dumps(value, ensure_ascii=False), _QUOTED)

    def _add_call(self, value: Any) -> None:
        name, arguments = _name_and_arguments(value)
        known = self._names.resolve(name)
        if known is None:
            raise _NotACall(self._names.unknown(name))
        if known.name != name:
            self._repairs.append(f"`{truncate(name)}` was read as `{known.name}`")
        if known.action is not None:
            arguments = {"action": known.action, **arguments}
        number = len(self._calls) + 1
        self._calls.append(CallRequest(id=f"{self._prefix}-{number}", name=known.name, arguments=arguments))

    def drop(self, text: str, reason: str) -> None:
        self._dropped.append(Dropped(text=truncate(text.strip(), 160), reason=reason))

    def parsed(self) -> ParsedText:
        return ParsedText(calls=tuple(self._calls), dropped=tuple(self._dropped), repairs=tuple(self._repairs))


def _pieces(text: str) -> list[_Piece]:
    whole = _read_json(text)
    if whole is not None:
        return [_Piece(start=0, end=len(text), values=whole)]
    thoughts = list(_thoughts(text))
    visible = _without(text, thoughts)
    answer = _read_json(visible)
    if answer is not None:
        return [_Piece(start=0, end=len(text), values=answer)]
    marked = [
        piece for found in _ELEMENT.finditer(visible) for piece in _marked(found["body"], found.start(), found.end())
    ]
    rest = _without(visible, marked)
    fenced, quoted = _fenced(rest)
    rest = _without(rest, quoted, blank="x")
    # More pieces than this count as prose, so that nothing before them is run.
    loose = list(islice(_braces(_without(rest, fenced)), 2 * MAX_PIECES))
    prose = _without(rest, [*fenced, *loose])
    found = [*marked, *fenced, *(replace(piece, position=_position(prose, piece)) for piece in loose)]
    found = _exclude_early(found, end_of_prose=len(prose.rstrip(" \t\r\n,;[]")))
    in_quotes = [piece for quote in quoted for piece in _within(_part(text, quote), quote.start)]
    in_thoughts = [piece for thought in thoughts for piece in _within(_part(text, thought), thought.start)]
    return [*found, *in_quotes, *in_thoughts]


def _part(text: str, piece: _Piece) -> str:
    return text[piece.start : piece.end]


def _within(text: str, start: int) -> Iterator[_Piece]:
    """Calls in a quoted text or in thinking."""
    for piece in _braces(text):
        if piece.values:
            yield replace(piece, start=piece.start + start, end=piece.end + start, position="within")


def _exclude_early(found: list[_Piece], *, end_of_prose: int) -> list[_Piece]:
    """Mark calls as quoted that are followed by prose."""

    def is_early(piece: _Piece) -> bool:
        return piece.position == "alone" and piece.start < end_of_prose and piece.broken is None

    # With calls both before and after prose it is unclear which are meant, and their order matters.
    unclear = any(_is_call_like(value) for piece in found if is_early(piece) for value in piece.values)
    return [
        replace(piece, position="within") if is_early(piece) or (unclear and piece.position == "alone") else piece
        for piece in found
    ]


def _position(prose: str, piece: _Piece) -> Literal["alone", "within"]:
    """Whether the lines of a piece contain only calls; `prose` is the text without any piece."""
    start = prose.rfind("\n", 0, piece.start) + 1
    end = prose.find("\n", piece.end)
    environment = prose[start : len(prose) if end < 0 else end]
    return "alone" if _BETWEEN.fullmatch(environment) else "within"


def _thoughts(text: str) -> Iterator[_Piece]:
    """Thinking: between its marks, before a lone closing mark, or up to the end."""
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
            # Some templates put the opening mark into the prompt, so that an answer starts with thinking.
            yield _Piece(start=start if depth else 0, end=mark.end())
            depth = 0
        else:
            depth -= 1
    if depth:
        yield _Piece(start=start, end=len(text))


def _without(text: str, pieces: Iterable[_Piece], *, blank: str = " ") -> str:
    """Blank out pieces without changing positions."""
    parts: list[str] = []
    at = 0
    for piece in sorted(pieces, key=lambda each: each.start):
        parts.append(text[at : piece.start])
        at = max(at, piece.start)
        parts.append(re.sub(r"[^\n]", blank, text[at : piece.end]))
        at = max(at, piece.end)
    return "".join((*parts, text[at:]))


def _fenced(text: str) -> tuple[list[_Piece], list[_Piece]]:
    """Fenced blocks with calls, and those that quote something else."""
    calls: list[_Piece] = []
    quoted: list[_Piece] = []
    for block in _FENCE.finditer(text):
        whole = _Piece(start=block.start(), end=block.end())
        language = block[2].lower()
        if language in _CALL_BLOCKS:
            calls.extend(_marked(block[3], *block.span()))
        elif language in _JSON_BLOCKS:
            calls.extend([replace(piece, position="alone") for piece in _marked(block[3], *block.span())] or [whole])
        else:
            quoted.append(whole)
    return calls, quoted


def _marked(text: str, start: int, end: int) -> Iterator[_Piece]:
    """Calls in a marked part, each at the position of the whole part."""
    values = _read_json(text)
    pieces = _braces(text) if values is None else [_Piece(start=start, end=end, values=values)]
    return (replace(piece, start=start, end=end, position="marked") for piece in pieces)


def _braces(text: str) -> Iterator[_Piece]:
    """Every outermost object; braces in strings do not count."""
    start, tried = text.find("{"), 0
    while start >= 0 and tried < _MAX_STARTS:
        piece = _object(text, start) or _broken(text, start)
        if piece is not None:
            yield piece
        tried += piece is None or piece.broken is not None
        start = text.find("{", start + 1 if piece is None else piece.end)


def _object(text: str, start: int) -> _Piece | None:
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return _Piece(start=start, end=end, values=(value,) if _is_call_like(value) else ())


def _broken(text: str, start: int) -> _Piece | None:
    """A piece that starts like a call but is not JSON."""
    if _CALL_START.match(text, start) is None:
        return None
    depth = 0
    for mark in _MARK.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        if depth == 0:
            return _Piece(start=start, end=mark.end(), broken=_json_problem(text[start : mark.end()]))
    return _Piece(start=start, end=len(text), broken="its braces are not closed; it was truncated")


def _read_json(text: str) -> tuple[Any, ...] | None:
    """Values of a JSON array or object; None for any other text."""
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
        raise _NotACall('a call is an object: {"name": "…", "args": {…}}')
    call = cast(JsonObject, value)
    inner = call.get("function")
    if isinstance(inner, dict):
        call = cast(JsonObject, inner)
    key = next((key for key in (*_NAME_KEYS, "function") if isinstance(call.get(key), str)), None)
    if key is None:
        raise _NotACall("it has neither `name` nor `tool`")
    return str(call[key]).strip(), _arguments(call, key)


def _arguments(call: Mapping[str, Any], name_key: str) -> JsonObject:
    key = next((key for key in _ARGUMENT_KEYS if key in call), None)
    if key is None:
        return {name: part for name, part in call.items() if name not in (name_key, "id", "type")}
    given = call[key]
    if isinstance(given, str):
        try:
            given = json.loads(given) if given.strip() else None
        except (ValueError, RecursionError):
            raise _NotACall(f"`{key}` is a string that is not JSON") from None
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise _NotACall(f"`{key}` is not an object")
    return cast(JsonObject, given)


def dropped_message(parsed: ParsedText) -> str | None:
    """Message to the model about pieces that were not used and corrected names."""
    lines = [f"- {piece.text}: {piece.reason}." for piece in parsed.dropped]
    if lines:
        lines.insert(0, "These parts of your answer were not run:")
    lines.extend(f"Note: {repair}." for repair in parsed.repairs)
    return "\n".join(lines) or None
