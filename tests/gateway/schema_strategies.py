"""Schemas and values, as many as there are: every keyword that the checks know, a few at a time."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from trysquare.core.json import JsonObject

_names = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, -2.0])
    | st.sampled_from(["", "a", "ab", "b1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=6,
)
_kinds = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
_small = st.integers(0, 3)


def _keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[JsonObject]:
    some = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(_names, inner, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": _kinds | st.lists(_kinds, min_size=1, max_size=2, unique=True),
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "const": VALUES,
            "properties": named,
            "required": st.lists(_names, max_size=2, unique=True),
            "additionalProperties": inner,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=2),
            "propertyNames": inner,
            "dependentRequired": st.dictionaries(_names, st.lists(_names, max_size=2, unique=True), max_size=2),
            "dependentSchemas": named,
            "minProperties": _small,
            "maxProperties": _small,
            "items": inner,
            "prefixItems": some,
            "contains": inner,
            "minContains": _small,
            "maxContains": _small,
            "minItems": _small,
            "maxItems": _small,
            "uniqueItems": st.booleans(),
            "minLength": _small,
            "maxLength": _small,
            "pattern": st.sampled_from(["^a", "b$", r"\d", "^[a-z]+$"]),
            "minimum": _small,
            "maximum": _small,
            "exclusiveMinimum": _small,
            "exclusiveMaximum": _small,
            "multipleOf": st.integers(1, 3),
            "anyOf": some,
            "oneOf": some,
            "allOf": some,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
        },
    ).flatmap(_some_of)


def _some_of(whole: JsonObject) -> st.SearchStrategy[JsonObject]:
    """A few of the keywords: all at once would refuse everything."""
    kept = st.sets(st.sampled_from(sorted(whole)), max_size=4) if whole else st.just(set[str]())
    return kept.map(lambda names: {name: whole[name] for name in sorted(names)})


SCHEMAS = st.recursive(st.booleans() | st.just({}), _keywords, max_leaves=6)
