"""Request, inputs and outcome of a run: also what constrains its answers and what its workspace contains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from trysquare.agents.budget import Spent
from trysquare.agents.capabilities import Probe
from trysquare.agents.definition import AgentDefinition
from trysquare.core.approvals import Approvals
from trysquare.core.context import CallContext
from trysquare.core.json import JsonObject
from trysquare.core.toolset import Toolset
from trysquare.grammar import CallGrammar, Facts, narrowed_tools
from trysquare.models import Constraint, Model, Sampling, ToolSpec
from trysquare.workbench.git import workspace_branches, workspace_files


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


MakeConstraint: TypeAlias = Callable[[Sequence[ToolSpec], bool], Constraint | None]
"""Builds the constraint of answers for these offers, with or without parallel calls."""


def call_constraint(offers: Sequence[ToolSpec], parallel: bool) -> Constraint | None:
    """Build the grammar of the calls, loosely: tools check their arguments themselves."""
    return CallGrammar(offers, parallel=parallel, loosely=True)


MAX_FILES = 10_000
_MAX_COUNTED = 20 * 1024 * 1024
"""Bytes read to count lines; of a larger workspace the longest file is unknown."""


class WorkspaceNarrowing:
    """Narrows offers to what the workspace contains, cached until `forget`."""

    def __init__(self, root: Path, hidden: Sequence[str] = ()) -> None:
        self._root, self._hidden = root, hidden
        self._facts: Facts | None = None

    def __call__(self, offer: ToolSpec) -> ToolSpec | None:
        """The offer with only existing names in its arguments; None if nothing is left."""
        if self._facts is None:
            self._facts = workspace_facts(self._root, self._hidden)
        schema = narrowed_tools({offer.name: offer.schema}, self._facts).get(offer.name)
        return None if schema is None else replace(offer, schema=schema)

    def forget(self) -> None:
        self._facts = None


def workspace_facts(root: Path, hidden: Sequence[str] = ()) -> Facts:
    """Files, branches and line counts of a workspace; omitted where there are too many."""
    files, branches = workspace_files(root, most=MAX_FILES + 1, hidden=hidden), workspace_branches(root) or None
    if len(files) > MAX_FILES:
        return Facts(branches=branches)
    return Facts(files=files, branches=branches, most_lines=_most_lines(root, files))


def _most_lines(root: Path, files: list[str]) -> int | None:
    left, most = _MAX_COUNTED, 1
    for path in files:
        try:
            left -= (root / path).stat().st_size
            if left < 0:
                return None
            most = max(most, (root / path).read_bytes().count(b"\n") + 1)
        except OSError:
            continue
    return most


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
