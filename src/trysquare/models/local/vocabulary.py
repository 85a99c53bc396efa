"""GGUF header and vocabulary."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from trysquare.core.errors import ErrorCode, ToolError

if TYPE_CHECKING:
    from llguidance import LLTokenizer


_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MAX_ENTRIES = 16_000_000
_MAX_TEXT = 64 * 1024 * 1024


def read_gguf_header(path: Path) -> Mapping[str, Any]:
    """The metadata of a GGUF file; texts are bytes, since a vocabulary's are not always UTF-8."""
    try:
        with path.open("rb") as file:
            return _Header(file).read()
    except (ValueError, struct.error, EOFError, OverflowError, MemoryError) as error:
        raise ToolError(
            f"Cannot read {path} as a GGUF file: {error}.",
            code=ErrorCode.MODEL_NOT_INSTALLED,
            instruction="Use a complete GGUF file of version 2 or 3, little-endian.",
        ) from error
    except OSError as error:
        raise ToolError(
            f"Cannot read {path}: {error.strerror}.",
            code=ErrorCode.MODEL_NOT_INSTALLED,
            instruction="Name a GGUF file, or install a model from `trysquare models list`.",
        ) from error


class _Header:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self) -> Mapping[str, Any]:
        if self._bytes(4) != b"GGUF":
            raise ValueError("it does not begin with GGUF")
        version, _tensors, entries = struct.unpack("<IQQ", self._bytes(20))
        if version not in (2, 3):
            raise ValueError(f"its version is {version}")
        found: dict[str, Any] = {}
        for _ in range(min(entries, _MAX_ENTRIES)):
            key = self._text().decode("utf-8", errors="replace")
            found[key] = self._value(self._number("I"))
        return found

    def _value(self, kind: int) -> Any:
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind not in (_STRING, _ARRAY):
            raise ValueError(f"it has a value of the unknown kind {kind}")
        return self._text() if kind == _STRING else self._array()

    def _array(self) -> Any:
        kind, length = struct.unpack("<IQ", self._bytes(12))
        if length > _MAX_ENTRIES:
            raise ValueError(f"it has a list of {length} entries")
        if kind in _NUMBERS:
            form = _NUMBERS[kind]
            return struct.unpack(f"<{length}{form}", self._bytes(length * struct.calcsize(form)))
        return [self._value(kind) for _ in range(length)]

    def _text(self) -> bytes:
        length = self._number("Q")
        if length > _MAX_TEXT:
            raise ValueError(f"it has a text of {length} bytes")
        return self._bytes(length)

    def _number(self, form: str) -> Any:
        return struct.unpack("<" + form, self._bytes(struct.calcsize("<" + form)))[0]

    def _bytes(self, length: int) -> bytes:
        found = self._file.read(length)
        if len(found) < length:
            raise EOFError("it ends in the middle of its header")
        return found


_CONTROL, _BYTE = 3, 6
_SPACE = "\u2581"


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The tokens of a model."""

    tokens: Sequence[bytes]
    control: Sequence[int]
    """Tokens without text, such as the end of a turn."""
    begin: int | None
    end: int

    @property
    def control_texts(self) -> tuple[str, ...]:
        """Control tokens as templates write them, longest first."""
        texts = {self.tokens[token].decode("utf-8", errors="replace") for token in self.control}
        return tuple(sorted((text for text in texts if len(text) > 1), key=len, reverse=True))

    def exact(self, text: str, tokens: list[int]) -> list[int]:
        """The runtime's tokens of a text, without the space that some tokenizers put before it."""
        wanted = text.encode("utf-8", errors="replace")
        written = b"".join(self.tokens[token] for token in tokens)
        if written == wanted:
            return tokens
        if written == b" " + wanted:
            return [*self.cut(self.tokens[tokens[0]][1:]), *tokens[1:]]
        return self.cut(wanted)

    def cut(self, text: bytes) -> list[int]:
        """A text in the longest possible tokens, from left to right."""
        found: list[int] = []
        while text:
            size = next(size for size in range(min(self._longest, len(text)), 0, -1) if text[:size] in self._numbers)
            found.append(self._numbers[text[:size]])
            text = text[size:]
        return found

    def prefixes(self, token: int) -> Iterator[int]:
        """The tokens that are proper prefixes of a token, longest first."""
        text = self.tokens[token] if token in self._numbers_of_text else b""
        for size in range(len(text) - 1, 0, -1):
            if (found := self._numbers.get(text[:size])) is not None:
                yield found

    def has_prefix(self, text: bytes) -> bool:
        """Whether some token starts with the text."""
        at = bisect_left(self._sorted, text)
        return at < len(self._sorted) and self._sorted[at].startswith(text)

    @cached_property
    def _sorted(self) -> Sequence[bytes]:
        return sorted(self._numbers)

    @cached_property
    def _numbers(self) -> Mapping[bytes, int]:
        control = set(self.control)
        return {text: number for number, text in enumerate(self.tokens) if text and number not in control}

    @cached_property
    def _numbers_of_text(self) -> frozenset[int]:
        return frozenset(self._numbers.values())

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._numbers))


