"""Delivery: what of a selection is sent, within a budget and without what the caller already holds. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from trysquare.guide.document import Document, DocumentId
from trysquare.guide.selection import Chosen

SHORT_DIGEST = 12


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    """What is sent, what the caller has already, and what did not fit."""

    sent: tuple[Piece, ...]
    unchanged: tuple[Piece, ...] = ()
    left_out: tuple[Piece, ...] = ()

    @property
    def tokens(self) -> int:
        return sum(piece.tokens for piece in self.sent)


def deliver(pieces: Sequence[Piece], *, budget: int | None = None, held: Set[str] = frozenset()) -> Delivery:
    """Decide what to send: whole documents only, the most important first, in the order of the expression."""
    unchanged = tuple(piece for piece in pieces if is_held(piece.digest, held))
    fresh = [piece for piece in pieces if not is_held(piece.digest, held)]
    fitting = _fitting(fresh, budget)
    return Delivery(
        sent=tuple(piece for piece in fresh if piece.document.id in fitting),
        unchanged=unchanged,
        left_out=tuple(piece for piece in fresh if piece.document.id not in fitting),
    )


def _fitting(pieces: Sequence[Piece], budget: int | None) -> set[DocumentId]:
    if budget is None:
        return {piece.document.id for piece in pieces}
    left, fitting = budget, set[DocumentId]()
    # Sorting is stable: among documents of one priority the expression's own order decides.
    for piece in sorted(pieces, key=lambda piece: -piece.document.priority):
        if piece.tokens <= left:
            left -= piece.tokens
            fitting.add(piece.document.id)
    return fitting


def is_held(digest: str, held: Set[str]) -> bool:
    """Whether a digest, in full or shortened, is among those that the caller holds."""
    return digest in held or digest[:SHORT_DIGEST] in held


def held_after(delivery: Delivery) -> tuple[str, ...]:
    """The digests that the caller holds once this delivery has arrived."""
    return tuple(piece.digest[:SHORT_DIGEST] for piece in (*delivery.unchanged, *delivery.sent))


def by_id(pieces: Iterable[Piece]) -> Mapping[str, Piece]:
    """The pieces by the text of their ids."""
    return {str(piece.document.id): piece for piece in pieces}
