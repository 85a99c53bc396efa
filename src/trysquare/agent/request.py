"""AgentRequest: what somebody asks of an agent, as a value that a job can keep."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from trysquare.agent.budgets import Budget
from trysquare.agent.definition import AgentDefinition
from trysquare.core.types import JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentRequest:
    """Which agent is to do what, and how much it may spend. What is None is as the agent's definition says."""

    agent: str
    task: str
    model: str | None = None
    steps: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None
    answer_tokens: int | None = None
    principal: str | None = None
    """Who asks, where it is not the user of this machine."""

    def applied(self, definition: AgentDefinition) -> AgentDefinition:
        """The definition with the budget of this request, which may be larger or smaller."""
        own = definition.budget
        budget = Budget(
            steps=own.steps if self.steps is None else self.steps,
            tokens=own.tokens if self.tokens is None else self.tokens,
            seconds=own.seconds if self.seconds is None else self.seconds,
            cost=own.cost if self.cost is None else self.cost,
        )
        answer_tokens = definition.answer_tokens if self.answer_tokens is None else self.answer_tokens
        return replace(definition, budget=budget, answer_tokens=answer_tokens)

    def to_json(self) -> JsonObject:
        """The request as a job keeps it."""
        return asdict(self)

    @classmethod
    def from_json(cls, kept: JsonObject) -> AgentRequest:
        """The request that was kept."""
        return cls(**kept)
