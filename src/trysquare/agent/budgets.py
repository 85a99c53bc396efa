"""Budgets: what a run may spend, and what it has spent so far."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from trysquare.models.messages import Usage


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """What a run may spend. None means no limit of that kind; there is always one of steps."""

    steps: int = 40
    tokens: int | None = None
    """Prompt and completion together."""
    seconds: float | None = None
    cost: float | None = None

    def narrowed(self, other: Budget) -> Budget:
        """What both allow."""
        return Budget(
            steps=min(self.steps, other.steps),
            tokens=_least(self.tokens, other.tokens),
            seconds=_least(self.seconds, other.seconds),
            cost=_least(self.cost, other.cost),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    """What a run has spent."""

    steps: int = 0
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)

    @property
    def tokens(self) -> int:
        """Prompt and completion together."""
        return self.usage.prompt_tokens + self.usage.completion_tokens

    def plus(self, usage: Usage, *, seconds: float) -> Spent:
        """The same and one step more."""
        return replace(self, steps=self.steps + 1, seconds=self.seconds + seconds, usage=self.usage + usage)

    def used(self, usage: Usage) -> Spent:
        """The same and what a tool asked of a model, which is no step of its own."""
        return replace(self, usage=self.usage + usage)

    def took(self, seconds: float) -> Spent:
        """The same and some time more."""
        return replace(self, seconds=self.seconds + seconds)


def exhausted(budget: Budget, spent: Spent) -> str | None:
    """Which part of the budget is used up, in a sentence; None where there is some of each left."""
    if spent.steps >= budget.steps:
        return f"All {budget.steps} steps are used."
    if budget.tokens is not None and spent.tokens >= budget.tokens:
        return f"{spent.tokens:,} of {budget.tokens:,} tokens are used."
    if budget.seconds is not None and spent.seconds >= budget.seconds:
        return f"{spent.seconds:.0f} of {budget.seconds:.0f} seconds are used."
    if budget.cost is not None and (spent.usage.cost or 0.0) >= budget.cost:
        return f"{spent.usage.cost:.4f} of {budget.cost:.4f} are spent."
    return None


def _least(one: float | None, other: float | None) -> Any:
    known = [limit for limit in (one, other) if limit is not None]
    return min(known) if known else None
