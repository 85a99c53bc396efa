"""Piecewise decoding under a grammar."""

from __future__ import annotations

import json
import math
import random
import sys
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, takewhile
from typing import TYPE_CHECKING

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.models.base import Sampling, Segment, Walk
from trysquare.models.local.runtime import Candidate, Runtime, allowed_tokens

if TYPE_CHECKING:
    from llguidance import LLMatcher


def draw(candidates: Sequence[Candidate], sampling: Sampling, source: random.Random) -> int:
    """The likeliest token at temperature 0; else a random one of the nucleus of `top_k` and `top_p`."""
    ranked = sorted(candidates, key=lambda candidate: candidate.probability, reverse=True)
    highest = ranked[0].probability
    if sampling.temperature <= 0 or highest <= 0:
        return ranked[0].token
    kept = ranked[: sampling.top_k or None]
    # As many of the likeliest as make a share of `top_p`, and at least one.
    sums = list(accumulate(candidate.probability for candidate in kept))
    kept = kept[: max(1, bisect_left(sums, sampling.top_p * sums[-1]) + 1)]
    weights = [(candidate.probability / highest) ** (1 / sampling.temperature) for candidate in kept]
    return source.choices([candidate.token for candidate in kept], weights)[0]


_SMALL_SHARE = 0.1
"""Names with a common prefix and together less than this share divide it equally: an evaluation costs more."""


class NameProbabilities:
    """Probability of each name, as far as it has been evaluated."""

    def __init__(self, names: Sequence[str]) -> None:
        # Shortest first: a text that ends at a name which others continue is that name.
        self._names = sorted(names, key=len)
        self.shares = dict.fromkeys(names, 0.0)

    def left(self, written: bytes) -> list[str]:
        """The names that the text may still become."""
        begun = written.decode("utf-8", errors="ignore")
        if fitting := [name for name in self._names if name.startswith(begun)]:
            return fitting
        # The text has gone beyond a name, such as to its closing quote.
        return [name for name in self._names if begun.startswith(name)][-1:]

    def give(self, names: Sequence[str], share: float) -> None:
        """Divide a share equally."""
        for name in names:
            self.shares[name] += share / len(names)


_FEW = 512
"""Where none of the likeliest tokens fits, up to this many are weighed exactly."""
_FIRST_LOOK = 64
_MOST_HELD = 4
"""Forced tokens that one token may replace."""


class Rollback(Exception):
    """The request was cancelled."""


@dataclass(kw_only=True, slots=True)
class Decoded:
    """The response so far."""

    text: str = ""
    tokens: int = 0
    forced: int = 0
    choice: Mapping[str, float] = field(default_factory=dict[str, float])
    whole: bool = False


