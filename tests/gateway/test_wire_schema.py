from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trysquare.gateway.listing import wire_schema

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


def test_a_plain_schema_is_shown_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    assert wire_schema(schema) == schema


def test_alternatives_at_the_top_are_merged_into_one_object() -> None:
    schema = {"oneOf": [{"properties": {"id": {"type": "string"}}}, {"properties": {"url": {"type": "string"}}}]}
    assert wire_schema(schema) == {
        "type": "object",
        "properties": {"id": {"type": "string"}, "url": {"type": "string"}},
    }


def test_hidden_text_in_a_schema_is_not_shown() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "description": "a\u202eb\u200bc"}}}
    assert wire_schema(schema)["properties"]["a"]["description"] == "abc"


@given(ANYTHING | st.dictionaries(st.sampled_from(["type", "properties", "anyOf", "allOf", "not"]), ANYTHING))
def test_whatever_a_server_calls_a_schema_becomes_an_object_without_alternatives(schema: Any) -> None:
    shown = wire_schema(schema)
    assert shown["type"] == "object"
    assert isinstance(shown["properties"], dict)
    assert not shown.keys() & {"anyOf", "oneOf", "allOf"}
