"""Checking: the same verdict as the reference library where that gives one, and an end to every hostile schema."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from tests.gateway.schema_strategies import SCHEMAS, VALUES
from tests.support import size
from trysquare.core.schema.validator import compile_schema, text_test


@settings(max_examples=size(300, 2_000))
@given(SCHEMAS, VALUES)
def test_the_verdict_is_that_of_the_reference_library(schema: Any, value: Any) -> None:
    compiled = compile_schema(schema)
    assert compiled.fits(value) == Draft202012Validator(schema).is_valid(value)
    assert compiled.fits(value) == (compiled.problems(value) == [])


def test_a_schema_that_holds_itself_is_checked_to_the_bottom_of_the_value() -> None:
    tree = compile_schema({"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False})
    assert tree.fits({"next": {"next": {}}})
    assert not tree.fits({"next": {"next": {"other": 1}}})
    assert [problem.path for problem in tree.problems({"next": {"next": 5}})] == [("next", "next")]


def test_the_option_that_was_meant_is_the_one_that_is_told() -> None:
    shapes = compile_schema(
        {
            "oneOf": [
                {
                    "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}},
                    "required": ["kind", "radius"],
                },
                {"properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]},
            ]
        }
    )
    assert [problem.path for problem in shapes.problems({"kind": "square"})] == [("side",)]


def test_a_reference_of_an_older_draft_stands_alone() -> None:
    schema: dict[str, Any] = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"$ref": "#/definitions/text", "minLength": 5}},
        "definitions": {"text": {"type": "string"}},
    }
    assert compile_schema(schema).fits({"a": "x"})
    assert not compile_schema({**schema, "$schema": "https://json-schema.org/draft/2020-12/schema"}).fits({"a": "x"})


def test_lists_by_position_and_exclusive_bounds_of_older_drafts_are_known() -> None:
    assert not compile_schema({"items": [{"type": "string"}], "additionalItems": False}).fits(["a", "b"])
    assert not compile_schema({"items": [{"type": "string"}]}).fits([5])
    assert not compile_schema({"minimum": 3, "exclusiveMinimum": True}).fits(3)
    assert not compile_schema({"maximum": 3, "exclusiveMaximum": True}).fits(3)
    assert not compile_schema({"dependencies": {"a": ["b"]}}).fits({"a": 1})
    assert not compile_schema({"dependencies": {"a": {"required": ["b"]}}}).fits({"a": 1})


def _doubling(depth: int) -> dict[str, Any]:
    """Each step asks the next one twice: two to the power of the depth, were it done."""
    steps: dict[str, Any] = {
        f"step{index}": {"anyOf": [{"$ref": f"#/$defs/step{index + 1}"}] * 2} for index in range(depth)
    }
    return {"$ref": "#/$defs/step0", "$defs": {**steps, f"step{depth}": False}}


def _nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    return schema


_HOSTILE: dict[str, Any] = {
    "doubles sixty times": _doubling(60),
    "is all of itself": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
    "refers to itself": {"$ref": "#"},
    "is not itself": {"not": {"$ref": "#"}},
    "lies elsewhere": {"$ref": "https://example.com/schema.json"},
    "lies in a file": {"$ref": "file:///etc/passwd"},
    "lies nowhere": {"$ref": "#/nowhere"},
    "refuses what is not known": {"$dynamicRef": "#x", "not": {"$dynamicRef": "#x"}},
    "refuses a pattern that is not known": {"not": {"pattern": "(?=x)"}},
    "is very deep": _nested(5_000),
    "is very wide": {"properties": {f"p{index}": {} for index in range(50_000)}},
    "is a number": 5,
    "is a text": "string",
    "is a list": ["object"],
    "is nothing": None,
    "has keywords of wrong types": {
        "properties": 5,
        "required": "a",
        "type": 12,
        "enum": {},
        "items": 3,
        "anyOf": {},
        "minimum": "x",
        "multipleOf": 0,
        "minLength": None,
        "uniqueItems": "yes",
        "pattern": 5,
    },
    "has broken parts": {
        "properties": {"a": 5},
        "required": [1, None],
        "type": ["what"],
        "patternProperties": {"(": False},
        "additionalProperties": False,
    },
}


@pytest.mark.parametrize("name", _HOSTILE)
def test_what_cannot_be_told_passes_and_the_check_ends(name: str) -> None:
    compiled = compile_schema(_HOSTILE[name])
    assert compiled.fits({"a": "x"})
    assert compiled.problems({"a": "x"}) == []


def test_a_pattern_that_would_hang_is_matched_in_linear_time() -> None:
    bomb = compile_schema({"pattern": "^(a+)+$"})
    assert not bomb.fits("a" * 5_000 + "b")
    assert bomb.fits("a" * 5_000)


@pytest.mark.parametrize("pattern", ["(?=a)b", "(", "a" * 600, "(a{900}){900}", "[a&&b]", r"(a)\1"])
def test_a_pattern_that_cannot_be_judged_safely_is_not_judged(pattern: str) -> None:
    assert text_test(pattern) is None
    assert compile_schema({"pattern": pattern}).fits("whatever")


def test_half_a_character_and_a_very_long_text_pass_a_pattern() -> None:
    compiled = compile_schema({"pattern": "^a$"})
    assert compiled.fits("\ud800")
    assert compiled.fits("b" * 20_000)
    assert not compiled.fits("b")


def test_a_value_without_a_bottom_passes() -> None:
    deep: Any = "x"
    for _ in range(5_000):
        deep = {"a": deep}
    assert compile_schema({"properties": {"a": {"$ref": "#"}}, "additionalProperties": False}).fits(deep)
    assert compile_schema({"enum": [1]}).problems(deep) == []
