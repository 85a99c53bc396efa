"""Signatures: a tool of another server in one line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.core.json import JsonObject
from trysquare.core.schema.describe import LONGEST, inputs_text, one_line, schema_text
from trysquare.core.tokens import count_tokens
from trysquare.gateway.listing import signature
from trysquare.gateway.models import ToolDefinition

_ISSUE: JsonObject = {
    "type": "object",
    "properties": {
        "labels": {"type": "array", "items": {"type": "string"}, "default": []},
        "owner": {"type": "string", "description": "Who owns the repository"},
        "repo": {"type": "string"},
        "title": {"type": "string"},
        "state": {"enum": ["open", "closed"], "default": "open"},
        "milestone": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        "files": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "mode": {"type": "integer"}},
                "required": ["path"],
            },
        },
        "author": {"$ref": "#/$defs/Person"},
    },
    "required": ["owner", "repo", "title"],
    "$defs": {"Person": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
}


def test_a_signature_tells_names_types_defaults_and_the_purpose_in_one_line() -> None:
    definition = ToolDefinition(
        name="create_issue", description="Open an issue in a repository. Needs write access.", input_schema=_ISSUE
    )
    assert signature(definition) == (
        'create_issue(owner, repo, title, labels?: str[] = [], state?: "open"|"closed" = "open", milestone?: int, '
        "files?: {path, mode?: int}[], author?: {name}) - Open an issue in a repository"
    )


def test_the_inputs_alone_are_the_part_in_brackets() -> None:
    definition = ToolDefinition(name="add", input_schema={"properties": {"a": {"type": "integer"}}, "required": ["a"]})
    assert inputs_text(definition.input_schema) == "a: int"
    assert signature(definition) == "add(a: int)"
    assert signature(ToolDefinition(name="now")) == "now()"


@pytest.mark.parametrize(
    ("schema", "inputs"),
    [
        ({"anyOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"properties": {"b": {}}}]},
         "{a: int}|{b?: any}"),
        ({"properties": {"id": {}, "name": {}}, "oneOf": [{"required": ["id"]}, {"required": ["name"]}]},
         "id?: any, name?: any, {id}|{name}"),
        ({"allOf": [{"$ref": "#/$defs/Page"}, {"properties": {"q": {"type": "string"}}, "required": ["q"]}],
          "$defs": {"Page": {"properties": {"page": {"type": "integer"}}}}}, "q, page?: int"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "[name]: int"),
        ({"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False}, "[name]: str"),
    ],
)  # fmt: skip
def test_alternatives_and_maps_have_a_signature_too(schema: JsonObject, inputs: str) -> None:
    assert inputs_text(schema) == inputs


def test_a_signature_costs_less_than_half_of_the_schema() -> None:
    definition = ToolDefinition(name="create_issue", input_schema=_ISSUE)
    assert count_tokens(signature(definition)) < 0.5 * count_tokens(str(_ISSUE))


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string"}, "str"),
        ({"type": ["integer", "null"]}, "int"),
        ({"type": ["integer", "string"]}, "int|str"),
        ({"type": "array"}, "list"),
        ({"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}, "(int|str)[]"),
        ({"const": 5}, "5"),
        ({"enum": list(range(20))}, "0|1|2|3|4|5|6|7|… 12 more"),
        ({"type": "object"}, "obj"),
        ({"$ref": "https://example.com/schema.json"}, "any"),
        ({}, "any"),
        (True, "any"),
        (None, "any"),
    ],
)
def test_a_type_is_abbreviated(schema: Any, text: str) -> None:
    assert schema_text(schema) == text


def test_only_the_visible_first_sentence_of_a_description_is_listed() -> None:
    assert one_line("\n  Read a\u200b file, e.g. a log.  More here.\nAnd here.") == "Read a file, e.g. a log"
    assert one_line("") == ""
    assert len(one_line("word " * 500)) <= 140


def test_a_schema_that_holds_itself_ends() -> None:
    tree: JsonObject = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}
    branch = "{left?: {left?: obj, right?: obj}, right?: {left?: obj, right?: obj}}"
    assert inputs_text(tree) == f"left?: {branch}, right?: {branch}"


def test_a_thousand_inputs_are_counted_and_not_listed() -> None:
    many: JsonObject = {"properties": {f"parameter_{index}": {"type": "string"} for index in range(1_000)}}
    told = inputs_text(many)
    assert len(told) <= LONGEST + 40
    assert told.endswith("more")


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "items", "enum", "anyOf", "$ref", "required", "default", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(_json, st.text(max_size=40), st.text(max_size=40))
def test_whatever_a_server_sends_has_a_signature_of_one_bounded_line(schema: Any, name: str, description: str) -> None:
    told = signature(ToolDefinition(name=name, description=description, input_schema=schema))
    assert len(told) <= LONGEST + 140
    assert "\n" not in told
