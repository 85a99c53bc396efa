"""Changes of a server's definitions: schema widening, injected instructions, grade and diff."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, cast

from trysquare.core.json import JsonObject, as_list, as_object, map_leaves, properties_of, required_of, resolve_ref
from trysquare.core.schema.validator import key_of
from trysquare.core.text import truncate
from trysquare.core.untrusted import cleaned_text, hidden_kinds, one_line
from trysquare.gateway.models import ToolDefinition
from trysquare.search.tokenize import split_words

_DEPTH = 6
_SINK_WORDS = (
    "url uri link webhook callback endpoint host server proxy redirect cc bcc recipient recipients email to forward "
    "command cmd shell script code exec eval sql path file filename directory env environment header headers cookie "
    "password passwd secret token key credential credentials auth context conversation history transcript messages "
    "prompt system sidenote notes note memory thoughts reasoning metadata extra debug log upload attachment"
)
_SINKS = frozenset(_SINK_WORDS.split())
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_LOWER = ("minimum", "exclusiveMinimum")
_NARROWING = ("pattern", "const", "propertyNames", "not")
_NOT_COMPARED = (
    "allOf", "if", "then", "else", "patternProperties", "dependentSchemas", "dependentRequired", "dependencies",
    "prefixItems", "additionalItems", "contains", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef",
)  # fmt: skip
"""Rare keywords that are not compared: any change of them is reported."""


def schema_widenings(before: Any, after: Any) -> list[str]:
    """Sentences on what became wider or risky; harmless additions are not reported."""
    old, new = as_object(before), as_object(after)
    return list(dict.fromkeys(_Comparison(old, new).of_objects(old, new, "", _DEPTH)))


class _Comparison:
    """Comparison of two schemas from the root to the leaves."""

    def __init__(self, before: JsonObject, after: JsonObject) -> None:
        self._before, self._after = before, after

    def of_objects(self, before: JsonObject, after: JsonObject, where: str, depth: int) -> Iterator[str]:
        if depth == 0 or before == after:
            # Any difference below the depth limit is reported.
            yield from [] if before == after else [f"`{where}` changed."]
            return
        old, new = resolve_ref(before, self._before), resolve_ref(after, self._after)
        yield from _wider_types(old, new, where)
        yield from _wider_bounds(old, new, where)
        yield from self._wider_names(old, new, where, depth)
        yield from self._wider_parts(old, new, where, depth)
        yield from (f"{_at(where)} changed in `{key}`." for key in _NOT_COMPARED if old.get(key) != new.get(key))

    def _wider_names(self, old: JsonObject, new: JsonObject, where: str, depth: int) -> Iterator[str]:
        had, has = old.get("additionalProperties", True), new.get("additionalProperties", True)
        if had not in (True, has) and has is not False:
            yield f"{_at(where)} accepts additional properties."
        known, now = as_object(old.get("properties")), as_object(new.get("properties"))
        required = set(required_of(new))
        for name, schema in now.items():
            path = f"{where}.{_display(name)}".removeprefix(".")
            if name in known:
                yield from self.of_objects(as_object(known[name]), as_object(schema), path, depth - 1)
            elif name in required:
                yield f"New required input `{path}`."
            elif is_sink(name):
                yield f"New input `{path}`, by which data could leave or commands be run."

    def _wider_parts(self, old: JsonObject, new: JsonObject, where: str, depth: int) -> Iterator[str]:
        if "items" in old and "items" in new:
            inner = as_object(old["items"]), as_object(new["items"])
            yield from self.of_objects(*inner, f"{where}[]", depth - 1)
        for keyword in ("anyOf", "oneOf"):
            options = {repr(key_of(option)) for option in as_list(old.get(keyword))}
            added = [one for one in as_list(new.get(keyword)) if repr(key_of(one)) not in options]
            if keyword in old and added:
                yield f"{_at(where)} accepts other forms than before."


def is_sink(name: str) -> bool:
    """Whether an input, by its name, could export data or take commands."""
    return bool(_SINKS & set(split_words(name)))


def _wider_types(old: JsonObject, new: JsonObject, where: str) -> Iterator[str]:
    had, has = _types(old), _types(new)
    if had and (not has or not has <= had):
        gained = ", ".join(sorted(has - had)) or "anything"
        yield f"{_at(where)} now accepts {truncate(gained)}."
    if "enum" in old:
        choices = {repr(key_of(choice)) for choice in as_list(old["enum"])}
        added = [choice for choice in as_list(new.get("enum")) if repr(key_of(choice)) not in choices]
        if "enum" not in new and "const" not in new:
            yield f"{_at(where)} is no longer an enum."
        elif added:
            yield f"{_at(where)} has new enum values: {truncate(', '.join(_display(str(choice)) for choice in added))}."


def _wider_bounds(old: JsonObject, new: JsonObject, where: str) -> Iterator[str]:
    relaxed = [key for key in (*_UPPER, *_LOWER) if _is_number(old.get(key)) and not _is_bounded(key, new, old[key])]
    relaxed += [key for key in _NARROWING if key in old and old[key] != new.get(key)]
    for key in relaxed:
        yield f"{_at(where)} is no longer limited by `{key}`."
    if is_sink(where) and "default" in new and old.get("default") != new["default"]:
        yield f"{_at(where)} has a new default: {_display(str(new['default']))}."


def _types(schema: JsonObject) -> set[str]:
    kind = schema.get("type")
    kinds = [kind] if isinstance(kind, str) else as_list(kind)
    known = {one for one in kinds if isinstance(one, str)}
    return known | {"integer"} if "number" in known else known


def _is_bounded(key: str, new: JsonObject, limit: Any) -> bool:
    value = new.get(key)
    return _is_number(value) and (value <= limit if key in _UPPER else value >= limit)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _at(where: str) -> str:
    return f"`{where}`" if where else "The tool"


def _display(text: str) -> str:
    return truncate(cleaned_text(text))


Grade: TypeAlias = Literal["trivial", "new", "gone", "changed", "dangerous"]
"""Only `trivial` (white space) and `gone` never wait for a human: no other text is harmless in every language.

