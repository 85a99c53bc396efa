"""Sentence encoder: texts as vectors whose cosine says how near they are in meaning. MiniLM, in numpy."""

from __future__ import annotations

import io
import json
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix: TypeAlias = NDArray[np.float32]

LONGEST_TEXT = 128
"""In tokens. What comes later in a description does not count."""
_BATCH_TOKENS = 1_024
_HEADS = 12
_PREFIX = "##"
_UNKNOWN, _CLS, _SEP = "[UNK]", "[CLS]", "[SEP]"
_LONGEST_WORD = 100


class Encoder(Protocol):
    """Texts to vectors, one row each. `name` changes whenever the same text gets another vector."""

    @property
    def name(self) -> str: ...

    @property
    def width(self) -> int: ...

    def encode(self, texts: Sequence[str]) -> Matrix | Sequence[Sequence[float]]: ...


class WordPiece:
    """The tokenizer of uncased BERT models: words, then their longest known pieces."""

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self._ids = {piece: number for number, piece in enumerate(vocabulary)}
        self._pieces = lru_cache(maxsize=20_000)(self._split)

    def ids(self, text: str) -> list[int]:
        """Return the tokens of a text between its two marks, cut to the longest length."""
        found = [self._ids[_CLS]]
        for word in _words(text):
            found.extend(self._pieces(word))
            if len(found) >= LONGEST_TEXT:
                break
        return [*found[: LONGEST_TEXT - 1], self._ids[_SEP]]

    def _split(self, word: str) -> tuple[int, ...]:
        start, found = 0, list[int]()
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = word[start:end] if start == 0 else _PREFIX + word[start:end]
                if piece in self._ids:
                    found.append(self._ids[piece])
                    start = end
                    break
            else:
                return (self._ids[_UNKNOWN],)
        return tuple(found) if len(word) <= _LONGEST_WORD else (self._ids[_UNKNOWN],)


def _words(text: str) -> Iterator[str]:
    """Lower-case words without accents; every punctuation mark and CJK character stands alone."""
    word = ""
    for letter in unicodedata.normalize("NFD", text.lower()):
        category = unicodedata.category(letter)
        if category == "Mn" or (category[0] == "C" and letter not in "\t\n\r"):
            continue
        if letter.isspace():
            alone, ends = "", True
        else:
            ends = _stands_alone(letter, category)
            alone = letter if ends else ""
        if not ends:
            word += letter
            continue
        if word:
            yield word
        word = ""
        if alone:
            yield alone
    if word:
        yield word


def _stands_alone(letter: str, category: str) -> bool:
    if letter.isascii():
        return not letter.isalnum()
    return category[0] == "P" or 0x3400 <= ord(letter) <= 0x9FFF or 0x20000 <= ord(letter) <= 0x2FA1F


@dataclass(frozen=True, kw_only=True, slots=True)
class _Layer:
    query_key_value: Matrix
    query_key_value_bias: Matrix
    attention: Matrix
    attention_bias: Matrix
    attention_norm: tuple[Matrix, Matrix]
    up: Matrix
    up_bias: Matrix
    down: Matrix
    down_bias: Matrix
    output_norm: tuple[Matrix, Matrix]


