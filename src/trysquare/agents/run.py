"""Request, inputs and outcome of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from trysquare.agents.budget import Spent
from trysquare.agents.capabilities import Probe
from trysquare.agents.definition import AgentDefinition
from trysquare.agents.toolbox import MakeConstraint, WorkspaceNarrowing
from trysquare.core.approvals import Approvals
from trysquare.core.context import CallContext
from trysquare.core.json import JsonObject
from trysquare.core.toolset import Toolset
from trysquare.models import Model, Sampling


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentRequest:
    """Which agent to run on which task; None leaves a limit to its definition."""

    agent: str
    task: str
    model: str | None = None
    steps: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None
    answer_tokens: int | None = None
    principal: str | None = None
    """The caller, if it is not the user of this machine."""

    def applied(self, definition: AgentDefinition) -> AgentDefinition:
        """The definition with the limits of this request."""
        given = {name: getattr(self, name) for name in ("steps", "tokens", "seconds", "cost")}
        budget = replace(definition.budget, **{name: limit for name, limit in given.items() if limit is not None})
        answer_tokens = definition.answer_tokens if self.answer_tokens is None else self.answer_tokens
        return replace(definition, budget=budget, answer_tokens=answer_tokens)

    def to_json(self) -> JsonObject:
        return asdict(self)


ANSWER_TOKENS = 4_096
"""Default limit of one answer; less if that is over a quarter of the context."""
LOCAL_ANSWER_TOKENS = 1_024
"""The same for a model in this process, which is slow."""
Status: TypeAlias = Literal["finished", "gave_up", "stuck", "out_of_budget"]


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentRun:
    """Inputs of one run."""

    definition: AgentDefinition
    task: str
    model: Model
    toolset: Toolset
    root: Path | None = None
    context: CallContext = field(default_factory=CallContext)
    approvals: Approvals | None = None
    """Without it, a call that needs consent is refused."""
    probes: Mapping[str, Probe] = field(default_factory=dict[str, Probe])
    constraint: MakeConstraint | None = None
    """Builds the grammar of answers; without it, calls are parsed from text."""
    narrow: WorkspaceNarrowing | None = None
    sampling: Sampling = field(default_factory=Sampling)
    answer_tokens: int | None = None
    """Limit of one answer if the definition has none; at most half of the context."""
    result_characters: int = 8_000
    min_confidence: float = 0.35
    """Probability of the chosen tool below which the loop looks for a better one or asks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentOutcome:
    status: Status
    summary: str
    modified_files: tuple[str, ...] = ()
    spent: Spent = field(default_factory=Spent)
    calls: int = 0
    waiting: tuple[str, ...] = ()
    """Commands by which the user can approve refused calls."""
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tools that were not available, with the reason."""

    @property
    def finished(self) -> bool:
        return self.status == "finished"

    def to_json(self) -> JsonObject:
        return {
            "status": self.status,
            "summary": self.summary,
            "modified_files": list(self.modified_files),
            "steps": self.spent.steps,
            "calls": self.calls,
            "seconds": round(self.spent.seconds, 3),
            **asdict(self.spent.usage),
            "waiting": list(self.waiting),
            "missing": dict(self.missing),
        }