`dangerous`: hidden characters, a wider schema, an exporting input, a dropped promise, a renamed tool, or injected
instructions in English.
"""

_MAX_LINE, _MAX_LINES, _MAX_SHOWN, _MAX_REASONS = 300, 400, 80, 12
_GROWTH = 2_000
"""Characters by which a description may grow."""
_DESCRIPTIVE = frozenset({"title", "description", "examples", "default", "$comment", "$schema", "$id"})
_PROMISES = (
    ("readOnlyHint", True, "It no longer declares that it is read-only."),
    ("destructiveHint", False, "It no longer declares that it is not destructive."),
    ("openWorldHint", False, "It no longer declares a closed world."),
)
"""Promises in annotations. A dropped promise is broken, whether denied or omitted."""
_BLANKS = " \t\r\n"
_SPACE = re.compile(f"[{_BLANKS}]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    tool: str
    """Its name, or the former one if it is gone."""
    grade: Grade
    reasons: tuple[str, ...]
    before: ToolDefinition | None
    after: ToolDefinition | None


def compare(before: Sequence[ToolDefinition], after: Sequence[ToolDefinition]) -> list[Change]:
    """Every tool that differs between two states of a server, in the order of the new state; removed ones last."""
    old = {definition.name: definition for definition in before}
    new = {definition.name: definition for definition in after}
    gone = {name: definition for name, definition in old.items() if name not in new}
    changes = [change for name, one in new.items() if (change := _change(old.get(name), one, gone)) is not None]
    return changes + [
        Change(tool=name, grade="gone", reasons=("The tool is gone.",), before=definition, after=None)
        for name, definition in gone.items()
    ]


def suspicions(definition: ToolDefinition) -> tuple[str, ...]:
    return (*_hidden(texts_of(definition)), *(f"{reason}." for reason in find_injections(texts_of(definition))))


def structure_of(definition: ToolDefinition) -> str:
    """Digest of a tool's inputs without descriptions: equal for a clone under another name."""
    plain = json.dumps(_structure(definition.input_schema), sort_keys=True)
    return hashlib.sha256(plain.encode("utf-8", errors="surrogatepass")).hexdigest()


def texts_of(definition: ToolDefinition) -> list[str]:
    parts = (definition.input_schema, definition.output_schema, definition.annotations)
    own = [definition.name, definition.title or "", definition.description]
    return [*own, *(text for part in parts for text in texts_in(part))]


def readable_diff(before: ToolDefinition | None, after: ToolDefinition | None) -> str:
    """Unified diff with hidden characters escaped."""
    try:
        old, new = _lines(before), _lines(after)
    except RecursionError:
        return ""
    lines = list(difflib.unified_diff(old[:_MAX_LINES], new[:_MAX_LINES], lineterm="", n=1))[2:]
    more = len(lines) - _MAX_SHOWN
    cut = [f"… {more} more lines"] if more > 0 else []
    long = ["… cut"] if max(len(old), len(new)) > _MAX_LINES else []
    return "\n".join([*lines[:_MAX_SHOWN], *cut, *long])


