from __future__ import annotations

import math

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.grammar.small_tokenizer import small_engine
from tests.grammar.tools_for_calls import TOOLS
from tests.support import size
from trysquare.grammar.call_set import CallSet
from trysquare.grammar.matcher import CallMatcher
from trysquare.grammar.tool_odds import tool_odds

SIZE = small_engine().vocabulary_size


def at_the_name(tools: list[str]) -> CallMatcher:
    matcher = CallMatcher(CallSet(tools={name: TOOLS[name] for name in tools}), small_engine())
    matcher.fast_forward()
    return matcher


def seeded(seed: int):
    def ask(tokens: tuple[int, ...]) -> numpy.typing.NDArray[numpy.float32]:
        return numpy.random.default_rng([seed, *tokens]).normal(0, 3, SIZE).astype(numpy.float32)

    return ask


def test_the_tokens_that_lead_to_a_name_are_summed():
    logits = numpy.full(SIZE, -5.0, dtype=numpy.float32)
    logits[ord("g")] = math.log(3)
    logits[ord("n")] = math.log(1)
    odds = tool_odds(at_the_name(["git", "now"]), lambda _: logits)
    assert odds == {"git": pytest.approx(0.75), "now": pytest.approx(0.25)}


def test_what_may_not_come_has_no_share():
    logits = numpy.zeros(SIZE, dtype=numpy.float32)
    logits[ord("x")] = 50.0
    assert tool_odds(at_the_name(["git", "now"]), lambda _: logits) == {"git": 0.5, "now": 0.5}


def test_names_that_begin_alike_are_told_apart_by_asking_again():
    asked: list[bytes] = []
    matcher = at_the_name(["read", "read_file", "now"])

    def ask(tokens: tuple[int, ...]) -> numpy.typing.NDArray[numpy.float32]:
        asked.append(b"".join(map(matcher.bytes_of, tokens)))
        logits = numpy.full(SIZE, -30.0, dtype=numpy.float32)
        logits[small_engine().tokens_of(b"read")[0]] = 0.0
        logits[small_engine().tokens_of(b"_file")[0]] = 2.0
        logits[ord('"')] = 0.0
        return logits

    odds = tool_odds(matcher, ask)
    assert asked == [b'{"name":"', b'{"name":"read']
    assert odds["read_file"] == pytest.approx(math.exp(2) / (1 + math.exp(2)), abs=1e-6)
    assert matcher.text == b'{"name":"'


def test_a_small_share_is_split_without_asking_again():
    def ask(tokens: tuple[int, ...]) -> numpy.typing.NDArray[numpy.float32]:
        assert len(tokens) == 3
        logits = numpy.zeros(SIZE, dtype=numpy.float32)
        logits[ord("n")] = 20.0
        return logits

    odds = tool_odds(at_the_name(["read", "read_file", "now"]), ask)
    assert odds["read"] == odds["read_file"] < 0.001


def test_a_single_tool_is_certain_and_nobody_is_asked():
    assert tool_odds(at_the_name(["search"]), seeded(1)) == {"search": 1.0}


@given(seed=st.integers(0, 10_000), least=st.sampled_from([0.0, 0.01, 0.3]))
@settings(max_examples=size(15, 200), deadline=None)
def test_the_odds_are_shares_of_one_also_where_little_ones_are_split(seed: int, least: float):
    matcher, ask = at_the_name(["read", "read_file", "git", "now"]), seeded(seed)
    odds = tool_odds(matcher, ask, least_share=least)
    assert sum(odds.values()) == pytest.approx(1.0)
    assert all(0 <= share <= 1 for share in odds.values())
