"""Coercion: other forms of a value, and values that may have been meant, in the order in which to try them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias, cast

from trysquare.core.json import JsonObject, as_list, as_object, resolve_ref
from trysquare.core.text import closest_names, truncated_repr

ABSENT: Any = object()
"""The candidate that leaves a value out."""
_NUMBER = re.compile(r"\s*-?(?:0|[1-9]\d{0,300})(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?\s*")
_TRUE_WORDS, _FALSE_WORDS = ("true", "1", "yes", "y", "t", "on"), ("false", "0", "no", "n", "f", "off")
_BLANKS = frozenset({"", "null", "none", "nil", "undefined"})
_LONGEST_JSON = 1_000_000
_LONGEST_NUMBER_TEXT = 100


class Candidate(NamedTuple):
    """A value to try instead of the given one, and what was done to it."""

    value: Any
    note: str = ""
    is_wrapped: bool = False
    """Whether the value is the given one in a list."""


Candidates: TypeAlias = Callable[[Any, JsonObject, JsonObject], Iterator[Candidate]]
"""The candidates for a value, its schema and the whole schema, safest first. None of them has been checked yet."""


def coercions(value: Any, schema: JsonObject, whole: JsonObject) -> Iterator[Candidate]:
    """The same value in another form that the schema may take: nothing is lost or invented."""
    kinds = _kinds(schema, whole)
    if value is None:
        yield Candidate(ABSENT, "null is not allowed and was left out")
    elif isinstance(value, str):
        yield from _from_text(value, kinds)
        yield from _choice_of(value, schema)
        if is_blank(value):
            yield Candidate(ABSENT, f"{value!r} is not allowed and was left out")
    elif type(value) is int and "string" in kinds and value.bit_length() < _LONGEST_NUMBER_TEXT:
        yield Candidate(str(value), f"the number {value} was written as text")
    if "array" in kinds and not isinstance(value, list) and value is not None:
        yield Candidate([value], f"{truncated_repr(value)} was put into a list", is_wrapped=True)


def is_blank(value: Any) -> bool:
    """Whether a value says that there is none: what models write for an optional argument that they do not mean."""
    return value is None or (isinstance(value, str) and value.strip().lower() in _BLANKS)


def conversions(value: Any, schema: JsonObject, whole: JsonObject) -> Iterator[Candidate]:
    """Coercions, and the other forms of truth values and numbers that pydantic takes."""
    yield from coercions(value, schema, whole)
    kinds = _kinds(schema, whole)
    if "boolean" in kinds and (isinstance(value, str) or value in (0, 1)):
        word = value.lower() if isinstance(value, str) else str(int(value))
        if word in (*_TRUE_WORDS, *_FALSE_WORDS):
            yield Candidate(word in _TRUE_WORDS)
    if isinstance(value, bool) and kinds & {"integer", "number"}:
        yield Candidate(int(value))


def guesses(value: Any, schema: JsonObject, whole: JsonObject) -> Iterator[Candidate]:
    yield from conversions(value, schema, whole)
    # A constant is not a choice: it may be the consent text that a human has to give.
    texts = {str(choice): choice for choice in as_list(schema.get("enum"))} if "const" not in schema else {}
    if isinstance(value, str):
        yield from (Candidate(texts[close]) for close in closest_names(value, texts))
    if isinstance(value, float) and "string" in _kinds(schema, whole):
        yield Candidate(str(value))
    if isinstance(value, list) and len(cast(list[Any], value)) == 1:
        yield Candidate(value[0])


def _kinds(schema: JsonObject, whole: JsonObject, depth: int = 3) -> frozenset[str]:
    """The types that a schema takes, as far as it says."""
    known = resolve_ref(schema, whole)
    kind = known.get("type")
    own = [kind] if isinstance(kind, str) else [one for one in as_list(kind) if isinstance(one, str)]
    options = [*as_list(known.get("anyOf")), *as_list(known.get("oneOf"))] if depth else []
    return frozenset(own).union(*(_kinds(as_object(option), whole, depth - 1) for option in options))


def from_json(text: str) -> Any:
    """What a text says as JSON; the text itself where it is not JSON."""
    if len(text) > _LONGEST_JSON:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _from_text(text: str, kinds: frozenset[str]) -> Iterator[Candidate]:
    if kinds & {"integer", "number"} and _NUMBER.fullmatch(text):
        number = from_json(text.strip())
        whole = "integer" in kinds and "number" not in kinds and isinstance(number, float) and number.is_integer()
        yield Candidate(int(number) if whole else number, f"the text {truncated_repr(text)} was read as a number")
    if "boolean" in kinds and (word := text.strip().lower()) in ("true", "false"):
        yield Candidate(word == "true", f"the text {truncated_repr(text)} was read as {word}")
    if "null" in kinds and text.strip() == "null":
        yield Candidate(None, "the text 'null' was read as null")
    if kinds & {"object", "array"} and text.lstrip()[:1] in ("{", "["):
        value = from_json(text)
        if not isinstance(value, str):
            yield Candidate(value, "the text was parsed as JSON")


def _choice_of(text: str, schema: JsonObject) -> Iterator[Candidate]:
    """The one choice that is written the same but for capitals, blanks and hyphens."""
    choices = [choice for choice in as_list(schema.get("enum")) if isinstance(choice, str)]
    alike = [choice for choice in choices if folded(choice) == folded(text)]
    if len(alike) == 1 and "const" not in schema:
        yield Candidate(alike[0], f"{truncated_repr(text)} was read as {truncated_repr(alike[0])}")


def folded(name: str) -> str:
    """A name without what people write in different ways: `issueNumber`, `issue-number`, `Issue number`."""
    return re.sub(r"[\W_]+", "", name[:200]).lower()