def _change(old: ToolDefinition | None, new: ToolDefinition, gone: dict[str, ToolDefinition]) -> Change | None:
    try:
        old = None if old is None else replace(old, icons=new.icons)
        if old == new:
            return None
        before, dangers, otherwise, grade = _graded(old, new, gone)
    except RecursionError:
        before, dangers, otherwise, grade = old, ["It is nested too deep to compare."], "", "dangerous"
    return Change(
        tool=new.name,
        grade="dangerous" if dangers else grade,
        reasons=tuple(dangers[:_MAX_REASONS]) or (otherwise,),
        before=before,
        after=new,
    )


def _graded(
    old: ToolDefinition | None, new: ToolDefinition, gone: dict[str, ToolDefinition]
) -> tuple[ToolDefinition | None, list[str], str, Grade]:
    """The former definition, why the change is dangerous, and the reason and grade of one that is not."""
    if old is not None:
        if _folded(asdict(old)) == _folded(asdict(new)):
            return old, [], "Only white space changed.", "trivial"
        return old, list(_reasons(old, new)), "Its text for the model changed.", "changed"
    renamed = next((one for one in gone.values() if _is_clone(one, new)), None)
    if renamed is not None:
        reason = f"It is the tool `{truncate(renamed.name)}` under a new name."
        return renamed, [reason, *_reasons(renamed, new)], "", "changed"
    return None, list(suspicions(new)), "The tool is new.", "new"


def _folded(value: Any) -> Any:
    """A definition with normalized white space."""
    return map_leaves(value, lambda part: _SPACE.sub(" ", part.strip(_BLANKS)) if isinstance(part, str) else part)


def _is_clone(one: ToolDefinition, other: ToolDefinition) -> bool:
    """Whether two tools have the same inputs or, without inputs, the same description."""
    if structure_of(one) != structure_of(other):
        return False
    return bool(properties_of(one.input_schema)) or one.description == other.description


def _reasons(old: ToolDefinition, new: ToolDefinition) -> Iterator[str]:
    """Why a change is dangerous; empty if only a human can judge it."""
    known = {sentence for text in texts_of(old) for sentence in sentences(text)}
    added = [sentence for text in texts_of(new) for sentence in sentences(text) if sentence not in known]
    yield from _hidden(added)
    yield from (f"{reason}." for reason in find_injections(added))
    if len(new.description) > len(old.description) + _GROWTH:
        yield f"Its description grew by {len(new.description) - len(old.description)} characters."
    yield from schema_widenings(old.input_schema, new.input_schema)
    yield from _broken_promises(as_object(old.annotations), as_object(new.annotations))


def _broken_promises(old: JsonObject, new: JsonObject) -> Iterator[str]:
    yield from (
        reason for hint, promised, reason in _PROMISES if old.get(hint) is promised and new.get(hint) is not promised
    )
    if old.get("readOnlyHint") is False and new.get("readOnlyHint") is True:
        yield "It now declares that it is read-only, after the opposite."


def _hidden(texts: Iterable[str]) -> Iterator[str]:
    kinds = dict.fromkeys(kind for text in texts for kind in hidden_kinds(text))
    if kinds:
        yield f"It has hidden characters ({', '.join(kinds)})."


def _structure(schema: Any) -> Any:
    if isinstance(schema, dict):
        # An input named `title` is a schema, and not descriptive.
        members = cast(JsonObject, schema).items()
        return {key: _structure(part) for key, part in members if key not in _DESCRIPTIVE or isinstance(part, dict)}
    if isinstance(schema, list):
        return [_structure(part) for part in cast(list[Any], schema)]
    return schema


def _lines(definition: ToolDefinition | None) -> list[str]:
    if definition is None:
        return []
    lines = [f"name: {definition.name}", f"title: {definition.title or ''}"]
    lines += [f"description: {sentence}" for sentence in sentences(definition.description)]
    schema = as_object(definition.input_schema)
    parts = [(f"input {name}:", part) for name, part in sorted(as_object(schema.get("properties")).items())]
    parts.append(("inputs:", {key: part for key, part in schema.items() if key != "properties"}))
    parts += [
        ("page:", definition.page),
        ("annotations:", definition.annotations),
        ("output:", definition.output_schema),
    ]
    for name, part in parts:
        lines += [f"{name} {line.strip()}" for line in _pretty(part)]
    return [one_line(" ".join(line.split()), _MAX_LINE) for line in lines if not line.endswith(": ")]


