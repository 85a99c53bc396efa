"""Bounding: grammars whose texts are no longer than a number of bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.grammar.engines_at_hand import byte_engine
from tests.grammar.generated import as_json, cases
from tests.support import size
from trysquare import ErrorCode, ToolError
from trysquare.grammar import Unsupported, bounded, gbnf_text, grammar_of, read_gbnf, read_schema, shape_rules
from trysquare.grammar.certify import RandomModel, TextMatcher, first_error, validator_of

FREE = {"type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}}, "required": ["text"],
        "additionalProperties": False}  # fmt: skip


def matcher_for(schema: dict[str, Any], room: int) -> TextMatcher:
    return TextMatcher(read_gbnf(gbnf_text(bounded(grammar_of(read_schema(schema)), room))))


def longest(matcher: TextMatcher, letter: str) -> int:
    return max(n for n in range(40, 120) if matcher.accepts(json.dumps({"text": letter * n}, separators=(",", ":"))))


def test_a_string_gets_the_rest_of_the_budget_counted_in_bytes() -> None:
    matcher = matcher_for({**FREE, "properties": {"text": {"type": "string"}}}, 111)
    assert longest(matcher, "a") == 100
    assert longest(matcher, "\n") == 50
    assert matcher.accepts('{"text":"' + "é" * 50 + '"}')
    assert not matcher.accepts('{"text":"' + "é" * 51 + '"}')
    assert matcher.accepts('{"text":"' + "名" * 25 + '"}')
    assert not matcher.accepts('{"text":"' + "名" * 26 + '"}')


def test_what_is_not_long_by_itself_stays_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "additionalProperties": False}
    grammar = grammar_of(read_schema(schema))
    assert bounded(grammar, 100) == grammar


def test_an_optional_property_that_does_not_fit_is_left_out() -> None:
    matcher = matcher_for(FREE, 20)
    assert matcher.accepts('{"text":"abcdefghi"}')
    assert not matcher.accepts('{"path":"","text":""}')


def test_where_not_even_the_shortest_text_fits_it_is_refused() -> None:
    with pytest.raises(ToolError, match="11 bytes") as refusal:
        matcher_for(FREE, 10)
    assert refusal.value.code is ErrorCode.GRAMMAR_REFUSED


def test_a_shape_that_contains_itself_ends_in_time() -> None:
    node = {"type": "object", "properties": {"in": {"type": "array", "items": {"$ref": "#"}}}, "required": ["in"]}
    matcher = matcher_for({**node, "additionalProperties": False}, 90)
    assert matcher.accepts('{"in":[{"in":[]},{"in":[]}]}')
    assert not matcher.accepts('{"in":[' * 10 + "]}" * 10)


@given(st.integers(0, 300), st.integers(2, 300))
@settings(max_examples=30)
def test_exactly_the_strings_that_fit_into_the_budget_are_allowed(length: int, room: int) -> None:
    matcher = matcher_for({"type": "string"}, room)
    assert matcher.accepts(f'"{"a" * length}"') is (length + 2 <= room)


def test_no_text_of_a_bounded_grammar_is_longer_than_its_limit_and_all_are_valid() -> None:
    import numpy

    model = RandomModel(byte_engine(), numpy.random.default_rng(9))
    checked = 0
    for number, case in enumerate(cases(seed=9, count=size(30, 1_000))):
        room = (60, 150, 400)[number % 3]
        try:
            tree = read_schema(case.schema)
            lark = "%llguidance {}\n" + shape_rules(tree.root, tree.named, root="start", space=room)
        except Unsupported:
            continue
        except ToolError as refusal:
            assert "the shortest response" in refusal.message.lower()  # noqa: PT017
            continue
        sample = model.write(lark, most_tokens=room, patient=True)
        assert not sample.cut, lark
        assert len(sample.text.encode()) <= room
        assert first_error(validator_of(case.schema), sample.text) is None, as_json([case.schema, sample.text])
        checked += 1
    assert checked > 15
