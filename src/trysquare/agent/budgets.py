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
    """The time of the model and of the tools; that of people who are asked is not counted."""
    usage: Usage = field(default_factory=Usage)

    @property
    def tokens(self) -> int:
        """Prompt and completion together."""
        return self.usage.prompt_tokens + self.usage.completion_tokens

    def plus(self, usage: Usage) -> Spent:
        """The same and one step more."""
        return replace(self, steps=self.steps + 1, usage=self.usage + usage)

    def used(self, usage: Usage) -> Spent:
        """The same and what a tool asked of a model, which is no step of its own."""
        return replace(self, usage=self.usage + usage)


class RunTime:
    """The seconds that a run may use, for its model and its tools together.

    They are counted by what each step took, as it is recorded, so that a job that is taken up again has as much left as
    it had before.
    """

    def __init__(self, limit: float | None) -> None:
        self._limit = limit
        self.used = 0.0

    def spend(self, seconds: float) -> None:
        """A step took so long."""
        self.used += seconds

    def left(self) -> float | None:
        """How long the next step may take; None without a limit."""
        return None if self._limit is None else max(self._limit - self.used, 0.0)

    def is_up(self) -> bool:
        """Whether nothing is left."""
        return self.left() == 0.0


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
