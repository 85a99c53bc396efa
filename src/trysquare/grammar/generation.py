"""Generation: writing an answer with a model's logits, forced tokens in batches, and never cut by its token limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.grammar.filters import Filter, FilterChain, HeldToCalls, allowed_tokens, full_mask
from trysquare.grammar.matcher import CallMatcher, take_all
from trysquare.grammar.tool_odds import Ask

if TYPE_CHECKING:
    from trysquare.grammar.engines.engine import Logits

_WATCHED = 256
"""So many tokens before the limit it is seen before every step whether the answer can still be completed."""
_CLOSING_BYTES = (b'"', b"}", b"]", b"0", b"1", b"n", b"t", b"a", b",", b":", b"{", b"[")
"""What leads out of a value soonest, in the order in which it is tried."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """An answer, and how many tokens of it nobody was asked for."""

    text: str
    tokens: tuple[int, ...]
    forced: int


def write_answer(
    matcher: CallMatcher,
    ask: Ask,
    choose: Callable[[Logits], int],
    *,
    most_tokens: int,
    filters: Sequence[Filter] = (),
    fast_forward: bool = True,
) -> Written:
    """Write a whole answer of at most so many tokens. Where not even the shortest fits, it is refused."""
    chain = FilterChain([HeldToCalls(matcher), *filters])
    forced = 0
    if closing_tokens(matcher, most_tokens) is None:
        raise _too_long(most_tokens)
    while not matcher.is_complete:
        batch = matcher.forced() if fast_forward else []
        forced += len(batch)
        for token in batch or [_chosen(chain, ask(matcher.tokens), choose)]:
            chain.take(token)
        left = most_tokens - len(matcher.tokens)
        if left < _WATCHED and closing_tokens(matcher, left) is None:
            forced += _close(matcher, chain, most_tokens)
    return Written(text=matcher.text.decode(), tokens=matcher.tokens, forced=forced)


def _chosen(chain: FilterChain, logits: Logits, choose: Callable[[Logits], int]) -> int:
    weighed = logits.copy()
    chain.apply(weighed)
    return choose(weighed)


def _close(matcher: CallMatcher, chain: FilterChain, most_tokens: int) -> int:
    """Go back to where the answer could still be completed, and complete it."""
    while (closing := closing_tokens(matcher, most_tokens - len(matcher.tokens))) is None:
        chain.take_back(1)
    for token in closing:
        chain.take(token)
    return len(closing)


def closing_tokens(matcher: CallMatcher, most: int) -> list[int] | None:
    """A short way to complete the answer; None where none of so many tokens is found. The matcher stays as it is."""
    before = len(matcher.tokens)
    while not matcher.is_complete and len(matcher.tokens) - before <= most:
        take_all(matcher, matcher.forced() or _towards_the_end(matcher))
    taken = list(matcher.tokens[before:])
    completed = matcher.is_complete and len(taken) <= most
    matcher.take_back(len(taken))
    return taken if completed else None


def _towards_the_end(matcher: CallMatcher) -> list[int]:
    size = matcher.vocabulary_size
    mask = full_mask(size)
    matcher.fill(mask)
    allowed = allowed_tokens(mask, size)
    closing = [token for token in matcher.tokens_writing(_CLOSING_BYTES) if allowed[token]]
    if closing and matcher.bytes_of(closing[0]) == _CLOSING_BYTES[0]:
        return closing[:1]
    candidates = closing or numpy.flatnonzero(allowed)[:_WATCHED].tolist()
    return _out_of_pattern(matcher) or [min(candidates, key=lambda token: len(matcher.bytes_of(token)))]


def _out_of_pattern(matcher: CallMatcher) -> list[int]:
    """The rest of a text that fits a pattern of the present tool, where that closes the string; else nothing."""
    for text in matcher.examples():
        for start in range(len(text)):
            tokens = matcher.tokens_of(text[start:] + '"')
            if matcher.would_take(tokens):
                return tokens
    return []


def likeliest(logits: Logits) -> int:
    """The token with the highest logit."""
    return int(numpy.argmax(logits))


def _too_long(most_tokens: int) -> ToolError:
    return ToolError(
        f"No call fits into {most_tokens} tokens.",
        code=ErrorCode.GRAMMAR_REFUSED,
        instruction="Allow the answer more tokens, or offer a tool that needs fewer arguments.",
    )