class MiniLM:
    """all-MiniLM-L6-v2 from one file of 8-bit weights: mean of the last layer, as a unit vector."""

    def __init__(self, path: Path) -> None:
        try:
            self._read(path)
        except (KeyError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(f"{path} is damaged: {error}") from None

    def _read(self, path: Path) -> None:
        import numpy as np

        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            self._digest = bytes(stored["digest"]).decode()
            vocabulary = bytes(stored["vocabulary"]).decode().split("\n")
            self._words, self._scales = stored["words"], stored["words:scale"].astype(np.float32)
            self._positions = stored["positions"].astype(np.float32)
            self._norm = (stored["norm.weight"].astype(np.float32), stored["norm.bias"].astype(np.float32))
            count = int(stored["layers"].item())
            self._layers = [_read_layer(stored, number) for number in range(count)]
        self._tokenizer = WordPiece(vocabulary)

    @property
    def name(self) -> str:
        return f"minilm-{self._digest[:12]}"

    @property
    def width(self) -> int:
        return int(self._positions.shape[1])

    def encode(self, texts: Sequence[str]) -> Matrix:
        """Return one unit vector per text. Texts of like length are computed together."""
        import numpy as np

        tokens = [self._tokenizer.ids(text) for text in texts]
        out = np.zeros((len(texts), self._positions.shape[1]), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda place: len(tokens[place]))
        start = 0
        while start < len(order):
            end, longest = start, 0
            while end < len(order):
                longest = len(tokens[order[end]])
                if end > start and (end + 1 - start) * longest > _BATCH_TOKENS:
                    longest = len(tokens[order[end - 1]])
                    break
                end += 1
            batch = order[start:end]
            out[batch] = self._forward([tokens[place] for place in batch], longest)
            start = end
        return out

    def _forward(self, batch: Sequence[Sequence[int]], longest: int) -> Matrix:
        import numpy as np

        ids = np.zeros((len(batch), longest), dtype=np.int64)
        mask = np.zeros((len(batch), longest), dtype=np.float32)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1.0
        words: Matrix = self._words[ids].astype(np.float32) * self._scales[ids][..., None]
        states = _normalised(words + self._positions[:longest], self._norm)
        hidden = (1.0 - mask)[:, None, None, :] * np.float32(-1e9)
        for layer in self._layers:
            states = _normalised(states + _attended(states, hidden, layer), layer.attention_norm)
            inner = _gelu(states @ layer.up + layer.up_bias)
            change: Matrix = inner @ layer.down + layer.down_bias
            states = _normalised(states + change, layer.output_norm)
        pooled = (states * mask[..., None]).sum(axis=1)
        return pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), 1e-9)


