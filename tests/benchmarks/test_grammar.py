"""Grammars are measured beside the engines; every call that is followed has to be allowed. No test asserts a time."""

from __future__ import annotations

from importlib.util import find_spec

import jsonschema

from benchmarks.grammar import (
    NEEDED,
    ONE_TOOL,
    OURS,
    UNION,
    XGRAMMAR,
    GrammarResults,
    grammar_tables,
    grammar_targets,
    measure_grammar,
)
from benchmarks.grammar_tools import bench_tools
from tests.support import missing_component


def test_everything_is_measured_and_every_call_is_allowed():
    if not all(map(find_spec, NEEDED)):
        missing_component("what grammars are measured with", f"pip install {' '.join(NEEDED)}")
    results = GrammarResults()
    measure_grammar(results, quick=True)

    ready, masks = grammar_tables(results)
    assert [row[0] for row in ready.rows][-1] == UNION
    assert {row[0] for row in masks.rows} == {OURS, ONE_TOOL}
    assert len(results.masks[OURS, 20]) == len(results.masks[ONE_TOOL, 20]) > 100


def test_the_calls_that_are_followed_are_valid():
    tools = bench_tools(100)
    assert len({tool.name for tool in tools}) == 100
    for tool in tools:
        jsonschema.Draft202012Validator(tool.schema).validate(tool.arguments)


def test_a_set_up_that_is_not_fast_enough_misses_its_target():
    ready = {(OURS, 1000): 9.0, (UNION, 1000): 190.0, (XGRAMMAR, 1000): 1100.0}
    masks = {(OURS, 75): [10.0, 16.0, 20.0], (ONE_TOOL, 75): [1.0, 10.0, 11.0]}
    results = GrammarResults(ready=ready, arguments={1000: 1.0}, masks=masks)

    assert [target.is_met for target in grammar_targets(results)] == [False, True, False]
