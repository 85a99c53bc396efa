"""Decoding: an answer through a walk, piece by piece. What is forced is given to the model, not asked of it."""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.models.drawing import draw
from trysquare.models.model import Sampling, Segment, Walk
from trysquare.models.runtime import Candidate, Runtime, listed
from trysquare.models.spread import Spread

if TYPE_CHECKING:
    from llguidance import LLMatcher

_FEW = 512
"""Where none of the likeliest tokens fits, so many can be weighed exactly; of more, all are asked for."""
_FIRST_LOOK = 64
_MOST_HELD = 4
"""Forced tokens that one token may take the place of."""


class TakenBack(Exception):
    """The caller does not want the answer any more."""


@dataclass(kw_only=True, slots=True)
class Decoded:
    """An answer as far as it has come."""

    text: str = ""
    tokens: int = 0
    forced: int = 0
    choice: Mapping[str, float] = field(default_factory=dict[str, float])
    whole: bool = False


class Decoder:
    """One answer of one model."""

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
        """Forced text that the model has not been given yet: the next piece, or the end, settles it."""
        self._weighed: dict[tuple[int, ...], list[Candidate]] = {}

    def follow(self, walk: Walk, most_tokens: int) -> Decoded:
        """Go through the walk to its end; where the tokens do not suffice, what there is."""
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
        # What is forced at the end needs no look at the model at all, unless everything is to be asked for.
        self._settle()
        decoded.whole = piece is None
        decoded.tokens = len(self._tokens) - self._start
        decoded.forced = max(0, decoded.tokens - self._chosen) if self._fast_forward else 0
        return decoded

    def _used(self) -> int:
        return len(self._tokens) - self._start + len(self._runtime.tokenize(self._pending))

    def _settle(self) -> None:
        """Give the model what is forced, in one batch; or let it write that token by token."""
        self._append(self._runtime.tokenize(self._pending))
        self._pending = ""

    def _hold_back(self, choices: Sequence[str]) -> str:
        """Take the end of what is forced away from it, where a token goes over the border to one of the choices.

        A model that was given a brace alone would be pushed away from the marks that mostly share a token with it.
        """
        tokens, vocabulary = self._runtime.tokenize(self._pending), self._runtime.vocabulary
        for start in range(max(0, len(tokens) - _MOST_HELD), len(tokens)):
            held = self._bytes(tokens[start:]).decode("utf-8", errors="replace")
            if not self._pending.endswith(held):
                continue  # it begins inside of a character
            if any(vocabulary.has_beginning((held + choice[:1]).encode()) for choice in choices if choice):
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
            raise TakenBack

    def _choose(self, piece: Segment, held: str) -> str:
        """What the model writes for a piece, behind the text that was held back before it."""
        matcher = self._matcher(_led(piece.lark, by=held))
        base = len(self._tokens)
        self._append(self._forced(matcher))
        while not matcher.is_stopped() and len(self._tokens) < self._limit(base, held, piece):
            self._check()
            token = self._pick(matcher.compute_logit_bias())
            if token == self._end:
                break
            matcher.consume_token(token)
            self._tokens.append(token)
            self._chosen += 1
            self._append(self._forced(matcher))
        if matcher.is_error():
            raise ToolError(f"llguidance fails: {matcher.get_error()}", code=ErrorCode.GRAMMAR_REFUSED)
        del self._tokens[self._limit(base, held, piece) :]
        return self._written(base).removeprefix(held)

    def _limit(self, base: int, held: str, piece: Segment) -> int:
        """How many tokens there may be at the end of a piece: those of the text held back are not the piece's."""
        if piece.most_tokens is None:
            return sys.maxsize
        at, left = base, len(held.encode())
        while at < len(self._tokens) and left >= len(self._runtime.vocabulary.tokens[self._tokens[at]]):
            left -= len(self._runtime.vocabulary.tokens[self._tokens[at]])
            at += 1
        return at + piece.most_tokens

    def _forced(self, matcher: LLMatcher) -> list[int]:
        """The tokens that can only come next, already taken by the matcher."""
        forced = [] if matcher.is_stopped() else [each for each in matcher.compute_ff_tokens() if each != self._end]
        matcher.consume_tokens(forced)
        return forced

    def _written(self, base: int) -> str:
        """The text of the tokens from `base` on; a character that was cut apart is dropped."""
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
            raise ToolError(
                f"llguidance does not take a grammar: {matcher.get_error()}", code=ErrorCode.GRAMMAR_REFUSED
            )
        return matcher

    def _pick(self, mask: bytes) -> int:
        """The next token that the mask allows, by the model's probabilities."""
        candidates = self._weighed.get(tuple(self._tokens)) or self._look(mask)
        if not candidates:
            raise ToolError("No token of the model fits the grammar.", code=ErrorCode.GRAMMAR_REFUSED)
        return draw(candidates, self._sampling, self._random)

    def _weigh(self, tokens: list[int], among: list[int]) -> list[Candidate]:
        key = tuple(tokens)
        if key not in self._weighed:
            self._weighed[key] = self._runtime.weigh(tokens, among)
        return self._weighed[key]

    def _look(self, mask: bytes) -> list[Candidate]:
        """The likeliest tokens that a mask allows.

        A token that it refuses counts for its longest beginning that it allows: a model that closes one brace too few
        before the next call, in one token, still wants that brace and that call.
        """
        shares: dict[int, float] = {}
        for token, log in self._runtime.likeliest(self._tokens, _FIRST_LOOK):
            fitting = token if mask[token] else self._allowed_beginning(token, mask)
            if fitting is not None:
                shares[fitting] = shares.get(fitting, 0.0) + math.exp(log)
        if shares:
            return [Candidate(token=token, probability=share) for token, share in shares.items()]
        return self._look_further(mask)

    def _allowed_beginning(self, token: int, mask: bytes) -> int | None:
        return next((each for each in self._runtime.vocabulary.beginnings(token) if mask[each]), None)

    def _look_further(self, mask: bytes) -> list[Candidate]:
        few = listed(mask, _FEW)
        if few is not None:
            return self._runtime.weigh(self._tokens, few)
        everything = self._runtime.likeliest(self._tokens, len(self._runtime.vocabulary.tokens))
        return [Candidate(token=token, probability=math.exp(log)) for token, log in everything if mask[token]]

    def _weigh_tools(self, piece: Segment) -> Mapping[str, float]:
        """The probability of each tool, where a piece is the choice of one."""
        names = self._names(piece)
        if not names:
            return {}
        spread = Spread(names)
        self._divide(spread, self._matcher(piece.lark), [], 1.0)
        return spread.shares

    def _names(self, piece: Segment) -> list[str]:
        """The tools among which a piece chooses; none where it is no choice of a tool."""
        names = [choice.removesuffix('"') for choice in piece.choices]
        return names if len(names) > 1 and self._tools.issuperset(names) else []

    def _divide(self, spread: Spread, at: LLMatcher, written: list[int], share: float) -> None:
        """Divide a share among the names that may still come."""
        self._check()
        written = written + self._forced(at)
        names = spread.left(self._bytes(written))
        if spread.is_settled(names, share) or at.is_stopped():
            spread.give(names, share)
            return
        few = listed(at.compute_logit_bias(), len(self._runtime.vocabulary.tokens)) or []
        # The likeliest last: what the model has read of it then serves the answer itself.
        for candidate in reversed(self._weigh(self._tokens + written, few)):
            if candidate.token == self._end:
                spread.give(names[:1], share * candidate.probability)
                continue
            onward = at.deep_copy()
            onward.consume_token(candidate.token)
            self._divide(spread, onward, [*written, candidate.token], share * candidate.probability)


def _led(lark: str, *, by: str) -> str:
    """A piece's grammar with text in front of it."""
    return f"start: {json.dumps(by, ensure_ascii=False)} piece\n" + lark.replace("start:", "piece:", 1) if by else lark
