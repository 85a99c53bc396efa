"""Coercion: the same value in the form that a schema asks for, where there is one that loses and invents nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from trysquare.catalog.schema_parts import as_list, as_object
from trysquare.core.nearest import nearest
from trysquare.core.shortening import short_repr
from trysquare.core.types import JsonObject
from trysquare.gateway.checking.local_refs import resolved

_NUMBER = re.compile(r"\s*-?(?:0|[1-9]\d{0,300})(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?\s*")
_LONGEST_JSON = 1_000_000
_LONGEST_NUMBER_TEXT = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Coerced:
    """A value in another form, and what was done to it."""

    value: Any
    told: str


def coercions(value: Any, schema: JsonObject, whole: JsonObject) -> Iterator[Coerced]:
    """The forms of a value that a schema may take, safest first. None of them has been checked yet."""
    kinds = kinds_of(schema, whole)
    if isinstance(value, str):
        yield from _from_text(value, kinds)
        yield from _choice_of(value, schema)
    elif type(value) is int and "string" in kinds and value.bit_length() < _LONGEST_NUMBER_TEXT:
        yield Coerced(value=str(value), told=f"the number {value} was made text")
    if "array" in kinds and not isinstance(value, list) and value is not None:
        yield Coerced(value=[value], told=f"{short_repr(value)} was put into a list")


def guesses(value: Any, schema: JsonObject, whole: JsonObject) -> Iterator[Any]:
    """Values that may have been meant. They are offered to the caller and never sent by themselves."""
    yield from (coerced.value for coerced in coercions(value, schema, whole))
    # A constant is no choice: it may be the word that a person has to say before the tool may act.
    texts = {str(choice): choice for choice in as_list(schema.get("enum"))} if "const" not in schema else {}
    if isinstance(value, str):
        yield from (texts[close] for close in nearest(value, texts))
    if isinstance(value, float) and "string" in kinds_of(schema, whole):
        yield str(value)
    if isinstance(value, list) and len(cast(list[Any], value)) == 1:
        yield value[0]


def kinds_of(schema: JsonObject, whole: JsonObject, depth: int = 3) -> frozenset[str]:
    """The types that a schema takes, as far as it says."""
    known = resolved(schema, whole)
    kind = known.get("type")
    own = [kind] if isinstance(kind, str) else [one for one in as_list(kind) if isinstance(one, str)]
    options = [*as_list(known.get("anyOf")), *as_list(known.get("oneOf"))] if depth else []
    return frozenset(own).union(*(kinds_of(as_object(option), whole, depth - 1) for option in options))


def parsed_json(text: str) -> Any:
    """What a text says as JSON; the text itself where it is none."""
    if len(text) > _LONGEST_JSON:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _from_text(text: str, kinds: frozenset[str]) -> Iterator[Coerced]:
    if kinds & {"integer", "number"} and _NUMBER.fullmatch(text):
        number = parsed_json(text.strip())
        whole = "integer" in kinds and "number" not in kinds and isinstance(number, float) and number.is_integer()
        yield Coerced(value=int(number) if whole else number, told=f"the text {short_repr(text)} was read as a number")
    if "boolean" in kinds and (word := text.strip().lower()) in ("true", "false"):
        yield Coerced(value=word == "true", told=f"the text {short_repr(text)} was read as {word}")
    if "null" in kinds and text.strip() == "null":
        yield Coerced(value=None, told="the text 'null' was read as null")
    if kinds & {"object", "array"} and text.lstrip()[:1] in ("{", "["):
        value = parsed_json(text)
        if not isinstance(value, str):
            yield Coerced(value=value, told="the text was read as JSON")


def _choice_of(text: str, schema: JsonObject) -> Iterator[Coerced]:
    """The one choice that is written the same but for capitals, blanks and hyphens."""
    choices = [choice for choice in as_list(schema.get("enum")) if isinstance(choice, str)]
    alike = [choice for choice in choices if folded(choice) == folded(text)]
    if len(alike) == 1 and "const" not in schema:
        yield Coerced(value=alike[0], told=f"{short_repr(text)} was read as {short_repr(alike[0])}")


def folded(name: str) -> str:
    """A name without what people write in different ways: `issueNumber`, `issue-number`, `Issue number`."""
    return re.sub(r"[\W_]+", "", name[:200]).lower()
