"""Logit filters: grammar, bias, banned sequences, and their chain."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.grammar.calls.matcher import CallMatcher
from trysquare.grammar.engine import GrammarEngine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trysquare.grammar.engine import Logits, Mask


class ByteAutomaton:
    """Aho-Corasick automaton over byte sequences."""

    def __init__(self, sequences: Iterable[bytes]) -> None:
        branches: list[dict[int, int]] = [{}]
        ends: set[int] = set()
        for sequence in sequences:
            if not sequence:
                raise ValueError("a banned sequence must not be empty")
            state = 0
            for byte in sequence:
                if byte not in branches[state]:
                    branches[state][byte] = len(branches)
                    branches.append({})
                state = branches[state][byte]
            ends.add(state)
        self.steps, self.complete = self._closed(branches, ends)

    def _closed(
        self, branches: list[dict[int, int]], ends: set[int]
    ) -> tuple[NDArray[numpy.int32], NDArray[numpy.bool_]]:
        """The next state of each state and byte, and which states complete a sequence."""
        steps = numpy.zeros((len(branches), 256), dtype=numpy.int32)
        complete = numpy.array([state in ends for state in range(len(branches))])
        shorter = [0] * len(branches)
        waiting = deque([0])
        while waiting:
            state = waiting.popleft()
            fallback = steps[shorter[state]].copy()
            steps[state] = 0 if state == 0 else fallback
            for byte, following in branches[state].items():
                shorter[following] = int(fallback[byte]) if state else 0
                complete[following] |= complete[shorter[following]]
                steps[state, byte] = following
                waiting.append(following)
        return steps, complete

    def after(self, state: int, text: bytes) -> int | None:
        """The state after more bytes; None where a sequence was completed."""
        for byte in text:
            state = int(self.steps[state, byte])
            if self.complete[state]:
                return None
        return state


class Filter(Protocol):
    """A reason why a token may or may not come, or is likelier. What a filter does not define has no effect."""

    def narrow(self, mask: Mask) -> None:
        """Remove tokens from the mask that may not come next."""

    def weigh(self, logits: Logits) -> None:
        """Make tokens likelier or less likely."""

    def take(self, token: int) -> None:
        """Accept a token. A forbidden one raises GRAMMAR_REFUSED and changes nothing."""

    def take_back(self, count: int) -> None:
        """Undo the last tokens."""


class Banned(Filter):
    """Bans byte sequences of the response text, in which a string's newline is `\\n`, two bytes."""

    def __init__(self, sequences: Iterable[bytes], engine: GrammarEngine) -> None:
        self._automaton = ByteAutomaton(sequences)
        self._states = [0]
        self._masks: dict[int, Mask] = {}
        size = engine.vocabulary_size
        self._texts = [b"" if token in engine.end_tokens else engine.bytes_of([token]) for token in range(size)]
        self._lengths = numpy.array([len(text) for text in self._texts], dtype=numpy.int32)
        self._tokens = numpy.zeros((size, max(map(len, self._texts))), dtype=numpy.uint8)
        for row, text in zip(self._tokens, self._texts, strict=True):
            row[: len(text)] = numpy.frombuffer(text, dtype=numpy.uint8)

    def narrow(self, mask: Mask) -> None:
        state = self._states[-1]
        if state not in self._masks:
            self._masks[state] = self._allowed_in(state)
        mask &= self._masks[state]

    def take(self, token: int) -> None:
        state = self._automaton.after(self._states[-1], self._texts[token])
        if state is None:
            raise _refused(
                f"The token {token} ({self._texts[token]!r}) would complete a banned sequence.",
                "Choose a token that the mask allows.",
            )
        self._states.append(state)

    def take_back(self, count: int) -> None:
        if count:
            del self._states[-count:]

    def _allowed_in(self, state: int) -> Mask:
        """Mask of the tokens that complete no sequence: all tokens run through the automaton at once, byte by byte."""
        states = numpy.full(len(self._lengths), state, dtype=numpy.int32)
        allowed = numpy.ones(len(self._lengths), dtype=numpy.bool_)
        for index in range(self._tokens.shape[1]):
            longer = self._lengths > index
            states[longer] = self._automaton.steps[states[longer], self._tokens[longer, index]]
            allowed[longer] &= ~self._automaton.complete[states[longer]]
        words = (len(allowed) + 31) // 32
        return numpy.packbits(numpy.resize(allowed, words * 32), bitorder="little").view(numpy.int32)


class CallFilter(Filter):
    """Allows only calls of the tools."""

    def __init__(self, matcher: CallMatcher) -> None:
        self._matcher = matcher

    def narrow(self, mask: Mask) -> None:
        allowed = numpy.empty_like(mask)
        self._matcher.fill(allowed)
        mask &= allowed

    def take(self, token: int) -> None:
        self._matcher.take(token)

    def take_back(self, count: int) -> None:
        self._matcher.take_back(count)


class Biased(Filter):
    """Adds a bias to some tokens; minus infinity forbids one."""

    def __init__(self, biases: Mapping[int, float]) -> None:
        self._tokens = numpy.fromiter(biases.keys(), dtype=numpy.int64)
        self._biases = numpy.fromiter(biases.values(), dtype=numpy.float32)
        self._forbidden = frozenset(token for token, bias in biases.items() if bias == -numpy.inf)

    def narrow(self, mask: Mask) -> None:
        for token in self._forbidden:
            mask[token // 32] &= numpy.int32(~numpy.int32(numpy.uint32(1 << token % 32).astype(numpy.int32)))

    def weigh(self, logits: Logits) -> None:
        logits[self._tokens] += self._biases

    def take(self, token: int) -> None:
        if token in self._forbidden:
            raise _refused(f"The token {token} is forbidden by a bias of minus infinity.")


class FilterChain:
    """Several filters at once."""

    def __init__(self, filters: Sequence[Filter]) -> None:
        self._filters = tuple(filters)

    def apply(self, logits: Logits) -> None:
        """Weigh the logits, and set those of forbidden tokens to minus infinity. Raises where no token is left."""
        mask = full_mask(len(logits))
        for each in self._filters:
            each.narrow(mask)
            each.weigh(logits)
        allowed = allowed_tokens(mask, len(logits))
        if not allowed.any():
            raise _refused("No token is allowed: the filters contradict one another.")
        logits[~allowed] = -numpy.inf

    def take(self, token: int) -> None:
        """Accept a token by all filters, or by none."""
        for number, each in enumerate(self._filters):
            try:
                each.take(token)
            except ToolError:
                for earlier in self._filters[:number]:
                    earlier.take_back(1)
                raise

    def take_back(self, count: int) -> None:
        for each in self._filters:
            each.take_back(count)


def full_mask(vocabulary_size: int) -> Mask:
    """A mask that allows everything."""
    return numpy.full((vocabulary_size + 31) // 32, -1, dtype=numpy.int32)


def allowed_tokens(mask: Mask, vocabulary_size: int) -> numpy.typing.NDArray[numpy.bool_]:
    """For each token whether the mask allows it."""
    return numpy.unpackbits(mask.view(numpy.uint8), bitorder="little", count=vocabulary_size).view(numpy.bool_)


def _refused(message: str, instruction: str = "Remove the ban or the bias, or offer other tools.") -> ToolError:
    return ToolError(message, code=ErrorCode.GRAMMAR_REFUSED, instruction=instruction)
