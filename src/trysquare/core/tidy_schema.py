"""Schemas as a client should see them: no generated titles, references written out, one fixed order of keys."""

from __future__ import annotations

import math
from typing import Any, cast

from trysquare.core.types import JsonObject

_ORDER = ("type", "const", "enum", "description", "properties", "required", "additionalProperties", "items", "anyOf")
_RANK = {key: rank for rank, key in enumerate(_ORDER)}
_SCHEMA = frozenset({"items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else"})
_LIST_OF_SCHEMAS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_MAP_OF_SCHEMAS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_MAX_INLINED = 2_000
OWN_WORDS = "x-trysquare-"
"""How the words begin that our own rooms put into a schema for one another."""


def tidy(schema: JsonObject) -> JsonObject:
    """A copy without noise: titles of pydantic's making go, definitions are written where they are used."""
    definitions = cast(JsonObject, schema.get("$defs", {}))
    inlined = _Inliner(definitions)
    body = inlined.tidy({key: value for key, value in schema.items() if key != "$defs"})
    kept = inlined.tidy_kept()
    return {**body, "$defs": kept} if kept else body


class _Inliner:
    """Writes definitions out, up to a number of them: a schema that explodes keeps its references."""

    def __init__(self, definitions: JsonObject) -> None:
        self._definitions = definitions
        self._recursive = _recursive_names(definitions)
        self._kept: set[str] = set()
        self._budget = _MAX_INLINED

    def tidy(self, schema: Any) -> Any:
        if not isinstance(schema, dict):
            return schema
        node = self._resolve(cast(JsonObject, schema))
        cleaned = {key: self._tidy_part(key, value) for key, value in node.items() if not _is_noise(key, value)}
        return dict(sorted(_without_null_default(cleaned).items(), key=_key_rank))

    def tidy_kept(self) -> JsonObject:
        """The definitions that are still referred to. Writing one out may show that it refers to more."""
        written: JsonObject = {}
        while waiting := sorted(self._kept - written.keys()):
            for name in waiting:
                written[name] = self.tidy(self._definitions[name])
        return dict(sorted(written.items()))

    def _resolve(self, node: JsonObject) -> JsonObject:
        reference = node.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
            return node
        name = reference.removeprefix("#/$defs/")
        if name not in self._definitions:
            return node
        if name in self._recursive or self._budget <= 0:
            self._kept.add(name)
            return node
        self._budget -= 1
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return {**self._resolve(self._definitions[name]), **rest}

    def _tidy_part(self, key: str, value: Any) -> Any:
        if key in _MAP_OF_SCHEMAS and isinstance(value, dict):
            return {name: self.tidy(part) for name, part in cast(JsonObject, value).items()}
        if key in _LIST_OF_SCHEMAS and isinstance(value, list):
            return [self.tidy(part) for part in cast(list[Any], value)]
        return self.tidy(value) if key in _SCHEMA else value


def without_own_words(schema: JsonObject) -> JsonObject:
    """The schema without the words that only our own rooms read: clients would pay for them and not know them."""
    return cast(JsonObject, _without_own_words(schema))


def _without_own_words(node: Any) -> Any:
    if isinstance(node, dict):
        parts = cast(JsonObject, node).items()
        return {key: _without_own_words(part) for key, part in parts if not key.startswith(OWN_WORDS)}
    return [_without_own_words(part) for part in cast(list[Any], node)] if isinstance(node, list) else node


def _is_noise(key: str, value: Any) -> bool:
    if key == "default" and isinstance(value, float):
        # JSON has no word for NaN and the infinities.
        return not math.isfinite(value)
    return (key == "title" and isinstance(value, str)) or key == "discriminator"


def _without_null_default(node: JsonObject) -> JsonObject:
    """`X or null, by default null` is told as an optional X: shorter, and what every model API accepts."""
    options = node.get("anyOf")
    if not isinstance(options, list) or "default" not in node or node["default"] is not None:
        return node
    kept = [option for option in cast(list[Any], options) if option != {"type": "null"}]
    if not kept:
        return node
    rest = {key: value for key, value in node.items() if key not in ("anyOf", "default")}
    if len(kept) == 1 and isinstance(kept[0], dict):
        return {**cast(JsonObject, kept[0]), **rest}
    return {**rest, "anyOf": kept}


def _key_rank(item: tuple[str, Any]) -> int:
    return _RANK.get(item[0], len(_ORDER))


def _recursive_names(definitions: JsonObject) -> set[str]:
    """The definitions that refer to themselves, directly or through others."""
    uses = {name: _references(definition) for name, definition in definitions.items()}
    return {name for name in definitions if name in _reachable(name, uses)}


def _reachable(start: str, uses: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = list(uses[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(uses.get(name, ()))
    return seen


def _references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = cast(JsonObject, node)
        found = {str(own["$ref"]).removeprefix("#/$defs/")} if "$ref" in own else set[str]()
        return found.union(*(_references(part) for part in own.values()))
    if isinstance(node, list):
        return set[str]().union(*(_references(part) for part in cast(list[Any], node)))
    return set()
