"""Vocabulary: the bytes of every token of a GGUF file, as llguidance wants them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from trysquare.core.errors import ErrorCode, ToolError

if TYPE_CHECKING:
    from llguidance import LLTokenizer

_CONTROL, _BYTE = 3, 6
_SPACE = "\u2581"


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The tokens of a model."""

    tokens: Sequence[bytes]
    control: Sequence[int]
    """Tokens that stand for no text, such as the end of a turn."""
    begin: int | None
    end: int

    @property
    def control_texts(self) -> tuple[str, ...]:
        """How control tokens are written in a template, longest first."""
        texts = {self.tokens[token].decode("utf-8", errors="replace") for token in self.control}
        return tuple(sorted((text for text in texts if len(text) > 1), key=len, reverse=True))

    def exact(self, text: str, tokens: list[int]) -> list[int]:
        """The tokens that a runtime makes of a text, without the space that some put before it."""
        wanted = text.encode("utf-8", errors="replace")
        written = b"".join(self.tokens[token] for token in tokens)
        if written == wanted:
            return tokens
        if written == b" " + wanted:
            return [*self.cut(self.tokens[tokens[0]][1:]), *tokens[1:]]
        return self.cut(wanted)

    def cut(self, text: bytes) -> list[int]:
        """A text in the longest tokens that there are, from its beginning on."""
        found: list[int] = []
        while text:
            size = next(size for size in range(min(self._longest, len(text)), 0, -1) if text[:size] in self._numbers)
            found.append(self._numbers[text[:size]])
            text = text[size:]
        return found

    def beginnings(self, token: int) -> Iterator[int]:
        """The tokens that a token's text begins with, longest first, without the token itself."""
        text = self.tokens[token] if token in self._numbers_of_text else b""
        for size in range(len(text) - 1, 0, -1):
            if (found := self._numbers.get(text[:size])) is not None:
                yield found

    def has_beginning(self, text: bytes) -> bool:
        """Whether a token begins with a text."""
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
    """The vocabulary in a file's header."""
    kind = header.get("tokenizer.ggml.model", b"").decode("ascii", errors="replace")
    raw: list[bytes] = header.get("tokenizer.ggml.tokens", [])
    kinds: Sequence[int] = header.get("tokenizer.ggml.token_type", [1] * len(raw))
    if kind not in _READERS or not raw:
        raise ToolError(
            f"The vocabulary of kind `{kind or 'none'}` cannot be read.",
            code=ErrorCode.MODEL_NOT_INSTALLED,
            instruction=f"Use a model whose tokenizer is one of {', '.join(_READERS)}.",
        )
    read = _READERS[kind]
    control = [number for number, token_kind in enumerate(kinds) if token_kind == _CONTROL]
    plain = set(control)
    tokens = [
        text if number in plain else read(text, token_kind)
        for number, (text, token_kind) in enumerate(zip(raw, kinds, strict=True))
    ]
    end = header.get("tokenizer.ggml.eos_token_id")
    return Vocabulary(
        tokens=tokens,
        control=control,
        begin=header.get("tokenizer.ggml.bos_token_id"),
        end=end if isinstance(end, int) else control[-1],
    )


@lru_cache(maxsize=1)
def _byte_letters() -> Mapping[str, int]:
    """The letters that byte-level vocabularies write for bytes: printable ones for themselves, others beyond."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


def _byte_level(raw: bytes, kind: int) -> bytes:
    letters = _byte_letters()
    text = raw.decode("utf-8", errors="replace")
    return bytes(letters[letter] for letter in text) if all(letter in letters for letter in text) else raw


def _sentence_pieces(raw: bytes, kind: int) -> bytes:
    text = raw.decode("utf-8", errors="replace")
    return bytes([int(text[3:-1], 16)]) if kind == _BYTE else text.replace(_SPACE, " ").encode()


_READERS: Mapping[str, Callable[[bytes, int], bytes]] = {"gpt2": _byte_level, "llama": _sentence_pieces}


class _Tokenizer:
    """What llguidance asks of a tokenizer that is not its own."""

    def __init__(self, vocabulary: Vocabulary, tokenize: Callable[[str], list[int]]) -> None:
        self.eos_token_id = vocabulary.end
        self.bos_token_id = vocabulary.begin
        self.tokens = vocabulary.tokens
        self.special_token_ids = vocabulary.control
        self._tokenize = tokenize

    def __call__(self, text: str | bytes) -> list[int]:
        return self._tokenize(text if isinstance(text, str) else text.decode("utf-8"))


def build_tokenizer(vocabulary: Vocabulary, tokenize: Callable[[str], list[int]]) -> LLTokenizer:
    """llguidance's tokenizer over a vocabulary, whose texts are taken apart as the model's runtime does it."""
    from llguidance import LLTokenizer, TokenizerWrapper

    return LLTokenizer(TokenizerWrapper(_Tokenizer(vocabulary, tokenize)))
