"""Schema reading: a JSON Schema as shapes; what no grammar can hold is refused by name and place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker

from tests.grammar.generated import as_json, cases
from tests.support import size
from trysquare import ErrorCode
from trysquare.grammar import Unsupported, read_gbnf, read_schema, schema_to_gbnf
from trysquare.grammar.certify import TextMatcher
from trysquare.grammar.schema.reader import BY_TYPE, REFUSED, TYPES
from trysquare.grammar.schema.shapes import admits

ITEM = {"type": "array", "items": {"type": "integer"}}
WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"not": {"type": "string"}}, "not", "/not"),
    ({"properties": {"a": {"if": {}, "then": {}}}}, "if", "/properties/a/if"),
    ({"properties": {"a/b": {"contains": {}}}}, "contains", "/properties/a~1b/contains"),
    ({**ITEM, "uniqueItems": True}, "uniqueItems", "/uniqueItems"),
    ({"type": "number", "multipleOf": 0.1}, "multipleOf", "/multipleOf"),
    ({"type": "integer", "multipleOf": 7}, "multipleOf", "/multipleOf"),
    ({"type": "string", "pattern": "(?=a)"}, "pattern", "/pattern"),
    ({"type": "string", "pattern": "^(ab|c)+$", "maxLength": 3}, "pattern", "/pattern"),
    ({"type": "string", "pattern": "a", "maxLength": 999}, "pattern", "/pattern"),
    ({"allOf": [{"type": "string", "pattern": "^(ab|c)+$"}, {"maxLength": 3}]}, "allOf", "/"),
    ({"allOf": [{"type": "integer", "multipleOf": 2}, {"minimum": 3}]}, "allOf", "/"),
    ({"type": "string", "format": "ipv6"}, "format", "/format"),
    ({"type": "dict"}, "type", "/type"),
    ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "oneOf", "/oneOf"),
    ({"allOf": [{"pattern": "a"}, {"pattern": "b"}]}, "allOf", "/"),
    ({"$ref": "other.json"}, "$ref", "/$ref"),
    ({"$ref": "#/$defs/missing"}, "$ref", "/$ref"),
    ({"anyOf": [{"$ref": "#"}]}, "$ref", "/"),
    ({"patternProperties": {"a": {}}, "type": "object"}, "patternProperties", "/patternProperties"),
    ({"propertyNames": {"pattern": "^a"}, "type": "object"}, "propertyNames", "/propertyNames"),
    ({"dependentSchemas": {"a": {}}}, "dependentSchemas", "/dependentSchemas"),
    ({"dependencies": {"a": {"required": ["b"]}}}, "dependencies", "/dependencies/a"),
    ({"unevaluatedProperties": False}, "unevaluatedProperties", "/unevaluatedProperties"),
    ({"type": "object", "minProperties": 2}, "minProperties", "/minProperties"),
    ({"type": "string", "maxLength": -1}, "maxLength", "/maxLength"),
    ({"enum": "a"}, "enum", "/enum"),
    ({"const": "\ud800"}, "const", "/const"),
    ({"const": [float("inf")]}, "const", "/const"),
    ({"properties": []}, "properties", "/properties"),
    ({"required": "a"}, "required", "/required"),
    ({"items": 3}, "schema", "/items"),
    ({"enum": []}, "schema", "/"),
    ({"type": "string", "enum": [1, 2]}, "schema", "/"),
    ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "schema", "/"),
]


@pytest.mark.parametrize(("schema", "keyword", "pointer"), WRONG, ids=lambda part: as_json(part)[:40])
def test_what_cannot_be_expressed_is_refused_with_its_keyword_and_pointer(
    schema: dict[str, Any], keyword: str, pointer: str
) -> None:
    with pytest.raises(Unsupported) as refusal:
        read_schema(schema)
    assert refusal.value.code is ErrorCode.GRAMMAR_UNSUPPORTED
    assert refusal.value.fields == {"keyword": keyword, "pointer": pointer}
    assert f"`{keyword}` at `{pointer}`" in refusal.value.message


READ: list[tuple[Any, list[Any], list[Any]]] = [
    (True, [1, None, {"a": []}], []),
    ({}, [1, None, "x"], []),
    ({"type": ["string", "null"]}, ["", None], [0, False]),
    ({"type": "integer"}, [1, 1.0, -3], [1.5, True, "1"]),
    ({"type": "integer", "minimum": 1, "exclusiveMaximum": 4.5}, [1, 4], [0, 5]),
    ({"minimum": 3}, [3, "x", None, {}], [2]),
    ({"minimum": 1, "exclusiveMinimum": True}, [2, "x"], [1]),
    ({"type": "integer", "multipleOf": 0.5}, [1, 2], [1.5]),
    ({"type": "integer", "minimum": 1, "maximum": 10, "multipleOf": 3}, [3, 9], [1, 12, 0]),
    ({"type": "integer", "format": "int32"}, [2**31 - 1], [2**31]),
    ({"enum": [1, "a", None, [1.0]]}, [1.0, "a", None, [1]], [True, "b"]),
    ({"const": {"a": 1, "b": 2}}, [{"b": 2, "a": 1.0}], [{"a": 1}]),
    ({"type": "string", "enum": ["a", 1]}, ["a"], [1]),
    ({"type": "string", "minLength": 2, "maxLength": 2}, ["ab", "😀é"], ["a", "abc"]),
    ({"type": "string", "pattern": "^[a-z]{2}$", "maxLength": 5}, ["ab"], ["abc"]),
    ({"type": "string", "pattern": "^[a-z][a-z0-9]*$", "maxLength": 3}, ["a", "ab1"], ["", "abcd", "1"]),
    ({"type": "string", "pattern": "^a*-b+$", "minLength": 3, "maxLength": 4}, ["a-b", "-bb", "aa-b"], ["-b", "aa-bb"]),
    ({"type": "string", "pattern": "x", "minLength": 2, "maxLength": 3}, ["ax", "xbb"], ["x", "aaax", "ab"]),
    ({"allOf": [{"type": "string", "pattern": "^(a|bcd)$"}, {"maxLength": 2}]}, ["a"], ["bcd"]),
    ({"allOf": [{"type": "integer", "multipleOf": 4}, {"minimum": 3, "maximum": 9}]}, [4, 8], [0, 3, 12]),
    ({"prefixItems": [{"type": "integer"}], "items": False}, [[], [1], "x"], [[1, 2], ["a"]]),
    ({"type": "array", "items": [{"type": "integer"}], "additionalItems": False}, [[1]], [[1, 2]]),
    ({"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True}, [[], ["b", "a"]], [["a", "a"]]),
    ({**ITEM, "uniqueItems": True, "maxItems": 1}, [[], [1]], [[1, 1]]),
    ({"required": ["a"]}, [{"a": 1}, 3], [{}]),
    ({"type": "object", "additionalProperties": False, "required": ["a"], "properties": {"a": True}}, [{"a": 1}], [{}]),
    (
        {"type": "object", "patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": False},
        [{}, {"x-a": 1}],
        [{"x-a": "1"}, {"a": 1}],
    ),
    ({"type": "object", "maxProperties": 1}, [{}, {"a": 1}], [{"a": 1, "b": 2}]),
    (
        {"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": False, "minProperties": 2},
        [{"a": 1, "b": 2}],
        [{"a": 1}],
    ),
    ({"type": "object", "dependentRequired": {"a": ["b"]}}, [{}, {"b": 1}, {"a": 1, "b": 1}], [{"a": 1}]),
    ({"type": "object", "dependencies": {"a": ["b"]}}, [{"c": 1}], [{"a": 1}]),
    ({"allOf": [{"type": "integer"}, {"minimum": 3}]}, [3], [2, "x"]),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}], "minimum": 3}, [3, "x"], [2, None]),
    ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, [1, "x"], [None]),
    (
        {"oneOf": [{"properties": {"k": {"const": k}}, "required": ["k"], "type": "object"} for k in ("a", "b")]},
        [{"k": "a"}, {"k": "b", "z": 1}],
        [{}, {"k": "c"}],
    ),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}, [None], [1]),
    ({"$ref": "#/$defs/a", "minimum": 2, "$defs": {"a": {"type": "integer"}}}, [2], [1]),
    ({"$ref": "#/definitions/a%25~1b", "definitions": {"a%/b": {"type": "null"}}}, [None], [1]),
    (
        {"type": "object", "properties": {"n": {"$ref": "#"}}, "additionalProperties": False},
        [{}, {"n": {"n": {}}}],
        [{"n": 1}],
    ),
    ({"not": False, "type": "null"}, [None], [1]),
    ({"type": "string", "description": "d", "x-anything": 1, "default": 3, "deprecated": True}, ["a"], [1]),
]


@pytest.mark.parametrize(("schema", "fitting", "others"), READ, ids=lambda part: as_json(part)[:40])
def test_a_schema_means_what_its_validator_says(schema: Any, fitting: list[Any], others: list[Any]) -> None:
    tree = read_schema(schema)
    assert [admits(tree.root, value, tree.named) for value in fitting] == [True] * len(fitting)
    assert [admits(tree.root, value, tree.named) for value in others] == [False] * len(others)


KEYWORDS = [
    *sorted({keyword for keywords in BY_TYPE.values() for keyword in keywords} | REFUSED.keys()),
    *("type", "enum", "const", "$ref", "allOf", "anyOf", "oneOf", "$defs", "title"),
]
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | st.sampled_from([*TYPES, "^a+$", "#", "#/$defs/a"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*KEYWORDS, "a", "b"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(KEYWORDS), JUNK, max_size=5))
@settings(max_examples=size(300, 10_000), deadline=None)
def test_whatever_is_given_as_a_schema_is_read_or_refused(schema: dict[str, Any]) -> None:
    try:
        gbnf = schema_to_gbnf(schema)
    except Unsupported as refusal:
        assert refusal.pointer.startswith("/") or not refusal.pointer  # noqa: PT017
        return
    TextMatcher(read_gbnf(gbnf))


def test_a_schema_that_is_too_deep_or_too_wide_is_refused() -> None:
    deep: dict[str, Any] = {"type": "null"}
    for _ in range(400):
        deep = {"type": "array", "items": deep}
    wide = [{"anyOf": [{"type": "object", "required": [f"{k}{n}"]} for n in range(60)]} for k in "ab"]
    long = {"type": "object", "properties": {"x" * 3_000: {}}}
    for schema in (deep, {"allOf": wide}, long):
        with pytest.raises(Unsupported):
            read_schema(schema)


def test_generated_schemas_mean_what_an_independent_validator_says() -> None:
    found = cases(seed=11, count=size(120, 2_000))
    refusals: list[str] = []
    for case in found:
        validator = Draft202012Validator(case.schema, format_checker=FormatChecker())
        try:
            tree = read_schema(case.schema)
        except Unsupported as refusal:
            valid = any(map(validator.is_valid, case.instances))
            refusals.append(f"{refusal.why} {valid}")
            continue
        for value in case.instances:
            assert admits(tree.root, value, tree.named) is validator.is_valid(value), as_json([case.schema, value])
    assert "no value fits it True" not in refusals
    assert len(refusals) < len(found) / 10
