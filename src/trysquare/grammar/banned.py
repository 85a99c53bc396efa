"""Banned: byte sequences that may not be written, however tokens cut them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.grammar.engines.engine import Engine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trysquare.grammar.engines.engine import Logits, Mask


class ByteAutomaton:
    """How far the bytes so far have come into any of the sequences (Aho and Corasick's automaton)."""

    def __init__(self, sequences: Iterable[bytes]) -> None:
        self._branches: list[dict[int, int]] = [{}]
        self._ends: list[bool] = [False]
        for sequence in sequences:
            self._add(sequence)
        self.steps, self.complete = self._closed()

    def _add(self, sequence: bytes) -> None:
        if not sequence:
            raise ValueError("an empty sequence would ban everything")
        state = 0
        for byte in sequence:
            if byte not in self._branches[state]:
                self._branches[state][byte] = len(self._branches)
                self._branches.append({})
                self._ends.append(False)
            state = self._branches[state][byte]
        self._ends[state] = True

    def _closed(self) -> tuple[NDArray[numpy.int32], NDArray[numpy.bool_]]:
        """For each state and byte the next state, and which states hold a whole sequence."""
        steps = numpy.zeros((len(self._branches), 256), dtype=numpy.int32)
        complete = numpy.array(self._ends)
        shorter = [0] * len(self._branches)
        waiting = deque([0])
        while waiting:
            state = waiting.popleft()
            fallback = steps[shorter[state]].copy()
            steps[state] = 0 if state == 0 else fallback
            for byte, following in self._branches[state].items():
                shorter[following] = int(fallback[byte]) if state else 0
                complete[following] |= complete[shorter[following]]
                steps[state, byte] = following
                waiting.append(following)
        return steps, complete

    def after(self, state: int, text: bytes) -> int | None:
        """The state after more bytes; None where a sequence was completed on the way."""
        for byte in text:
            state = int(self.steps[state, byte])
            if self.complete[state]:
                return None
        return state


class Banned:
    """A filter that keeps byte sequences of the answer's text from being written.

    What is compared is the text as it stands in the answer, where a string's newline is `\\n`, two bytes.
    """

    def __init__(self, sequences: Iterable[bytes], engine: Engine) -> None:
        self._automaton = ByteAutomaton(sequences)
        self._engine = engine
        self._states = [0]
        self._masks: dict[int, Mask] = {}
        self._tokens, self._lengths = _token_table(engine)

    def narrow(self, mask: Mask) -> None:
        """Take the tokens out of the mask that would complete a sequence."""
        state = self._states[-1]
        if state not in self._masks:
            self._masks[state] = self._allowed_in(state)
        mask &= self._masks[state]

    def weigh(self, logits: Logits) -> None:
        """Nothing: a ban has no preferences."""

    def take(self, token: int) -> None:
        """Go on, unless the token completes a sequence."""
        state = self._automaton.after(self._states[-1], self._written(token))
        if state is None:
            raise ToolError(
                f"The token {token} ({self._written(token)!r}) would complete a banned sequence.",
                code=ErrorCode.GRAMMAR_REFUSED,
                instruction="Choose a token that the mask allows.",
            )
        self._states.append(state)

    def take_back(self, count: int) -> None:
        """Go back."""
        if count:
            del self._states[-count:]

    def _written(self, token: int) -> bytes:
        return b"" if token in self._engine.end_tokens else self._engine.bytes_of([token])

    def _allowed_in(self, state: int) -> Mask:
        """Which tokens complete no sequence: all of them go through the automaton side by side, byte by byte."""
        states = numpy.full(len(self._lengths), state, dtype=numpy.int32)
        allowed = numpy.ones(len(self._lengths), dtype=numpy.bool_)
        for place in range(self._tokens.shape[1]):
            longer = self._lengths > place
            states[longer] = self._automaton.steps[states[longer], self._tokens[longer, place]]
            allowed[longer] &= ~self._automaton.complete[states[longer]]
        words = (len(allowed) + 31) // 32
        bits = numpy.packbits(numpy.resize(allowed, words * 32), bitorder="little")
        return bits.view(numpy.int32)


def _token_table(engine: Engine) -> tuple[NDArray[numpy.uint8], NDArray[numpy.int32]]:
    """The bytes of all tokens as rows, and how many each has."""
    size = engine.vocabulary_size
    texts = [b"" if token in engine.end_tokens else engine.bytes_of([token]) for token in range(size)]
    table = numpy.zeros((size, max(map(len, texts))), dtype=numpy.uint8)
    for row, text in zip(table, texts, strict=True):
        row[: len(text)] = numpy.frombuffer(text, dtype=numpy.uint8)
    return table, numpy.array([len(text) for text in texts], dtype=numpy.int32)
