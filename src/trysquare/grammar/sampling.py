"""Sampling: texts of a grammar as a model with random weights writes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trysquare.grammar.engines.engine import Engine, HeldText

if TYPE_CHECKING:
    from numpy.random import Generator

PATIENCE = 40
"""After so many tokens, closing becomes likelier with each further one: random weights never tire by themselves."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A text, and whether it was cut because it had too many tokens."""

    text: str
    tokens: int
    cut: bool


class RandomModel:
    """Chooses among the allowed tokens by logits that mean nothing."""

    def __init__(self, engine: Engine, source: Generator) -> None:
        import numpy

        self._engine, self._source = engine, source
        self._mask = numpy.zeros((engine.vocabulary_size + 31) // 32, dtype=numpy.int32)
        self._closing = numpy.array([_closes(engine, token) for token in range(engine.vocabulary_size)])

    def write(self, lark: str, *, most_tokens: int, patient: bool = False) -> Sample:
        """A text under a grammar. A patient model is not drawn to the end, however long its text has become."""
        held = self._engine.start(lark)
        taken: list[int] = []
        while not held.is_complete() and len(taken) < most_tokens:
            held.fill(self._mask)
            token = self._chosen(0 if patient else max(0, len(taken) - PATIENCE))
            if token in self._engine.end_tokens:
                return self._sample(taken, cut=False)
            held.take([token])
            taken.append(token)
        return self._sample(taken, cut=not self._may_end(held))

    def _sample(self, taken: list[int], *, cut: bool) -> Sample:
        return Sample(text=self._engine.bytes_of(taken).decode(errors="replace"), tokens=len(taken), cut=cut)

    def _may_end(self, held: HeldText) -> bool:
        if held.is_complete():
            return True
        held.fill(self._mask)
        return any(int(self._mask[token // 32]) >> (token % 32) & 1 for token in self._engine.end_tokens)

    def _chosen(self, impatience: int) -> int:
        import numpy

        size = self._engine.vocabulary_size
        allowed = numpy.flatnonzero(numpy.unpackbits(self._mask.view(numpy.uint8), count=size, bitorder="little"))
        logits = self._source.gumbel(size=len(allowed)) + impatience / 4 * self._closing[allowed]
        return int(allowed[logits.argmax()])


def _closes(engine: Engine, token: int) -> bool:
    return token not in engine.end_tokens and engine.bytes_of([token])[:1] in (b'"', b"]", b"}")