def read_vocabulary(header: Mapping[str, Any]) -> Vocabulary:
    """The vocabulary of a GGUF header."""
    kind = header.get("tokenizer.ggml.model", b"").decode("ascii", errors="replace")
    raw: list[bytes] = header.get("tokenizer.ggml.tokens", [])
    kinds: Sequence[int] = header.get("tokenizer.ggml.token_type", [1] * len(raw))
    if kind not in _READERS or not raw:
        raise ToolError(
            f"Unsupported tokenizer `{kind or 'none'}`.",
            code=ErrorCode.MODEL_NOT_INSTALLED,
            instruction=f"Use a model whose tokenizer is one of {', '.join(_READERS)}.",
        )
    read = _READERS[kind]
    control = [number for number, token_kind in enumerate(kinds) if token_kind == _CONTROL]
    pairs = zip(raw, kinds, strict=True)
    tokens = [text if token_kind == _CONTROL else read(text, token_kind) for text, token_kind in pairs]
    end = header.get("tokenizer.ggml.eos_token_id")
    return Vocabulary(
        tokens=tokens,
        control=control,
        begin=header.get("tokenizer.ggml.bos_token_id"),
        end=end if isinstance(end, int) else control[-1],
    )


_PRINTABLE = (*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_OTHERS = (byte for byte in range(256) if byte not in _PRINTABLE)
_LETTERS = {chr(byte): byte for byte in _PRINTABLE} | {chr(256 + i): byte for i, byte in enumerate(_OTHERS)}
"""Byte-level BPE: printable bytes as themselves, others as letters from U+0100 on."""


def _byte_level(raw: bytes, kind: int) -> bytes:
    text = raw.decode("utf-8", errors="replace")
    return bytes(_LETTERS[letter] for letter in text) if all(letter in _LETTERS for letter in text) else raw


def _sentence_pieces(raw: bytes, kind: int) -> bytes:
    text = raw.decode("utf-8", errors="replace")
    return bytes([int(text[3:-1], 16)]) if kind == _BYTE else text.replace(_SPACE, " ").encode()


_READERS: Mapping[str, Callable[[bytes, int], bytes]] = {"gpt2": _byte_level, "llama": _sentence_pieces}


class _Tokenizer:
    """Tokenizer interface of llguidance."""

    def __init__(self, vocabulary: Vocabulary, tokenize: Callable[[str], list[int]]) -> None:
        self.eos_token_id = vocabulary.end
        self.bos_token_id = vocabulary.begin
        self.tokens = vocabulary.tokens
        self.special_token_ids = vocabulary.control
        self._tokenize = tokenize

    def __call__(self, text: str | bytes) -> list[int]:
        return self._tokenize(text if isinstance(text, str) else text.decode("utf-8"))


def build_tokenizer(vocabulary: Vocabulary, tokenize: Callable[[str], list[int]]) -> LLTokenizer:
    """llguidance's tokenizer over a vocabulary, with the runtime's own tokenization."""
    from llguidance import LLTokenizer, TokenizerWrapper

    return LLTokenizer(TokenizerWrapper(_Tokenizer(vocabulary, tokenize)))