def _attended(states: Matrix, hidden: Matrix, layer: _Layer) -> Matrix:
    import numpy as np

    count, length, width = states.shape
    projected = states @ layer.query_key_value + layer.query_key_value_bias
    query, key, value = projected.reshape(count, length, 3, _HEADS, width // _HEADS).transpose(2, 0, 3, 1, 4)
    scores = query @ key.transpose(0, 1, 3, 2) / np.float32((width // _HEADS) ** 0.5) + hidden
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ value
    return mixed.transpose(0, 2, 1, 3).reshape(count, length, width) @ layer.attention + layer.attention_bias


def _normalised(states: Matrix, norm: tuple[Matrix, Matrix]) -> Matrix:
    import numpy as np

    centred = states - states.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(1e-12))
    return centred / spread * norm[0] + norm[1]


def _gelu(x: Matrix) -> Matrix:
    """The error-function form, by Abramowitz and Stegun 7.1.26 (error below 2e-7 in 32 bits)."""
    import numpy as np

    z = np.abs(x) * np.float32(0.7071067811865476)
    t = 1 / (1 + np.float32(0.3275911) * z)
    series = ((((1.061405429 * t - 1.453152027) * t) + 1.421413741) * t - 0.284496736) * t + 0.254829592
    erf = 1 - (series * t * np.exp(-z * z)).astype(np.float32)
    return np.float32(0.5) * x * (1 + np.sign(x) * erf)


def _read_layer(stored: Mapping[str, Any], number: int) -> _Layer:
    import numpy as np

    def weight(name: str) -> Matrix:
        scale = stored[f"{number}.{name}:scale"].astype(np.float32)
        return np.ascontiguousarray((stored[f"{number}.{name}"].astype(np.float32) * scale[:, None]).T)

    def plain(name: str) -> Matrix:
        return stored[f"{number}.{name}"].astype(np.float32)

    return _Layer(
        query_key_value=weight("qkv"), query_key_value_bias=plain("qkv.bias"),
        attention=weight("attention"), attention_bias=plain("attention.bias"),
        attention_norm=(plain("attention.norm.weight"), plain("attention.norm.bias")),
        up=weight("up"), up_bias=plain("up.bias"), down=weight("down"), down_bias=plain("down.bias"),
        output_norm=(plain("output.norm.weight"), plain("output.norm.bias")),
    )  # fmt: skip


def convert_minilm(safetensors: bytes, tokenizer: bytes, digest: str, target: Path) -> None:
    """Write the published weights as one file of 8-bit rows with a scale each: a quarter of the size."""
    import numpy as np

    tensors = _read_safetensors(safetensors)
    vocabulary: dict[str, int] = json.loads(tokenizer)["model"]["vocab"]
    words, words_scale = _rounded(tensors["embeddings.word_embeddings.weight"])
    positions = tensors["embeddings.position_embeddings.weight"][:LONGEST_TEXT]
    out: dict[str, Any] = {
        "digest": np.frombuffer(digest.encode(), dtype=np.uint8),
        "vocabulary": np.frombuffer("\n".join(sorted(vocabulary, key=vocabulary.__getitem__)).encode(), dtype=np.uint8),
        "words": words,
        "words:scale": words_scale,
        # Every token is of the first sentence, so that its type is a constant.
        "positions": (positions + tensors["embeddings.token_type_embeddings.weight"][0]).astype(np.float32),
        "norm.weight": tensors["embeddings.LayerNorm.weight"],
        "norm.bias": tensors["embeddings.LayerNorm.bias"],
    }
    count = 0
    while (prefix := f"encoder.layer.{count}.") + "output.dense.weight" in tensors:
        attention = [prefix + f"attention.self.{part}" for part in ("query", "key", "value")]
        weights = {
            "qkv": np.concatenate([tensors[f"{name}.weight"] for name in attention]),
            "attention": tensors[prefix + "attention.output.dense.weight"],
            "up": tensors[prefix + "intermediate.dense.weight"],
            "down": tensors[prefix + "output.dense.weight"],
        }
        for name, matrix in weights.items():
            out[f"{count}.{name}"], out[f"{count}.{name}:scale"] = _rounded(matrix)
        out[f"{count}.qkv.bias"] = np.concatenate([tensors[f"{name}.bias"] for name in attention])
        out[f"{count}.attention.bias"] = tensors[prefix + "attention.output.dense.bias"]
        out[f"{count}.up.bias"] = tensors[prefix + "intermediate.dense.bias"]
        out[f"{count}.down.bias"] = tensors[prefix + "output.dense.bias"]
        for name, source in (("attention", "attention.output"), ("output", "output")):
            for part in ("weight", "bias"):
                out[f"{count}.{name}.norm.{part}"] = tensors[f"{prefix}{source}.LayerNorm.{part}"]
        count += 1
    _write({**out, "layers": np.int64(count)}, target)


def _write(arrays: Mapping[str, Any], target: Path) -> None:
    """Write an archive that `numpy.load` reads, whose bytes depend on nothing but the arrays."""
    import numpy as np

    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            stream = io.BytesIO()
            np.lib.format.write_array(stream, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), stream.getvalue())


def _rounded(matrix: Matrix) -> tuple[Any, Any]:
    import numpy as np

    scale = np.maximum(np.abs(matrix).max(axis=1), 1e-9) / 127
    return np.rint(matrix / scale[:, None]).astype(np.int8), scale.astype(np.float32)


def _read_safetensors(data: bytes) -> dict[str, Matrix]:
    import numpy as np

    size = int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8 : 8 + size])
    found: dict[str, Matrix] = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        start, end = entry["data_offsets"]
        values = np.frombuffer(data[8 + size + start : 8 + size + end], dtype="<f4")
        found[name.removeprefix("bert.")] = values.reshape(entry["shape"])
    return found
