"""Budget of a run (steps, tokens, cost, time) and the deadline of its steps."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, Field

from trysquare.models import Usage


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """Limits of a run; None means unlimited."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    steps: Annotated[int, Field(ge=1, le=10_000)] = 40
    tokens: Annotated[int | None, Field(ge=1)] = None
    seconds: Annotated[float | None, Field(gt=0)] = None
    cost: Annotated[float | None, Field(gt=0)] = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    steps: int = 0
    seconds: float = 0.0
    """Time of the model and the tools; waiting for the user does not count."""
    usage: Usage = field(default_factory=Usage)

    @property
    def tokens(self) -> int:
        return self.usage.prompt_tokens + self.usage.completion_tokens

    def plus(self, usage: Usage, *, steps: int) -> Spent:
        return replace(self, steps=self.steps + steps, usage=self.usage + usage)


class RunTime:
    """Seconds for the model and the tools together, counted from recorded steps so that a job can resume."""

    def __init__(self, limit: float | None) -> None:
        self._limit = limit
        self.used = 0.0

    def spend(self, seconds: float) -> None:
        self.used += seconds

    def left(self) -> float | None:
        return None if self._limit is None else max(self._limit - self.used, 0.0)


def exhausted(budget: Budget, spent: Spent) -> str | None:
    """Which limit is reached; None if none is."""
    if spent.steps >= budget.steps:
        return f"All {budget.steps} steps are used."
    if budget.tokens is not None and spent.tokens >= budget.tokens:
        return f"{spent.tokens:,} of {budget.tokens:,} tokens are used."
    if budget.seconds is not None and spent.seconds >= budget.seconds:
        return f"{spent.seconds:.0f} of {budget.seconds:.0f} seconds are used."
    if budget.cost is not None and (spent.usage.cost or 0.0) >= budget.cost:
        return f"{spent.usage.cost:.4f} of {budget.cost:.4f} are spent."
    return None


T = TypeVar("T")
GRACE = 5.0
"""Seconds for cancelled work to clean up, such as a process, before it is abandoned."""
_CANCELS = 3
"""Cancellations in that time: some code swallows the first one by mistake."""

_log = logging.getLogger(__name__)
_abandoned: set[asyncio.Task[Any]] = set()


class Late(Exception):
    """The deadline has passed."""


async def within(seconds: float | None, work: Coroutine[Any, Any, T]) -> T:
    """Await the work or raise `Late`. Work that does not react to its cancellation is abandoned."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await _end(task)
        raise
    if not task.done():
        await _end(task)
        raise Late
    return task.result()


async def _end(task: asyncio.Task[Any]) -> None:
    for _ in range(_CANCELS):
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=GRACE / _CANCELS)
        if done:
            break
    _abandoned.add(task)
    task.add_done_callback(_forget)


def _forget(task: asyncio.Task[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.info("abandoned work failed: error=%s", type(error).__name__)
