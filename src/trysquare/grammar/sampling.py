"""Sampling: texts of a grammar as a model with random weights writes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trysquare.grammar.engines.engine import Engine

if TYPE_CHECKING:
    from numpy.random import Generator

CLOSING = b'"]},0'
"""What brings a value to its end. A model with random weights has no wish to end, so it is given one."""
PATIENCE = 60
"""After so many tokens, what closes becomes likelier with each further one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A text, and whether it was cut because it had too many tokens."""

    text: bytes
    tokens: int
    cut: bool


class RandomModel:
    """Chooses among the allowed tokens by logits that mean nothing."""

    def __init__(self, engine: Engine, source: Generator) -> None:
        import numpy

        self._engine, self._source = engine, source
        self._mask = numpy.zeros((engine.vocabulary_size + 31) // 32, dtype=numpy.int32)
        self._closing = numpy.array(
            [engine.bytes_of([token])[:1] in (b'"', b"]", b"}") for token in range(engine.vocabulary_size)]
        )

    def write(self, lark: str, *, most_tokens: int, patience: int | None = PATIENCE) -> Sample:
        """A text under a grammar. Without patience, nothing makes it end but the grammar."""
        held = self._engine.start(lark)
        taken: list[int] = []
        while len(taken) < most_tokens and not held.is_complete():
            held.fill(self._mask)
            token = self._chosen(0 if patience is None else max(0, len(taken) - patience))
            if held.take([token]) != 1 or token in self._engine.end_tokens:
                break
            taken.append(token)
        ended = held.is_complete() or len(taken) < most_tokens or self._may_end(held)
        return Sample(text=self._engine.bytes_of(taken), tokens=len(taken), cut=not ended)

    def _may_end(self, held: object) -> bool:
        from trysquare.grammar.engines.engine import HeldText

        assert isinstance(held, object)
        text: HeldText = held  # pyright: ignore[reportAssignmentType]
        text.fill(self._mask)
        return any(self._mask[token // 32] >> (token % 32) & 1 for token in self._engine.end_tokens)

    def _chosen(self, impatience: int) -> int:
        import numpy

        bits = numpy.unpackbits(self._mask.view(numpy.uint8), bitorder="little")[: self._engine.vocabulary_size]
        logits = self._source.gumbel(size=len(bits)) + impatience / 8 * self._closing
        return int(numpy.where(bits, logits, -numpy.inf).argmax())
