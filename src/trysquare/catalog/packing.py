"""Packing: which of several texts are sent, within a budget of tokens and without what the reader holds. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

SHORT_DIGEST = 12


class Packable(Protocol):
    """Something that is sent whole or not at all."""

    @property
    def digest(self) -> str:
        """What changes when its text does."""
        ...

    @property
    def tokens(self) -> int:
        """What it costs the reader."""
        ...

    @property
    def priority(self) -> int:
        """How much it matters: more is kept first when the budget is short."""
        ...


Item = TypeVar("Item", bound=Packable)


@dataclass(frozen=True, kw_only=True, slots=True)
class Packed(Generic[Item]):
    """What is sent, what the reader has already, and what did not fit; each in the order in which it was given."""

    sent: tuple[Item, ...]
    unchanged: tuple[Item, ...] = ()
    left_out: tuple[Item, ...] = ()

    @property
    def tokens(self) -> int:
        """What the sent items cost."""
        return sum(item.tokens for item in self.sent)

    def held(self) -> tuple[str, ...]:
        """The short digests that the reader holds once this has arrived."""
        return tuple(item.digest[:SHORT_DIGEST] for item in (*self.unchanged, *self.sent))


def pack(
    items: Sequence[Item],
    *,
    budget: int | None = None,
    held: AbstractSet[str] = frozenset(),
    naming: Callable[[int], int] = lambda left_out: 0,
) -> Packed[Item]:
    """Choose what to send, the most important first. `naming` says what it costs to name so many that are left out."""
    unchanged = tuple(item for item in items if is_held(item.digest, held))
    fresh = [item for item in items if not is_held(item.digest, held)]
    fitting = set(range(len(fresh)) if budget is None else _fitting(fresh, budget, naming))
    return Packed(
        sent=tuple(item for place, item in enumerate(fresh) if place in fitting),
        unchanged=unchanged,
        left_out=tuple(item for place, item in enumerate(fresh) if place not in fitting),
    )


def _fitting(items: Sequence[Packable], budget: int, naming: Callable[[int], int]) -> Iterable[int]:
    if sum(item.tokens for item in items) <= budget:
        return range(len(items))
    left, fitting = budget, list[int]()
    # Sorting is stable: among items of one priority the given order decides.
    for place in sorted(range(len(items)), key=lambda place: -items[place].priority):
        if items[place].tokens + naming(len(items) - len(fitting) - 1) <= left:
            left -= items[place].tokens
            fitting.append(place)
    return fitting


def is_held(digest: str, held: AbstractSet[str]) -> bool:
    """Whether a digest, in full or shortened, is among those that the reader holds."""
    return digest in held or digest[:SHORT_DIGEST] in held
