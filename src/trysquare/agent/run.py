"""AgentRun: everything that one run of an agent needs; and AgentOutcome: what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from trysquare.agent.budgets import Spent
from trysquare.agent.capabilities import Probe
from trysquare.agent.definition import AgentDefinition
from trysquare.agent.toolbox import MakeConstraint, Narrow
from trysquare.core.consent import Approvals
from trysquare.core.context import CallContext
from trysquare.core.toolset import Toolset
from trysquare.core.types import JsonObject
from trysquare.models.model import Model, Sampling

ANSWER_TOKENS = 4_096
"""Of one answer, where nothing is set; less where that is more than a quarter of the model's context."""
LOCAL_ANSWER_TOKENS = 1_024
"""The same for a model in this process, which writes slowly."""
Status: TypeAlias = Literal["finished", "gave_up", "stuck", "out_of_budget"]


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentRun:
    """One run: who works on what, with which model and tools, and what it may do."""

    definition: AgentDefinition
    task: str
    model: Model
    toolset: Toolset
    root: Path | None = None
    """The folder that it works in."""
    context: CallContext = field(default_factory=CallContext)
    approvals: Approvals | None = None
    """Where consent is kept; without it a call that the policy wants a person for does not run."""
    probes: Mapping[str, Probe] = field(default_factory=dict[str, Probe])
    constraint: MakeConstraint | None = None
    """Makes the grammar that answers are held to; without it a model is only told, and its text is read."""
    narrow: Narrow | None = None
    sampling: Sampling = field(default_factory=Sampling)
    answer_tokens: int | None = None
    """How many tokens one answer may have, where the definition does not say; never more than half of the context."""
    result_characters: int = 8_000
    least_certainty: float = 0.35
    """The probability of the chosen tool below which the loop looks for a better one, or asks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentOutcome:
    """How a run ended."""

    status: Status
    summary: str
    """What was done, or why it ended otherwise."""
    modified_files: tuple[str, ...] = ()
    spent: Spent = field(default_factory=Spent)
    calls: int = 0
    waiting: tuple[str, ...] = ()
    """Commands with which a person can let a refused call run."""
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tools that the agent could have had, and why they were not there."""

    @property
    def finished(self) -> bool:
        """Whether the work is done, as far as it can be checked."""
        return self.status == "finished"

    def to_json(self) -> JsonObject:
        """The outcome as a journal and an answer keep it."""
        usage = self.spent.usage
        return {
            "status": self.status,
            "summary": self.summary,
            "modified_files": list(self.modified_files),
            "steps": self.spent.steps,
            "calls": self.calls,
            "seconds": round(self.spent.seconds, 3),
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "forced_tokens": usage.forced_tokens,
            "cost": usage.cost,
            "waiting": list(self.waiting),
            "missing": dict(self.missing),
        }