class Decoder:
    """Decodes one response of one model."""

    def __init__(
        self,
        runtime: Runtime,
        prompt: list[int],
        sampling: Sampling,
        cancelled: Callable[[], bool],
        *,
        tools: frozenset[str] = frozenset(),
        fast_forward: bool = True,
    ) -> None:
        self._runtime = runtime
        self._end = runtime.vocabulary.end
        self._tokens = list(prompt)
        self._start = len(prompt)
        self._sampling = sampling
        self._random = random.Random(sampling.seed)
        self._cancelled = cancelled
        self._tools = tools
        self._fast_forward = fast_forward
        self._chosen = 0
        self._pending = ""
        """Forced text that is not tokenized yet."""
        self._weighed: dict[tuple[int, ...], list[Candidate]] = {}

    def follow(self, walk: Walk, most_tokens: int) -> Decoded:
        """Follow the walk to its end, or as far as the tokens suffice."""
        decoded = Decoded()
        while (piece := walk.next(tokens_left=most_tokens - self._used())) is not None:
            came = piece.forced
            if came is not None:
                self._pending += came
            else:
                held = "" if self._names(piece) else self._hold_back(piece.choices)
                self._settle()
                decoded.choice = decoded.choice or self._weigh_tools(piece)
                came = self._choose(piece, held)
            decoded.text += came
            walk.take(came)
            if self._used() >= most_tokens:
                break
        # What is forced at the end needs no evaluation, unless fast-forwarding is off.
        self._settle()
        decoded.whole = piece is None
        decoded.tokens = len(self._tokens) - self._start
        decoded.forced = max(0, decoded.tokens - self._chosen) if self._fast_forward else 0
        return decoded

    def _used(self) -> int:
        return len(self._tokens) - self._start + len(self._runtime.tokenize(self._pending))

    def _settle(self) -> None:
        """Append the forced text in one batch, or token by token without fast-forwarding."""
        self._append(self._runtime.tokenize(self._pending))
        self._pending = ""

    def _hold_back(self, choices: Sequence[str]) -> str:
        """Hold back the end of the forced text, where a token spans it and one of the choices.

        A brace given alone would make the punctuation less likely that mostly shares a token with it.
        """
        tokens, vocabulary = self._runtime.tokenize(self._pending), self._runtime.vocabulary
        for start in range(max(0, len(tokens) - _MOST_HELD), len(tokens)):
            held = self._bytes(tokens[start:]).decode("utf-8", errors="replace")
            if not self._pending.endswith(held):
                continue  # it begins inside of a character
            if any(vocabulary.has_prefix((held + choice[:1]).encode()) for choice in choices if choice):
                self._pending = self._pending.removesuffix(held)
                return held
        return ""

    def _append(self, forced: Sequence[int]) -> None:
        if not self._fast_forward:
            for count in range(len(forced)):
                self._check()
                self._runtime.weigh(self._tokens + list(forced[:count]), [forced[count]])
        self._tokens += forced

    def _check(self) -> None:
        if self._cancelled():
            raise Rollback

    def _choose(self, piece: Segment, prefix: str) -> str:
        """The text that the model chooses for a piece, after the text held back before it."""
        matcher = self._matcher(_with_prefix(piece.lark, prefix))
        base = len(self._tokens)
        self._append(self._forced(matcher))
        while not matcher.is_stopped() and len(self._tokens) < self._limit(base, prefix, piece):
            self._check()
            token = self._pick(matcher.compute_logit_bias())
            if token == self._end:
                break
            matcher.consume_token(token)
            self._tokens.append(token)
            self._chosen += 1
            self._append(self._forced(matcher))
        if matcher.is_error():
            raise ToolError(f"llguidance failed: {matcher.get_error()}", code=ErrorCode.GRAMMAR_REFUSED)
        del self._tokens[self._limit(base, prefix, piece) :]
        return self._written(base).removeprefix(prefix)

    def _limit(self, base: int, prefix: str, piece: Segment) -> int:
        """Token limit at the end of a piece; tokens of the text held back do not count."""
        if piece.most_tokens is None:
            return sys.maxsize
        sizes = accumulate(len(self._runtime.vocabulary.tokens[token]) for token in self._tokens[base:])
        within = takewhile(lambda size: size <= len(prefix.encode()), sizes)
        return base + sum(1 for _ in within) + piece.most_tokens

    def _forced(self, matcher: LLMatcher) -> list[int]:
        """The forced next tokens, consumed by the matcher."""
        forced = [] if matcher.is_stopped() else [each for each in matcher.compute_ff_tokens() if each != self._end]
        matcher.consume_tokens(forced)
        return forced

    def _written(self, base: int) -> str:
        """The text of the tokens from `base` on; an incomplete character is dropped."""
        while True:
            try:
                return self._bytes(self._tokens[base:]).decode("utf-8")
            except UnicodeDecodeError:
                self._tokens.pop()

    def _bytes(self, tokens: Sequence[int]) -> bytes:
        return b"".join(self._runtime.vocabulary.tokens[token] for token in tokens)

    def _matcher(self, lark: str) -> LLMatcher:
        from llguidance import LLMatcher

        matcher = LLMatcher(self._runtime.tokenizer, LLMatcher.grammar_from_lark(lark), log_level=0)
        if matcher.is_error():
            raise ToolError(f"llguidance rejected the grammar: {matcher.get_error()}", code=ErrorCode.GRAMMAR_REFUSED)
        return matcher

    def _pick(self, mask: bytes) -> int:
        """Draw the next token that the mask allows."""
        candidates = self._weighed.get(tuple(self._tokens)) or self._look(mask)
        if not candidates:
            raise ToolError("No token of the model fits the grammar.", code=ErrorCode.GRAMMAR_REFUSED)
        return draw(candidates, self._sampling, self._random)

    def _look(self, mask: bytes) -> list[Candidate]:
        """The likeliest tokens that a mask allows.

        A rejected token counts for its longest allowed prefix, such as a model's token that closes one brace too few
        before the next call.
        """
        vocabulary, shares = self._runtime.vocabulary, dict[int, float]()
        for token, log in self._runtime.likeliest(self._tokens, _FIRST_LOOK):
            fitting = next((each for each in chain([token], vocabulary.prefixes(token)) if mask[each]), None)
            if fitting is not None:
                shares[fitting] = shares.get(fitting, 0.0) + math.exp(log)
        if shares:
            return [Candidate(token=token, probability=share) for token, share in shares.items()]
        if (few := allowed_tokens(mask, _FEW)) is not None:
            return self._runtime.weigh(self._tokens, few)
        everything = self._runtime.likeliest(self._tokens, len(vocabulary.tokens))
        return [Candidate(token=token, probability=math.exp(log)) for token, log in everything if mask[token]]

    def _weigh_tools(self, piece: Segment) -> Mapping[str, float]:
        """The probability of each tool, where the piece chooses one."""
        names = self._names(piece)
        if not names:
            return {}
        spread = NameProbabilities(names)
        self._divide(spread, self._matcher(piece.lark), [], 1.0)
        return spread.shares

    def _names(self, piece: Segment) -> list[str]:
        """The tools that a piece chooses from; none where it does not choose a tool."""
        names = [choice.removesuffix('"') for choice in piece.choices]
        return names if len(names) > 1 and self._tools.issuperset(names) else []

    def _divide(self, spread: NameProbabilities, at: LLMatcher, written: list[int], share: float) -> None:
        """Divide a share among the names that are still possible."""
        self._check()
        written = written + self._forced(at)
        names = spread.left(self._bytes(written))
        too_little = share < _SMALL_SHARE and len(names) < len(spread.shares)
        if len(names) <= 1 or too_little or at.is_stopped():
            spread.give(names, share)
            return
        few = allowed_tokens(at.compute_logit_bias(), len(self._runtime.vocabulary.tokens)) or []
        before = self._tokens + written
        if tuple(before) not in self._weighed:
            self._weighed[tuple(before)] = self._runtime.weigh(before, few)
        # The likeliest last, so that its evaluation is cached for the response itself.
        for candidate in reversed(self._weighed[tuple(before)]):
            if candidate.token == self._end:
                spread.give(names[:1], share * candidate.probability)
                continue
            onward = at.deep_copy()
            onward.consume_token(candidate.token)
            self._divide(spread, onward, [*written, candidate.token], share * candidate.probability)


def _with_prefix(lark: str, prefix: str) -> str:
    """A piece's grammar with a prefix."""
    start = f"start: {json.dumps(prefix, ensure_ascii=False)} piece\n"
    return start + lark.replace("start:", "piece:", 1) if prefix else lark
