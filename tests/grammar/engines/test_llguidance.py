from __future__ import annotations

import importlib.util

import pytest

from tests.grammar.small_tokenizer import small_engine, small_tokenizer
from trysquare import ConfigurationError, ErrorCode, ToolError
from trysquare.grammar.engine import llguidance_engine
from trysquare.grammar.filters import full_mask


def test_a_grammar_that_cannot_be_compiled_is_refused_with_the_engine_s_reason():
    with pytest.raises(ToolError, match=r"nowhere") as refused:
        small_engine().start("start: nowhere")
    assert refused.value.code is ErrorCode.GRAMMAR_UNSUPPORTED


def test_a_missing_extra_is_reported_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trysquare.grammar.engine.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"pip install 'trysquare\[local\]'"):
        llguidance_engine(small_tokenizer())
    assert importlib.util.find_spec("llguidance")


def test_a_text_that_hit_a_limit_of_the_engine_allows_nothing():
    """llguidance itself says nothing then; a mask that was left as it was would allow everything."""
    held = small_engine().start('start: "a"')
    held.take(list(b"a"))
    held._matcher.consume_token(ord("b"))  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    mask = full_mask(small_engine().vocabulary_size)
    with pytest.raises(ToolError) as refused:
        held.fill(mask)
    assert refused.value.code is ErrorCode.GRAMMAR_UNSUPPORTED
    assert not mask.any()


def test_two_texts_under_one_grammar_do_not_know_of_each_other():
    engine = small_engine()
    one, other = engine.start('start: "ab"'), engine.start('start: "ab"')
    assert one.take(list(b"ab")) == 2
    assert (one.is_complete(), other.is_complete()) == (True, False)
