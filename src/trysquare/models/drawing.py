"""Drawing: one of several tokens, by chance or the likeliest."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

from trysquare.models.model import Sampling


class Likely(Protocol):
    """A token with how likely it is."""

    @property
    def token(self) -> int:
        """Its number."""
        ...

    @property
    def probability(self) -> float:
        """Its probability, or a share that is in proportion to it."""
        ...


L = TypeVar("L", bound=Likely)


def draw(candidates: Sequence[L], sampling: Sampling, source: random.Random) -> int:
    """The likeliest at temperature 0; else one by chance among the likeliest `top_k` that together make `top_p`."""
    ranked = sorted(candidates, key=lambda candidate: candidate.probability, reverse=True)
    highest = ranked[0].probability
    if sampling.temperature <= 0 or highest <= 0:
        return ranked[0].token
    kept = _nucleus(ranked[: sampling.top_k or None], sampling.top_p)
    weights = [(candidate.probability / highest) ** (1 / sampling.temperature) for candidate in kept]
    return source.choices([candidate.token for candidate in kept], weights)[0]


def _nucleus(ranked: Sequence[L], top_p: float) -> list[L]:
    """As many of the likeliest as make a share of `top_p`, and at least one."""
    wanted = top_p * sum(candidate.probability for candidate in ranked)
    kept: list[L] = []
    mass = 0.0
    for candidate in ranked:
        if kept and mass >= wanted:
            break
        kept.append(candidate)
        mass += candidate.probability
    return kept
