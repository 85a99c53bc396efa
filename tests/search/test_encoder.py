"""The sentence encoder: its tokenizer beside the published one, its forward pass beside a plain one, its file."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.search.stand_in import LAYERS, PIECES, WIDTH, safetensors, tiny_weights, tokenizer_json, write_tiny
from trysquare.search import LONGEST_TEXT, MiniLM, WordPiece, convert_minilm

if TYPE_CHECKING:
    Doubles: TypeAlias = NDArray[np.float64]

HEADS = 12


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("encoder") / "tiny.npz")


@pytest.mark.parametrize(
    "text",
    [
        "Rename files.",
        "a FILE? a  file",
        "Délete\tthe\nweather",
        "中a中",
        "file\x00s re\u200bname",
        "",
        "files" * 40,
        "…a—b",
    ],
)
def test_texts_are_cut_as_the_published_tokenizer_cuts_them(text: str) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="the quick tests do without it")
    known = {piece: number for number, piece in enumerate(PIECES)}
    theirs = tokenizers.Tokenizer(tokenizers.models.WordPiece(known, unk_token="[UNK]"))
    theirs.normalizer = tokenizers.normalizers.BertNormalizer()
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    inner: list[int] = theirs.encode(text, add_special_tokens=False).ids
    assert WordPiece(PIECES).ids(text) == [2, *inner[: LONGEST_TEXT - 2], 3]


@given(st.text(max_size=400))
def test_any_text_becomes_tokens_between_two_marks(text: str) -> None:
    found = WordPiece(PIECES).ids(text)
    assert (found[0], found[-1]) == (2, 3)
    assert len(found) <= LONGEST_TEXT


def test_vectors_are_those_of_a_plain_forward_pass_whatever_else_is_in_the_batch(file: Path) -> None:
    texts = ["a file", "rename files. delete weather?", "", "weather " * 60]
    encoder = MiniLM(file)
    together = encoder.encode(texts)
    assert together.shape == (len(texts), encoder.width)
    for place, text in enumerate(texts):
        expected = _plain_forward(WordPiece(PIECES).ids(text))
        assert np.allclose(together[place], expected, atol=2e-5)
        assert np.allclose(encoder.encode([text])[0], expected, atol=2e-5)


def _plain_forward(ids: list[int]) -> Doubles:
    """The same network token by token, in 64 bits and with the exact error function."""
    weights = {name: tensor.astype(np.float64) for name, tensor in tiny_weights().items()}

    def dense(x: Doubles, name: str) -> Doubles:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(x: Doubles, name: str) -> Doubles:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return scaled * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]

    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings")
    size = WIDTH // HEADS
    for layer in range(LAYERS):
        start = f"encoder.layer.{layer}."
        q, k, v = (dense(x, f"{start}attention.self.{part}") for part in ("query", "key", "value"))
        mixed = np.zeros_like(x)
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            scores = np.exp(q[:, part] @ k[:, part].T / math.sqrt(size))
            mixed[:, part] = scores / scores.sum(-1, keepdims=True) @ v[:, part]
        x = norm(x + dense(mixed, f"{start}attention.output.dense"), f"{start}attention.output")
        inner = dense(x, f"{start}intermediate.dense")
        inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        x = norm(x + dense(inner, f"{start}output.dense"), f"{start}output")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


def test_the_converted_file_depends_on_the_weights_alone(file: Path, tmp_path: Path) -> None:
    again = write_tiny(tmp_path / "again.npz")
    assert again.read_bytes() == file.read_bytes()
    convert_minilm(safetensors(tiny_weights(seed=8)), tokenizer_json(), "0", tmp_path / "other.npz")
    assert hashlib.sha256((tmp_path / "other.npz").read_bytes()).digest() != hashlib.sha256(file.read_bytes()).digest()


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_damaged_file_is_refused_with_its_path(file: Path, tmp_path: Path, share: float) -> None:
    data = file.read_bytes()
    damaged = tmp_path / "damaged.npz"
    damaged.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(ValueError, match=r"damaged\.npz is damaged"):
        MiniLM(damaged)


def test_an_archive_without_the_weights_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", words=np.zeros(3))
    with pytest.raises(ValueError, match="is damaged"):
        MiniLM(tmp_path / "other.npz")
