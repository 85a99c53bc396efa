"""Decoding: an answer through a walk, piece by piece. What is forced is given to the model, not asked of it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.models.model import Sampling, Segment, Walk
from trysquare.models.runtime import Candidate, Runtime, listed

if TYPE_CHECKING:
    from llguidance import LLInterpreter

_FEW = 512
"""Tokens that are weighed exactly, all of them; of more, the likeliest are asked for."""
_FIRST_LOOK = 64
_SMALL_SHARE = 0.01
"""Alternatives that together have less than this share it equally, instead of being told apart token by token."""


class TakenBack(Exception):
    """The caller does not want the answer any more."""


@dataclass(kw_only=True, slots=True)
class Decoded:
    """An answer as far as it has come."""

    text: str = ""
    tokens: int = 0
    forced: int = 0
    steps: int = 0
    """How often the model was asked for a token."""
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
        tools: frozenset[str] = frozenset(),
    ) -> None:
        self._runtime = runtime
        self._tokens = list(prompt)
        self._start = len(prompt)
        self._sampling = sampling
        self._random = random.Random(sampling.seed)
        self._cancelled = cancelled
        self._tools = tools
        self._pending = ""
        self._weighed: dict[tuple[int, ...], list[Candidate]] = {}
        self.decoded = Decoded()

    def follow(self, walk: Walk, most_tokens: int) -> Decoded:
        """Go through the walk to its end; where the tokens do not suffice, what there is."""
        while (piece := walk.next(tokens_left=most_tokens - self._used())) is not None:
            if piece.forced is not None:
                self._pending += piece.forced
                self.decoded.text += piece.forced
                walk.take(piece.forced)
                continue
            came = self._choose(piece)
            self.decoded.text += came
            walk.take(came)
            if self._used() >= most_tokens:
                break
        self._settle_pending()
        self.decoded.whole = piece is None
        self.decoded.tokens = self._used()
        self.decoded.forced = self.decoded.tokens - self.decoded.steps
        return self.decoded

    def _used(self) -> int:
        # Forced text that is not yet in tokens has at most as many as bytes, and hardly ever more than half of that.
        return len(self._tokens) - self._start + math.ceil(len(self._pending.encode()) / 2)

    def _settle_pending(self) -> None:
        self._tokens += self._runtime.tokenize(self._pending)
        self._pending = ""

    def _choose(self, piece: Segment) -> str:
        """What the model writes for a piece, with the forced text before it settled."""
        interpreter = self._interpreter(piece.lark)
        before = self._pending.encode()
        # The last tokens of a forced text may begin the piece: then the grammar holds their bytes instead.
        head = interpreter.process_prompt(self._runtime.tokenize(self._pending))
        base, self._pending = len(self._tokens), ""
        self._tokens += head
        names = [choice.removesuffix('"') for choice in piece.choices]
        if len(names) > 1 and not self.decoded.choice and self._tools.issuperset(names):
            self.decoded.choice = self._spread(interpreter, names, before, base)
        limit = None if piece.most_tokens is None else len(self._tokens) + piece.most_tokens
        self._run(interpreter, limit)
        return self._written(base, before)

    def _run(self, interpreter: LLInterpreter, limit: int | None) -> None:
        while limit is None or len(self._tokens) < limit:
            if self._cancelled():
                raise TakenBack
            mask, _ = interpreter.compute_mask()
            if mask is None:
                break
            token = self._pick(mask)
            if token == self._runtime.vocabulary.end:
                break
            _, added = interpreter.commit_token(token)
            self._tokens += [new for new in added if new != self._runtime.vocabulary.end]
        if limit is not None:
            del self._tokens[limit:]

    def _written(self, base: int, before: bytes) -> str:
        """The text of the tokens beyond what was forced before; a character that was cut apart is dropped."""
        while True:
            raw = self._bytes(self._tokens[base:])
            try:
                return raw.decode("utf-8").removeprefix(before.decode())
            except UnicodeDecodeError:
                self._tokens.pop()

    def _bytes(self, tokens: Sequence[int]) -> bytes:
        return b"".join(self._runtime.vocabulary.tokens[token] for token in tokens)

    def _interpreter(self, lark: str) -> LLInterpreter:
        from llguidance import LLInterpreter, LLMatcher

        try:
            return LLInterpreter(
                self._runtime.tokenizer, LLMatcher.grammar_from_lark(lark), enable_backtrack=False, log_level=0
            )
        except ValueError as error:
            raise ToolError(f"llguidance does not take a grammar: {error}", code=ErrorCode.GRAMMAR_REFUSED) from error

    def _pick(self, mask: bytes) -> int:
        """The next token that the mask allows, by the model's probabilities."""
        few = listed(mask, _FEW)
        if few is not None and len(few) == 1:
            return few[0]
        self.decoded.steps += 1
        candidates = self._weigh(self._tokens, few) if few is not None else self._look(mask)
        return self._draw(candidates)

    def _weigh(self, tokens: list[int], among: list[int]) -> list[Candidate]:
        key = tuple(tokens)
        if key not in self._weighed:
            self._weighed[key] = self._runtime.weigh(tokens, among)
        return self._weighed[key]

    def _look(self, mask: bytes) -> list[Candidate]:
        """The likeliest tokens that a wide mask allows."""
        most = _FIRST_LOOK
        size = len(self._runtime.vocabulary.tokens)
        while True:
            found = self._runtime.likeliest(self._tokens, min(most, size))
            allowed = [Candidate(token=t, probability=math.exp(log)) for t, log in found if mask[t]]
            if allowed or most >= size:
                return allowed
            most *= 16

    def _draw(self, candidates: Sequence[Candidate]) -> int:
        if not candidates:
            raise ToolError("No token of the model fits the grammar.", code=ErrorCode.GRAMMAR_REFUSED)
        if self._sampling.temperature <= 0:
            return candidates[0].token
        return draw(candidates, self._sampling, self._random)

    def _spread(
        self, interpreter: LLInterpreter, choices: Sequence[str], before: bytes, base: int
    ) -> Mapping[str, float]:
        """The probability of each alternative."""
        spread = _Spread(choices)
        self._divide(spread, interpreter, list(self._tokens), base, before, 1.0)
        return spread.shares

    def _divide(
        self, spread: _Spread, at: LLInterpreter, tokens: list[int], base: int, before: bytes, share: float
    ) -> None:
        """Divide a share among the alternatives that may still come."""
        left = spread.left(self._bytes(tokens[base:]), before)
        if len(left) == 1 or share < _SMALL_SHARE:
            spread.give(left, share)
            return
        if self._cancelled():
            raise TakenBack
        here = at.deep_copy()
        mask, _ = here.compute_mask()
        few = None if mask is None else listed(mask, len(self._runtime.vocabulary.tokens))
        if not few:
            spread.give(left, share)
            return
        for candidate in self._weigh(tokens, few):
            onward = here.deep_copy()
            _, added = onward.commit_token(candidate.token)
            kept = [token for token in added if token != self._runtime.vocabulary.end]
            if kept:
                self._divide(spread, onward, tokens + kept, base, before, share * candidate.probability)
            else:
                spread.give(left[:1], share * candidate.probability)


