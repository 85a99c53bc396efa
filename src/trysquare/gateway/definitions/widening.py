"""Widening: what a changed schema lets through, or asks for, that the old one did not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trysquare.catalog.schema_parts import as_list, as_object, required_of
from trysquare.catalog.words import split_words
from trysquare.core.shortening import short
from trysquare.core.types import JsonObject
from trysquare.core.untrusted import cleaned_text
from trysquare.gateway.checking.assertions import key_of
from trysquare.gateway.checking.local_refs import resolved

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
"""Too seldom seen to be weighed one by one: any change of these is for a person to see."""


def widenings(before: Any, after: Any) -> list[str]:
    """In sentences, what is wider or new in a way that a person should see; harmless additions are not among it."""
    old, new = as_object(before), as_object(after)
    return list(dict.fromkeys(_Comparison(old, new).of_objects(old, new, "", _DEPTH)))


class _Comparison:
    """Two schemas, side by side from the top to the leaves."""

    def __init__(self, before: JsonObject, after: JsonObject) -> None:
        self._before, self._after = before, after

    def of_objects(self, before: JsonObject, after: JsonObject, where: str, depth: int) -> Iterator[str]:
        """What widened between two schemas of the same place."""
        if depth == 0 or before == after:
            # Below the depth, whatever differs is told as different: nothing slips in by being deep.
            yield from [] if before == after else [f"`{where}` changed inside."]
            return
        old, new = resolved(before, self._before), resolved(after, self._after)
        yield from _wider_types(old, new, where)
        yield from _wider_bounds(old, new, where)
        yield from self._wider_names(old, new, where, depth)
        yield from self._wider_parts(old, new, where, depth)
        yield from (f"{_at(where)} changed in `{key}`." for key in _NOT_COMPARED if old.get(key) != new.get(key))

    def _wider_names(self, old: JsonObject, new: JsonObject, where: str, depth: int) -> Iterator[str]:
        had, has = old.get("additionalProperties", True), new.get("additionalProperties", True)
        if had not in (True, has) and has is not False:
            yield f"{_at(where)} takes other names than those that are listed."
        known, now = as_object(old.get("properties")), as_object(new.get("properties"))
        required = set(required_of(new))
        for name, schema in now.items():
            place = f"{where}.{_shown(name)}".removeprefix(".")
            if name in known:
                yield from self.of_objects(as_object(known[name]), as_object(schema), place, depth - 1)
            elif name in required:
                yield f"There is a new input `{place}`, and it must be given."
            elif is_sink(name):
                yield f"There is a new input `{place}`, by which something could leave or be done."

    def _wider_parts(self, old: JsonObject, new: JsonObject, where: str, depth: int) -> Iterator[str]:
        if "items" in old and "items" in new:
            inner = as_object(old["items"]), as_object(new["items"])
            yield from self.of_objects(*inner, f"{where}[]", depth - 1)
        for keyword in ("anyOf", "oneOf"):
            options = {repr(key_of(option)) for option in as_list(old.get(keyword))}
            added = [one for one in as_list(new.get(keyword)) if repr(key_of(one)) not in options]
            if keyword in old and added:
                yield f"{_at(where)} takes other forms than before."


def is_sink(name: str) -> bool:
    """Whether an input is, by its name, a way out for data or a way in for orders."""
    return bool(_SINKS & set(split_words(name)))


def _wider_types(old: JsonObject, new: JsonObject, where: str) -> Iterator[str]:
    had, has = _types(old), _types(new)
    if had and (not has or not has <= had):
        gained = ", ".join(sorted(has - had)) or "anything"
        yield f"{_at(where)} now takes {short(gained)}."
    if "enum" in old:
        choices = {repr(key_of(choice)) for choice in as_list(old["enum"])}
        added = [choice for choice in as_list(new.get("enum")) if repr(key_of(choice)) not in choices]
        if "enum" not in new and "const" not in new:
            yield f"{_at(where)} is no longer limited to choices."
        elif added:
            yield f"{_at(where)} has new choices: {short(', '.join(_shown(str(choice)) for choice in added))}."


def _wider_bounds(old: JsonObject, new: JsonObject, where: str) -> Iterator[str]:
    relaxed = [key for key in _UPPER if _is_number(old.get(key)) and not _at_most(new.get(key), old[key])]
    relaxed += [key for key in _LOWER if _is_number(old.get(key)) and not _at_least(new.get(key), old[key])]
    relaxed += [key for key in _NARROWING if key in old and old[key] != new.get(key)]
    for key in relaxed:
        yield f"{_at(where)} is no longer held to its `{key}`."
    if is_sink(where) and "default" in new and old.get("default") != new["default"]:
        yield f"{_at(where)} has another default: {_shown(str(new['default']))}."


def _types(schema: JsonObject) -> set[str]:
    kind = schema.get("type")
    kinds = [kind] if isinstance(kind, str) else as_list(kind)
    known = {one for one in kinds if isinstance(one, str)}
    return known | {"integer"} if "number" in known else known


def _at_most(value: Any, limit: Any) -> bool:
    return _is_number(value) and value <= limit


def _at_least(value: Any, limit: Any) -> bool:
    return _is_number(value) and value >= limit


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _at(where: str) -> str:
    return f"`{where}`" if where else "The tool"


def _shown(text: str) -> str:
    return short(cleaned_text(text))
