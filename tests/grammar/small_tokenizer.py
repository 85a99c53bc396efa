"""A small tokenizer: all bytes, and pieces that cross the borders of names, values and calls."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy
from llguidance import LLTokenizer, TokenizerWrapper

from trysquare.grammar import CallMatcher
from trysquare.grammar.engine import GrammarEngine, llguidance_engine
from trysquare.grammar.filters import allowed_tokens, full_mask

PIECES = (
    b'{"', b'":"', b'":', b'","', b'",', b'"}', b'"}}', b'}}', b'},{"', b'[{"', b'}]', b'}}]', b'"}},{"', b'{}', b'[]',
    b'":{"', b'":["', b"name", b"args", b"read", b"_file", b"file", b"fi", b"status", b"path", b"action", b"true",
    b"12", b"007", b"\\n", b"\\u00", b"\\\\", "ä".encode(), "🙂".encode()[:2], b"```", b"a", b"the ", b"e999",
    b'"args":{"path":"', b'","args":{"',
)  # fmt: skip


class GreedyTokenizer:
    """Splits text into the longest pieces that it knows."""

    def __init__(self, pieces: tuple[bytes, ...]) -> None:
        written = list(dict.fromkeys([bytes([byte]) for byte in range(256)] + list(pieces)))
        self.tokens = [*written, b"</s>"]
        self.eos_token_id = len(written)
        self.bos_token_id = None
        self.special_token_ids = [self.eos_token_id]
        self._known = {piece: token for token, piece in enumerate(written)}
        self._longest = max(map(len, written))

    def __call__(self, text: bytes) -> list[int]:
        tokens: list[int] = []
        while text:
            piece = next(text[:size] for size in range(self._longest, 0, -1) if text[:size] in self._known)
            tokens.append(self._known[piece])
            text = text[len(piece) :]
        return tokens


@cache
def small_tokenizer() -> LLTokenizer:
    """The tokenizer."""
    return LLTokenizer(TokenizerWrapper(GreedyTokenizer(PIECES)))


@cache
def small_engine() -> GrammarEngine:
    """An engine for it, shared by all tests: it only keeps what it compiled."""
    return llguidance_engine(small_tokenizer())


def allowed_by(matcher: CallMatcher) -> list[int]:
    """The tokens that may come next."""
    mask = full_mask(matcher.vocabulary_size)
    matcher.fill(mask)
    return numpy.flatnonzero(allowed_tokens(mask, matcher.vocabulary_size)).tolist()


def take_all(matcher: CallMatcher, tokens: Sequence[int]) -> None:
    for token in tokens:
        matcher.take(token)
