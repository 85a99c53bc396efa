from __future__ import annotations

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.grammar.small_tokenizer import small_engine
from tests.grammar.tools_for_calls import TOOLS, check_answer, closed
from tests.support import size
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.grammar.banned import Banned
from trysquare.grammar.call_set import CallSet
from trysquare.grammar.generation import closing_tokens, likeliest, write_answer
from trysquare.grammar.matcher import CallMatcher, take_all

SIZE = small_engine().vocabulary_size


def talkative(tokens: tuple[int, ...]) -> numpy.typing.NDArray[numpy.float32]:
    """A model that never wants to end anything."""
    logits = numpy.zeros(SIZE, dtype=numpy.float32)
    logits[[ord("a"), ord(","), ord("1")]] = (9.0, 8.0, 7.0)
    return logits


def seeded(seed: int):
    def ask(tokens: tuple[int, ...]) -> numpy.typing.NDArray[numpy.float32]:
        return numpy.random.default_rng([seed, *tokens]).normal(0, 3, SIZE).astype(numpy.float32)

    return ask


@given(seed=st.integers(0, 10_000), most=st.integers(30, 400), parallel=st.booleans())
@settings(max_examples=size(40, 400), deadline=None)
def test_an_answer_is_never_cut_however_few_tokens_it_may_have(seed: int, most: int, parallel: bool):
    calls = CallSet(tools=TOOLS, parallel=parallel)
    written = write_answer(CallMatcher(calls, small_engine()), seeded(seed), likeliest, most_tokens=most)
    assert len(written.tokens) <= most
    check_answer(written.text, calls)


def test_a_model_that_never_ends_is_brought_to_an_end():
    calls = CallSet(
        tools={"note": closed(text={"type": "string"}, more={"type": "array", "items": {"type": "string"}})}
    )
    written = write_answer(CallMatcher(calls, small_engine()), talkative, likeliest, most_tokens=100)
    assert len(written.tokens) <= 100
    [call] = check_answer(written.text, calls)
    assert len(call["args"]["text"]) > 40


@given(seed=st.integers(0, 10_000))
@settings(max_examples=size(15, 300), deadline=None)
def test_without_fast_forward_the_answer_is_as_valid_and_nothing_counts_as_forced(seed: int):
    calls = CallSet(tools=TOOLS)
    matcher = CallMatcher(calls, small_engine())
    written = write_answer(matcher, seeded(seed), likeliest, most_tokens=2000, fast_forward=False)
    check_answer(written.text, calls)


def test_forced_tokens_cost_no_question_to_the_model():
    asked: list[int] = []

    def ask(tokens: tuple[int, ...]) -> numpy.typing.NDArray[numpy.float32]:
        asked.append(len(tokens))
        logits = numpy.zeros(SIZE, dtype=numpy.float32)
        logits[ord("n")] = 9.0
        return logits

    written = write_answer(CallMatcher(CallSet(tools=TOOLS), small_engine()), ask, likeliest, most_tokens=500)
    assert written.text == '{"name":"now","args":{}}'
    assert (len(asked), written.forced) == (1, len(written.tokens) - 1)


def test_a_limit_into_which_no_call_fits_is_refused_before_anything_is_written():
    with pytest.raises(ToolError, match="No call fits into 5 tokens") as refused:
        write_answer(CallMatcher(CallSet(tools=TOOLS), small_engine()), talkative, likeliest, most_tokens=5)
    assert refused.value.code is ErrorCode.GRAMMAR_REFUSED


def test_filters_hold_while_an_answer_is_written():
    calls = CallSet(tools={"note": closed(text={"type": "string", "maxLength": 30})})
    engine = small_engine()
    written = write_answer(
        CallMatcher(calls, engine), talkative, likeliest, most_tokens=300, filters=[Banned([b"aaa"], engine)]
    )
    assert "aa" in written.text
    assert "aaa" not in written.text


def test_the_way_to_complete_an_answer_leaves_the_matcher_as_it_is():
    matcher = CallMatcher(CallSet(tools=TOOLS), small_engine())
    take_all(matcher, list(b'{"name":"search","args":{"query":"half a wo'))
    before = matcher.text
    closing = closing_tokens(matcher, 20)
    assert closing is not None
    assert before + b"".join(map(matcher.bytes_of, closing)) == b'{"name":"search","args":{"query":"half a wo"}}'
    assert matcher.text == before
    assert closing_tokens(matcher, 0) is None


@pytest.mark.parametrize("pattern", [r"\.py$", "^[A-Z]{2,4}-[0-9]+$", "ab", r'^"[^"]*"$', "^(foo|bar)(/baz)?$"])
def test_a_string_with_a_pattern_is_brought_to_its_end(pattern: str):
    calls = CallSet(tools={"note": closed(text={"type": "string", "pattern": pattern})})
    for most in (60, 300):
        written = write_answer(CallMatcher(calls, small_engine()), talkative, likeliest, most_tokens=most)
        assert len(written.tokens) <= most
        check_answer(written.text, calls)
