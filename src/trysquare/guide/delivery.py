"""Delivery: what of a selection is sent, within a budget and without what the caller already holds. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias

from trysquare.catalog import packing
from trysquare.guide.document import Document
from trysquare.guide.selection import Chosen

SHORT_DIGEST = packing.SHORT_DIGEST


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A document ready to send: rendered, counted, with the digest of exactly this text."""

    chosen: Chosen
    text: str
    digest: str
    tokens: int

    @property
    def document(self) -> Document:
        return self.chosen.document

    @property
    def priority(self) -> int:
        return self.document.priority


Delivery: TypeAlias = packing.Packed[Piece]
"""What is sent, what the caller has already, and what did not fit."""


def deliver(pieces: Sequence[Piece], *, budget: int | None = None, held: Set[str] = frozenset()) -> Delivery:
    """Decide what to send: whole documents only, the most important first, in the order of the expression."""
    return packing.pack(pieces, budget=budget, held=held)


def held_after(delivery: Delivery) -> tuple[str, ...]:
    """The digests that the caller holds once this delivery has arrived."""
    return delivery.held()


def by_id(pieces: Iterable[Piece]) -> Mapping[str, Piece]:
    """The pieces by the text of their ids."""
    return {str(piece.document.id): piece for piece in pieces}
