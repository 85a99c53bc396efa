from __future__ import annotations

import numpy
import pytest

from tests.grammar.small_tokenizer import small_engine, take_all
from tests.grammar.tools_for_calls import TOOLS
from trysquare import ErrorCode, ToolError
from trysquare.grammar import CallMatcher
from trysquare.grammar.calls.call_set import CallSet
from trysquare.grammar.filters import Banned, Biased, CallFilter, FilterChain

SIZE = small_engine().vocabulary_size


def flat() -> numpy.typing.NDArray[numpy.float32]:
    return numpy.zeros(SIZE, dtype=numpy.float32)


def named(*names: str) -> CallMatcher:
    matcher = CallMatcher(CallSet(tools={name: TOOLS[name] for name in names}), small_engine())
    take_all(matcher, list(b'{"name":"'))
    return matcher


def test_a_chain_leaves_only_what_all_filters_allow():
    matcher = CallMatcher(CallSet(tools={name: TOOLS[name] for name in ("git", "now")}), small_engine())
    chain = FilterChain([CallFilter(matcher), Banned([b'"g'], small_engine())])
    for byte in b'{"name":"':
        chain.take(byte)
    logits = flat()
    chain.apply(logits)
    assert {small_engine().bytes_of([token]) for token in numpy.flatnonzero(numpy.isfinite(logits)).tolist()} == {b"n"}


def test_a_bias_makes_a_token_likelier_and_minus_infinity_forbids_it():
    chain = FilterChain([CallFilter(named("git", "now")), Biased({ord("n"): 3.0, ord("g"): -numpy.inf})])
    logits = flat()
    chain.apply(logits)
    assert (logits[ord("n")], logits[ord("g")]) == (3.0, -numpy.inf)
    with pytest.raises(ToolError, match="forbidden by a bias"):
        chain.take(ord("g"))


def test_every_token_can_be_forbidden_by_its_bias():
    for token in range(SIZE):
        logits = flat()
        FilterChain([Biased({token: -numpy.inf})]).apply(logits)
        assert numpy.flatnonzero(~numpy.isfinite(logits)).tolist() == [token]


def test_filters_that_contradict_one_another_refuse_instead_of_allowing_something():
    chain = FilterChain([CallFilter(named("git", "now")), Biased(dict.fromkeys(b"gn", -numpy.inf))])
    with pytest.raises(ToolError, match="contradict") as refused:
        chain.apply(flat())
    assert refused.value.code is ErrorCode.GRAMMAR_REFUSED


def test_a_token_that_one_filter_refuses_is_taken_by_none():
    matcher = named("git", "now")
    chain = FilterChain([CallFilter(matcher), Biased({ord("g"): -numpy.inf})])
    with pytest.raises(ToolError):
        chain.take(ord("g"))
    assert matcher.text == b'{"name":"'