def _pretty(part: Any) -> list[str]:
    if part is None or part == {}:
        return []
    if isinstance(part, dict):
        named = cast(JsonObject, part).items()
        return [f"{key} = {json.dumps(inner, ensure_ascii=False, sort_keys=True)}" for key, inner in sorted(named)]
    return [json.dumps(part, ensure_ascii=False)]


_LONGEST_READ = 100_000
_DEEDS = r"(?:call|use|run|invoke|execute|read|include|send|append|pass|open|fetch|copy|put|ignore|act|attach|forward)"
_PATTERNS: tuple[tuple[str, str], ...] = (
    (
        "It tells the model to ignore instructions",
        r"\b(?:ignore|disregard|forget|override|bypass|supersedes?)\b.{0,60}"
        r"\b(?:instructions?|rules?|prompts?|polic(?:y|ies)|guidelines?|messages?|other tools?)\b",
    ),
    (
        "It tells the model to hide something from the user",
        r"\b(?:do not|don't|dont|never|without|no need to|avoid)\b.{0,30}"
        r"\b(?:tell|mention|inform|reveal|show|notify|warn|alert|disclos|ask)\w*\b.{0,40}"
        r"\b(?:users?|person|people|humans?|anyone|them|confirmation|permission|consent)\b",
    ),
    (
        "It tells the model what to do",
        rf"\byou (?:must|should|shall|need to|have to|are to)\b.{{0,25}}\b{_DEEDS}\b"
        rf"|\balways (?:first )?{_DEEDS}\b"
        r"|\b(?:before|after) (?:using|calling|running|invoking|answering|responding|every|any)\b"
        r"|\bwhenever\b.{0,40}\b(?:tool|user|asks?|calls?)\b"
        r"|\binstead of (?:the |any |every )?(?:other |existing )?\w+ tools?\b",
    ),
    (
        "It addresses the model",
        r"<\s*/?\s*(?:important|system|instructions?|secret|assistant|hidden|critical)\b|\[/?inst\]"
        r"|\b(?:important|critical|urgent|attention|note to (?:the )?(?:ai|assistant|model|llm))\s*[:!]"
        r"|\b(?:system|developer) (?:prompt|message|instruction)s?\b"
        r"|\b(?:ai|assistants?|llms?|language models?|the model|the agent)\b.{0,15}"
        r"\b(?:must|should|shall|has to|needs to)\b",
    ),
    (
        "It asks for secrets or for the conversation",
        r"~/\.|\.ssh\b|\bid_(?:rsa|ed25519)\b|(?<!\w)\.env\b|/etc/(?:passwd|shadow)|\.aws/|\bmcp\.json\b"
        r"|\b(?:api[ _-]?keys?|private keys?|access tokens?|credentials|passwords?|secrets)\b"
        r"|\b(?:conversation|chat|message) (?:history|so far|context)\b"
        r"|\b(?:full|entire|whole) (?:conversation|context)\b",
    ),
    (
        "It asks to send data away",
        r"\b(?:send|forward|post|upload|bcc|transmit|report|leak|exfiltrat|copy)\w*\b.{0,80}(?:https?://|\S@\w)",
    ),
    ("It has encoded text", r"(?<![\w+/=])[\w+/]{80,}={0,2}"),
)
_COMPILED = tuple((reason, re.compile(pattern)) for reason, pattern in _PATTERNS)
_SENTENCES = re.compile(r"(?<=[.!?;])\s+|\n+")


def find_injections(texts: Iterable[str]) -> tuple[str, ...]:
    """Why some texts read like instructions to a model; empty if they do not."""
    plain = "\n".join(_plain(text) for text in texts)
    return tuple(reason for reason, pattern in _COMPILED if pattern.search(plain))


def sentences(text: str) -> list[str]:
    return [part.strip() for part in _SENTENCES.split(text) if part.strip()]


def texts_in(value: Any) -> Iterator[str]:
    """Every string in a JSON value, with its keys."""
    waiting: list[Any] = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            for name, inner in cast(dict[str, Any], part).items():
                yield name
                waiting.append(inner)
        elif isinstance(part, list):
            waiting.extend(cast(list[Any], part))


def _plain(text: str) -> str:
    """A text in normalized letters and white space."""
    return " ".join(unicodedata.normalize("NFKC", cleaned_text(text[:_LONGEST_READ])).lower().split())
