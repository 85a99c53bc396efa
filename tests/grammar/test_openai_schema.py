"""OpenAI schema: the strict form, and what it cannot say."""

from __future__ import annotations

from typing import Any

import pytest
from inline_snapshot import snapshot
from jsonschema import Draft202012Validator

from tests.grammar.generated import cases
from trysquare.grammar import CallGrammar, Unsupported, openai_format, read_schema, strict_schema
from trysquare.grammar.calls.grammar import without_nulls
from trysquare.models import ToolSpec

SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "maxLength": 9},
        "kind": {"enum": ["file", "line"]},
        "next": {"anyOf": [{"type": "null"}, {"type": "integer"}]},
    },
    "required": ["query"],
    "additionalProperties": False,
}


def test_every_property_is_required_and_what_may_be_left_out_may_be_null() -> None:
    assert strict_schema(read_schema(SEARCH)) == snapshot(
        {
            "type": "object",
            "properties": {
                "query": {"type": "string", "pattern": "^(?:[\\x00-\U0010ffff]{1,9})$"},
                "kind": {"enum": ["file", "line", None]},
                "next": {"anyOf": [{"type": "null"}, {"type": "integer"}]},
            },
            "required": ["query", "kind", "next"],
            "additionalProperties": False,
        }
    )


def test_calls_are_a_property_of_an_object_because_a_union_may_not_be_the_root() -> None:
    offer = ToolSpec(name="search", description="", schema=SEARCH, flat=SEARCH)
    for parallel, key in ((False, "call"), (True, "calls")):
        form = openai_format(CallGrammar([offer], parallel=parallel))
        assert form["json_schema"]["strict"] is True
        assert form["json_schema"]["schema"]["required"] == [key]


def test_nulls_that_stand_for_what_was_left_out_are_taken_out() -> None:
    tree = read_schema(SEARCH)
    assert without_nulls(tree, {"query": "x", "kind": None, "next": None}) == {"query": "x", "next": None}


@pytest.mark.parametrize(
    ("schema", "keyword", "pointer"),
    [
        ({"type": "object"}, "additionalProperties", "/"),
        ({"properties": {"a": {}}}, "schema", "/properties/a"),
        ({"properties": {"a": {"type": "array", "prefixItems": [{}], "items": False}}}, "prefixItems", "/properties/a"),
        ({"properties": {"a": {"const": [1]}}}, "enum", "/properties/a"),
        ({"properties": {"a": {"enum": list(range(1_001))}}}, "enum", "/properties/a"),
        ({"properties": {"a": {"const": 1}, "b": {"const": 2}}, "minProperties": 1}, "minProperties", "/"),
    ],
)
def test_what_the_strict_form_does_not_know_is_refused(schema: dict[str, Any], keyword: str, pointer: str) -> None:
    closed = {"type": "object", "additionalProperties": False, **schema} if "properties" in schema else schema
    with pytest.raises(Unsupported) as refusal:
        strict_schema(read_schema(closed))
    assert refusal.value.fields == {"keyword": keyword, "pointer": pointer}


def _with_nulls(schema: Any, value: Any) -> Any:
    """The value as the strict form has it: what was left out of an object is null."""
    if not isinstance(value, dict) or schema.get("type") != "object":
        return value
    names = schema["properties"]
    return {name: _with_nulls(names[name], value[name]) if name in value else None for name in names}


def test_strict_schemas_of_generated_ones_allow_the_same_values() -> None:
    checked = 0
    for case in cases(seed=12, count=150):
        try:
            tree = read_schema(case.schema)
            strict = strict_schema(tree)
        except Unsupported:
            continue
        validator = Draft202012Validator(strict)
        for value in filter(Draft202012Validator(case.schema).is_valid, case.instances):
            written = _with_nulls(strict, value)
            if validator.is_valid(written):
                checked += 1
                assert without_nulls(tree, written) == value
    assert checked > 20
