"""A vocabulary is read from a file's header, and cuts a text without losing a byte of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.tiny_gguf import CONTROL, sentence_pieces, vocabulary
from trysquare import ToolError
from trysquare.models.local.vocabulary import Vocabulary, read_gguf_header, read_vocabulary

BYTE_LEVEL = read_vocabulary(
    {
        "tokenizer.ggml.model": b"gpt2",
        "tokenizer.ggml.tokens": [token.encode() for token in vocabulary()],
        "tokenizer.ggml.token_type": [1] * (len(vocabulary()) - 2) + [3, 3],
        "tokenizer.ggml.eos_token_id": len(vocabulary()) - 1,
    }
)
PIECES = read_vocabulary(
    {
        "tokenizer.ggml.model": b"llama",
        "tokenizer.ggml.tokens": [token.encode() for token in sentence_pieces()],
        "tokenizer.ggml.token_type": [2, 3, 3, *([6] * 256), *([1] * (len(sentence_pieces()) - 259))],
        "tokenizer.ggml.eos_token_id": 2,
    }
)


@pytest.mark.parametrize("known", [BYTE_LEVEL, PIECES])
@given(text=st.text())
def test_a_cut_text_is_whole_again_when_joined(known: Vocabulary, text: str) -> None:
    tokens = known.cut(text.encode("utf-8", errors="replace"))
    assert b"".join(known.tokens[token] for token in tokens) == text.encode("utf-8", errors="replace")
    assert not set(tokens) & set(known.control)


@pytest.mark.parametrize("known", [BYTE_LEVEL, PIECES])
def test_the_longest_token_is_taken(known: Vocabulary) -> None:
    assert [known.tokens[token] for token in known.cut(b'{"name":"read')] == [b'{"', b"name", b'":"', b"read"]


def test_a_space_that_a_runtime_put_before_a_text_is_taken_away() -> None:
    with_space = PIECES.cut(b" the")
    assert PIECES.tokens[with_space[0]] == b" t"
    assert b"".join(PIECES.tokens[token] for token in PIECES.exact("the", with_space)) == b"the"


def test_control_tokens_are_known_by_their_texts() -> None:
    assert set(BYTE_LEVEL.control_texts) == set(PIECES.control_texts) == set(CONTROL)


def test_a_vocabulary_of_another_kind_is_refused() -> None:
    with pytest.raises(ToolError, match="`bert`"):
        read_vocabulary({"tokenizer.ggml.model": b"bert", "tokenizer.ggml.tokens": [b"a"]})


def test_a_header_is_read_without_the_weights(tiny: Path) -> None:
    header = read_gguf_header(tiny)
    assert header["general.architecture"] == b"llama"
    assert header["llama.context_length"] == 2048
    assert len(header["tokenizer.ggml.tokens"]) == len(vocabulary())


@given(content=st.binary(max_size=200), cut=st.integers(0, 400))
def test_a_damaged_header_is_reported_and_nothing_worse(tiny: Path, content: bytes, cut: int) -> None:
    path = tiny.with_suffix(".damaged")
    path.write_bytes(tiny.read_bytes()[:cut] + content)
    with pytest.raises(ToolError, match="as a GGUF file"):
        read_gguf_header(path)