class _Spread:
    """The probability of each alternative, as it is being found."""

    def __init__(self, choices: Sequence[str]) -> None:
        # Shortest first: where the text ends at an alternative that others continue, it is meant.
        self._choices = sorted(choices, key=len)
        self.shares = dict.fromkeys(choices, 0.0)

    def left(self, written: bytes, before: bytes) -> list[str]:
        """The alternatives that the bytes so far may become. A held token may still be within the forced text."""
        begun = written[len(before) :].decode("utf-8", errors="ignore")
        if fitting := [choice for choice in self._choices if choice.startswith(begun)]:
            return fitting
        passed = [choice for choice in self._choices if begun.startswith(choice)]
        return passed[-1:] or self._choices

    def give(self, choices: Sequence[str], share: float) -> None:
        """Divide a share equally."""
        for choice in choices:
            self.shares[choice] += share / len(choices)


def draw(candidates: Sequence[Candidate], sampling: Sampling, source: random.Random) -> int:
    """A token by chance: the likeliest `top_k`, of these as many as make `top_p`, sharpened by the temperature."""
    ranked = sorted(candidates, key=lambda candidate: candidate.probability, reverse=True)
    ranked = ranked[: sampling.top_k or None]
    total = sum(candidate.probability for candidate in ranked)
    kept: list[Candidate] = []
    mass = 0.0
    for candidate in ranked:
        kept.append(candidate)
        mass += candidate.probability / total if total else 1.0
        if mass >= sampling.top_p:
            break
    highest = kept[0].probability or 1.0
    weights = [(candidate.probability / highest) ** (1 / sampling.temperature) for candidate in kept]
    return source.choices([candidate.token for candidate in kept], weights)[0]
