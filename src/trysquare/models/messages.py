"""Messages: what is said between the loop and a model, the same for every backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from trysquare.core.types import JsonObject

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CallRequest:
    """A tool call that a model wrote."""

    id: str
    """Unique in its dialogue; a backend that has none from its server makes one."""
    name: str
    arguments: JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One turn of a dialogue."""

    role: Role
    text: str = ""
    calls: tuple[CallRequest, ...] = ()
    """What an assistant's turn calls."""
    answers: str | None = None
    """The id of the call whose result a tool's turn carries."""
    failed: bool = False
    """Whether the result that a tool's turn carries is a failure."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """What an answer cost."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    forced_tokens: int = 0
    """Completion tokens that the grammar forced and that were not sampled one by one."""
    cost: float | None = None
    """In the currency of the configured prices; None where no price is known."""

    def __add__(self, other: Usage) -> Usage:
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            forced_tokens=self.forced_tokens + other.forced_tokens,
            cost=sum(known) if known else None,
        )
