from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.grammar.small_tokenizer import small_engine
from tests.support import size
from trysquare import ErrorCode, ToolError
from trysquare.grammar.filters import Banned, ByteAutomaton, allowed_tokens, full_mask

LETTERS = st.binary(min_size=1, max_size=4).map(lambda text: bytes(byte % 3 + 97 for byte in text))


def allowed(banned: Banned) -> list[int]:
    engine = small_engine()
    mask = full_mask(engine.vocabulary_size)
    banned.narrow(mask)
    return allowed_tokens(mask, engine.vocabulary_size).nonzero()[0].tolist()


@given(sequences=st.lists(LETTERS, min_size=1, max_size=4), text=st.binary(max_size=30))
def test_the_automaton_stops_where_a_sequence_is_first_completed(sequences: list[bytes], text: bytes):
    text = bytes(byte % 3 + 97 for byte in text)
    automaton = ByteAutomaton(sequences)
    for end in range(len(text) + 1):
        found = any(sequence in text[:end] for sequence in sequences)
        assert (automaton.after(0, text[:end]) is None) == found


@pytest.mark.parametrize("seed", range(size(15, 300)))
def test_a_banned_sequence_cannot_be_written_across_tokens(seed: int):
    random, engine = Random(seed), small_engine()
    sequences = [b"```", b"rm -rf", b'":"', "ä".encode(), b"read_file"]
    banned = Banned(sequences, engine)
    text = b""
    for _ in range(60):
        may = allowed(banned)
        for token in random.sample(range(engine.vocabulary_size), 20):
            written = b"" if token in engine.end_tokens else engine.bytes_of([token])
            assert (token in may) == (not any(each in text + written for each in sequences))
        token = random.choice([each for each in may if each not in engine.end_tokens])
        banned.take(token)
        text += engine.bytes_of([token])
    assert not any(each in text for each in sequences)


def test_a_token_that_completes_a_sequence_is_refused_and_one_that_begins_it_is_not():
    banned = Banned([b"ab"], small_engine())
    banned.take(ord("a"))
    with pytest.raises(ToolError, match="banned") as refused:
        banned.take(ord("b"))
    assert refused.value.code is ErrorCode.GRAMMAR_REFUSED
    banned.take_back(1)
    banned.take(ord("b"))


def test_an_empty_sequence_is_refused():
    with pytest.raises(ValueError, match="must not be empty"):
        ByteAutomaton([b"a", b""])
