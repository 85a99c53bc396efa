"""Stand-ins for a sentence encoder: a MiniLM of a few numbers, and one that counts what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trysquare.search import convert_minilm

if TYPE_CHECKING:
    from trysquare.search.encoder import Matrix

PIECES = (
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "a",
    "file",
    "re",
    "##name",
    "##s",
    "delete",
    "weather",
    ".",
    "?",
    "中",
    "é",
)
WIDTH, LAYERS, INNER, POSITIONS = 24, 2, 48, 128


def tiny_weights(seed: int = 7) -> dict[str, Matrix]:
    """Weights of the right names and shapes, each row a multiple of one scale, so that 8 bits hold them exactly."""
    chance = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> Matrix:
        made = chance.integers(-126, 127, (rows, columns)).astype(np.float32)
        made[:, 0] = 127
        return made / np.float32(127 * 4)

    def vector(size: int, around: float) -> Matrix:
        return (around + chance.normal(0, 0.1, size)).astype(np.float32)

    made: dict[str, Matrix] = {
        "embeddings.word_embeddings.weight": matrix(len(PIECES), WIDTH),
        "embeddings.position_embeddings.weight": matrix(POSITIONS, WIDTH),
        "embeddings.token_type_embeddings.weight": matrix(2, WIDTH),
        "embeddings.LayerNorm.weight": vector(WIDTH, 1.0),
        "embeddings.LayerNorm.bias": vector(WIDTH, 0.0),
    }
    for layer in range(LAYERS):
        start = f"encoder.layer.{layer}."
        shapes = {
            "attention.self.query": (WIDTH, WIDTH), "attention.self.key": (WIDTH, WIDTH),
            "attention.self.value": (WIDTH, WIDTH), "attention.output.dense": (WIDTH, WIDTH),
            "intermediate.dense": (INNER, WIDTH), "output.dense": (WIDTH, INNER),
        }  # fmt: skip
        for name, shape in shapes.items():
            made[f"{start}{name}.weight"] = matrix(*shape)
            made[f"{start}{name}.bias"] = vector(shape[0], 0.0)
        for name in ("attention.output", "output"):
            made[f"{start}{name}.LayerNorm.weight"] = vector(WIDTH, 1.0)
            made[f"{start}{name}.LayerNorm.bias"] = vector(WIDTH, 0.0)
    return made


def safetensors(tensors: dict[str, Matrix]) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, tensor in tensors.items():
        data = tensor.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def tokenizer_json() -> bytes:
    return json.dumps({"model": {"vocab": {piece: number for number, piece in enumerate(PIECES)}}}).encode()


def write_tiny(path: Path) -> Path:
    convert_minilm(safetensors(tiny_weights()), tokenizer_json(), "0123456789abcdef", path)
    return path


class CountingEncoder:
    """Encodes a text by the letters it holds, once it is let go; keeps what it was asked."""

    name, width = "letters", 26

    def __init__(self, *, held: bool = False) -> None:
        self.asked: list[str] = []
        self.go = threading.Event()
        if not held:
            self.go.set()

    def encode(self, texts: Sequence[str]) -> Matrix:
        assert self.go.wait(60)
        self.asked.extend(texts)
        counts = [[1e-3 + text.lower().count(chr(97 + place)) for place in range(26)] for text in texts]
        return np.array(counts, dtype=np.float32)
