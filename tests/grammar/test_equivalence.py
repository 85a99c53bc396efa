"""Equivalence: GBNF, Lark and llguidance's own reading of the schema allow the same texts."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.grammar.bfcl import bfcl_cases
from tests.grammar.engines_at_hand import byte_engine, everyone, random_llama_cpp
from tests.grammar.generated import Case, as_json, cases
from tests.grammar.small_tokenizer import small_engine
from tests.grammar.value_text import value_text
from tests.support import size
from trysquare import ToolError
from trysquare.grammar import CallableTool, Unsupported, bounded, gbnf_text, grammar_of, read_gbnf, read_schema
from trysquare.grammar.certify import TextMatcher, certify, first_error, validator_of
from trysquare.grammar.schema.shapes import ShapeTree
from trysquare.grammar.text.expressions import json_text
from trysquare.models.local.runtime import Runtime


def readable(found: list[Case]) -> list[tuple[Case, ShapeTree]]:
    trees: list[tuple[Case, ShapeTree]] = []
    for case in found:
        try:
            trees.append((case, read_schema(case.schema)))
        except Unsupported:
            continue
    return trees


def as_tools(found: list[Case]) -> list[CallableTool]:
    named = [SimpleNamespace(name=f"tool {number}", schema=case.schema) for number, case in enumerate(found)]
    return cast(list[CallableTool], named)


def assert_same_for_all(case: Case, tree: ShapeTree) -> None:
    """Every instance that fits is accepted by everyone, and none that does not."""
    fits = everyone(tree)
    for value in case.instances:
        text = value_text(tree, value)
        verdicts = [accepts(json_text(value) if text is None else text) for accepts in fits]
        assert verdicts == [text is not None] * len(fits), as_json([case.schema, value, text])


def test_instances_of_generated_schemas_fit_for_everyone_or_for_nobody() -> None:
    found = readable(cases(seed=2, count=size(25, 2_000)))
    assert len(found) > 20
    for case, tree in found:
        assert_same_for_all(case, tree)


@pytest.mark.parametrize("engine", [byte_engine, small_engine], ids=["bytes", "pieces"])
def test_no_text_sampled_under_generated_schemas_is_invalid_or_cut(engine: Any) -> None:
    tools = as_tools(cases(seed=3, count=size(25, 2_000)))
    certificate = certify(tools, engine(), samples=size(75, 50_000), seed=4)
    assert certificate.samples >= 75
    assert certificate.disagreements == []
    assert certificate.cut == 0


def test_the_schemas_of_a_leaderboard_are_read_and_their_answers_fit_for_everyone() -> None:
    found = bfcl_cases()
    chosen = found[:: max(1, len(found) // size(30, len(found)))]
    trees = readable(chosen)
    assert len(trees) >= 0.99 * len(chosen)
    for case, tree in trees:
        assert_same_for_all(case, tree)


def test_no_text_sampled_under_the_schemas_of_a_leaderboard_is_invalid_or_cut() -> None:
    found = bfcl_cases()
    chosen = found[:: max(1, len(found) // size(20, len(found)))]
    certificate = certify(as_tools(chosen), byte_engine(), samples=size(60, 50_000), seed=5)
    assert certificate.disagreements == []
    assert certificate.cut == 0


def test_llama_cpp_reads_our_gbnf_and_writes_only_what_fits(tmp_path: Path) -> None:
    with closing(random_llama_cpp(tmp_path)) as llama_cpp:
        assert _finished_texts(llama_cpp, size(12, 500)) >= 12


_REPLACED = "\ufffd"


def _finished_texts(llama_cpp: Runtime, count: int) -> int:
    finished = 0
    for number, (case, tree) in enumerate(readable(cases(seed=6, count=count))):
        grammar = grammar_of(tree)
        matcher, validator = TextMatcher(read_gbnf(gbnf_text(grammar))), validator_of(case.schema)
        try:
            short = gbnf_text(bounded(grammar, 240))
        except ToolError:
            continue
        for gbnf in (short, gbnf_text(grammar)):
            body = {"prompt": "x", "grammar": gbnf, "seed": number, "n_predict": 240, "temperature": 1.0}
            choice = llama_cpp.complete({**body, "top_k": 0, "top_p": 1.0, "min_p": 0.0})["choices"][0]
            assert gbnf != short or choice["finish_reason"] == "stop"
            # llama.cpp takes overlong bytes for the character that they would stand for; as a text they are several.
            if choice["finish_reason"] == "stop" and _REPLACED not in choice["text"]:
                finished += 1
                assert first_error(validator, choice["text"]) is None, gbnf
                assert matcher.accepts(choice["text"]), gbnf
    return finished


def test_the_order_of_properties_is_that_of_the_schema() -> None:
    schema = {"type": "object", "properties": {"b": {}, "a": {}}, "required": ["a", "b"], "additionalProperties": False}
    for accepts in everyone(read_schema(schema)):
        assert accepts('{"b":1,"a":2}')
        assert not accepts('{"a":2,"b":1}')


@pytest.mark.parametrize(
    "text",
    [
        '"\n"',
        '"\x01"',
        '"\x7f"',
        '"\\u0041"',
        '"\\/"',
        '"\\ud800"',
        '"\\x41"',
        "'a'",
        '"a',
        ' "a"',
        '"a" ',
    ],
)
def test_other_ways_to_write_a_string_do_not_fit(text: str) -> None:
    for accepts in everyone(read_schema({"type": "string"})):
        assert not accepts(text)


@pytest.mark.parametrize("least", [None, -7, 0, 3])
@pytest.mark.parametrize("most", [None, -2, 0, 5])
def test_minus_zero_is_a_whole_number_for_everyone_or_for_nobody(least: int | None, most: int | None) -> None:
    bounds = {"minimum": least, "maximum": most}
    schema = {"type": "integer", **{name: bound for name, bound in bounds.items() if bound is not None}}
    if least is None or most is None or least <= most:
        assert len({accepts("-0") for accepts in everyone(read_schema(schema))}) == 1


@pytest.mark.parametrize("text", ['""', '"é😀"', '"\\n\\"\\\\"', '"\\u0001\\u001F\\u007f\\u000A"', '"/"'])
def test_every_string_can_be_written(text: str) -> None:
    assert json.loads(text) is not None
    for accepts in everyone(read_schema({"type": "string"})):
        assert accepts(text)
