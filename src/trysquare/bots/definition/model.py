"""Definition of a bot as frozen values."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trysquare.bots.definition.folder import ToolName, clean_name, tool_names
from trysquare.bots.documents.base import DocumentType
from trysquare.bots.documents.paths import schema_at
from trysquare.bots.documents.shapes import properties_of
from trysquare.bots.documents.story import StoryGraph
from trysquare.bots.scanners.base import Rule
from trysquare.bots.workflow.machine import PROOF, Jump, JumpPolicy, Plan, Policy, Position, Preset, RunsOf, Strength
from trysquare.core.json import JsonObject

DEFAULT_BUDGET = 6_000
_JUMPS: tuple[Jump, ...] = ("ahead", "reopened")
_RANKS: dict[JumpPolicy, int] = {"allow": 0, "confirm": 1, "deny": 2}


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    """Conditions for closing an action, and its token budget."""

    policy: Policy = "manual"
    proof: bool = False
    """Whether a human must prove the close; the bot's agent alone cannot."""
    requires_clean: bool = False
    budget_tokens: int = DEFAULT_BUDGET
    assignees: tuple[str, ...] = ()
    """Principals who may close it; empty means everybody."""
    reviewers: tuple[str, ...] = ()
    """Principals who may prove it; with reviewers, it needs proof."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionDefinition:
    """A base action: every behavior has it, or those that it names."""

    name: str
    folder: str
    """Empty for an action that `bot_config.json` describes."""
    workflow: bool = True
    """Whether it is part of the order; an independent action can be called at any time and moves nothing."""
    description: str = ""
    instructions: tuple[str, ...] = ()
    trigger_patterns: tuple[str, ...] = ()
    gate: Gate = field(default_factory=Gate)
    behaviors: frozenset[str] | None = None
    """The behaviors that have it; None for all."""

    def is_of(self, behavior: str) -> bool:
        return self.behaviors is None or behavior in self.behaviors


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionAddition:
    """What one behavior adds to a base action."""

    instructions: tuple[str, ...] = ()
    trigger_patterns: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    name: str
    description: str = ""
    outcome: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionCriterion:
    """A decision to make before the work: the question and its options."""

    name: str
    question: str
    description: str = ""
    options: tuple[Option, ...] = ()
    outcome: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Guardrails:
    """Questions, assumptions and decisions before the work of a behavior."""

    key_questions: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    context_instructions: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    human_activity: tuple[str, ...] = ()
    decision_criteria: tuple[DecisionCriterion, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class KnowledgeConfig:
    """A document that build_knowledge writes, or many: its type, and its template or schema."""

    name: str
    file: str
    output: str
    """Its path; with `*` in the name of the file, it stands for many documents."""
    template: str | None = None
    template_text: str | None = None
    description: str = ""
    type: DocumentType = field(default_factory=DocumentType)
    declared: bool = False
    """Whether the config names the type, or it was inferred."""
    schema_file: str | None = None
    required: bool = True
    """Whether a project without it has a violation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderConfig:
    """A file that render_output writes from a document, by a template or a builder."""

    name: str
    file: str
    input: str
    output: str
    template: str | None = None
    template_text: str | None = None
    builder: str | None = None
    description: str = ""
    each: str | None = None
    """A JSONPath: every item that it selects has a file of its own."""
    type: DocumentType = field(default_factory=StoryGraph)
    """The type of the input."""
    provided: bool = False
    """Whether the project brings the input along, so that no behavior builds it."""
    synchronize: bool = False
    """Whether edits of the page are carried back without a config of its own."""

    @property
    def outputs(self) -> str:
        """The path of the output, with `*` for what the items fill in."""
        return re.sub(r"\*?\{\{[^{}]*\}\}\*?", "*", self.output) if self.each is not None else self.output

    def seen_schema(self) -> tuple[JsonObject, ...] | None:
        """Schemas of what the template sees: the document, then the item of `each`; None if nothing tells."""
        whole = self.type.view_schema()
        if whole is None:
            return None
        if "*" in self.input:
            named = {"file": {"type": "string"}, "stem": {"type": "string"}}
            whole = {**whole, "properties": {**whole.get("properties", {}), **named}}
            if "*" not in self.output and self.each is None:
                listed = {"documents": {"type": "array", "items": whole}}
                return ({"type": "object", "properties": listed, "$defs": whole.get("$defs", {})},)
        if self.each is None:
            return (whole,)
        item = schema_at(self.each, whole)
        known = properties_of(item, whole) if item is not None else None
        inner: JsonObject = (
            {} if known is None else {"type": "object", "properties": {**known, "number": {}, "value": {}}}
        )
        return (whole, inner)


@dataclass(frozen=True, kw_only=True, slots=True)
class SynchronizeConfig:
    """A rendered file whose edits synchronize_output merges back into the document."""

    name: str
    file: str
    render: str
    input: str
    output: str
    carries: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    knowledge: tuple[KnowledgeConfig, ...] = ()
    knowledge_instructions: tuple[str, ...] = ()
    renders: tuple[RenderConfig, ...] = ()
    render_instructions: tuple[str, ...] = ()
    synchronizations: tuple[SynchronizeConfig, ...] = ()
    synchronize_instructions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class BehaviorDefinition:
    """One behavior: a kind of work."""

    name: str
    folder: str
    description: str = ""
    goal: str = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()
    trigger_patterns: tuple[str, ...] = ()
    guardrails: Guardrails = field(default_factory=Guardrails)
    content: Content = field(default_factory=Content)
    rules: tuple[Rule, ...] = ()
    additions: Mapping[str, ActionAddition] = field(default_factory=dict[str, ActionAddition])
    missing: tuple[str, ...] = ()
    """Paths of optional parts that the folder does not have."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BotDefinition:
    """A bot: its behaviors and actions in order, and the gates between them."""

    name: str
    root: Path
    behaviors: tuple[BehaviorDefinition, ...]
    actions: tuple[ActionDefinition, ...]
    """The workflow actions in order, then the independent ones."""
    description: str = ""
    goal: str = ""
    instructions: tuple[str, ...] = ()
    trigger_patterns: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    gates: Mapping[Position, Gate] = field(default_factory=dict[Position, Gate])
    jumps: Mapping[Jump, JumpPolicy] = field(default_factory=dict[Jump, JumpPolicy])
    presets: Mapping[str, Preset] = field(default_factory=dict[str, Preset])
    runs: RunsOf = "project"
    missing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """Unknown keys, folders and files."""
    digests: Mapping[str, str] = field(default_factory=dict[str, str])
    """Digests of all files by path."""
    run: str | None = None
    """The run whose files the paths name; None for the main run."""
    proofs: frozenset[Position] = field(init=False, compare=False, repr=False)
    """The gates that demand proof: most often few or none of many actions."""

    def __post_init__(self) -> None:
        found = frozenset(position for position, gate in self.gates.items() if gate.proof)
        object.__setattr__(self, "proofs", found)

    @property
    def digest(self) -> str:
        lines = "".join(f"{path}\0{digest}\n" for path, digest in sorted(self.digests.items()))
        return hashlib.sha256(lines.encode()).hexdigest()

    def behavior(self, name: str) -> BehaviorDefinition:
        """The behavior of that name, or `KeyError`."""
        return _by_name(self.behaviors, name)

    def action(self, name: str) -> ActionDefinition:
        """The action of that name, or `KeyError`."""
        return _by_name(self.actions, name)

    @property
    def all_rules(self) -> tuple[Rule, ...]:
        return (*self.rules, *(rule for behavior in self.behaviors for rule in behavior.rules))

    def rules_of(self, behavior: str) -> tuple[Rule, ...]:
        """The rules of the bot and of a behavior, by priority."""
        return tuple(sorted((*self.rules, *self.behavior(behavior).rules), key=lambda rule: (rule.priority, rule.name)))

    def triggers_of(self, behavior: str, action: str) -> tuple[str, ...]:
        """Trigger patterns of an action in a behavior: its own first, then those of the base action."""
        addition = self.behavior(behavior).additions.get(action)
        own = addition.trigger_patterns if addition else ()
        return tuple(dict.fromkeys((*own, *self.action(action).trigger_patterns)))

    def actions_of(self, behavior: str) -> tuple[ActionDefinition, ...]:
        """The actions that a behavior has, in order."""
        return tuple(action for action in self.actions if action.is_of(behavior))

    def tool_names(self) -> tuple[ToolName, ...]:
        actions = {behavior.name: [each.name for each in self.actions_of(behavior.name)] for behavior in self.behaviors}
        return tuple(tool_names(self.name, actions))

    def plan(self) -> Plan:
        """The order and the gates for the workflow."""
        return Plan(
            bot=self.name,
            behaviors=tuple(behavior.name for behavior in self.behaviors),
            actions=tuple(action.name for action in self.actions if action.workflow),
            absent=frozenset(
                Position(behavior=behavior.name, action=action.name)
                for action in self.actions
                if action.behaviors is not None
                for behavior in self.behaviors
                if not action.is_of(behavior.name)
            ),
            independent=frozenset(action.name for action in self.actions if not action.workflow),
            policies={at: gate.policy for at, gate in self.gates.items() if self.action(at.action).workflow},
            jumps=self.jumps,
            presets=self.presets,
        )


def strength_of(definition: BotDefinition) -> Strength:
    plan = definition.plan()
    order = [each for each in plan.order if plan.policy(each) != "skip"]
    demands = {str(each): frozenset(_demands(definition, each)) for each in order}
    return Strength(
        digest=definition.digest,
        order=tuple(map(str, order)),
        gates={path: found for path, found in demands.items() if found},
        independent=plan.independent,
        jumps={jump: _RANKS[plan.jump_policy(jump)] for jump in _JUMPS},
    )


def _demands(definition: BotDefinition, position: Position) -> Iterator[str]:
    gate = definition.gates[position]
    if gate.proof:
        yield PROOF
    if gate.reviewers:
        yield f"an approval by {', '.join(gate.reviewers)}"
    if gate.assignees:
        yield f"work by {', '.join(gate.assignees)}"
    if not gate.requires_clean:
        return
    yield "clean rules"
    for rule in definition.rules_of(position.behavior):
        if rule.scanner is None or rule.severity != "error":
            continue
        # A changed scanner may find less, which its text does not show.
        digest = hashlib.sha256(repr(rule.scanner).encode("utf-8", "backslashreplace")).hexdigest()[:12]
        yield f"rule {rule.name} as it was ({digest})"
    for config in definition.behavior(position.behavior).content.knowledge:
        yield f"the document {config.output}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    parts: tuple[str, ...]
    """For example `bot`, `behavior shape`, `action render_output`, `rules`."""
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.parts)


def changed_parts(before: BotDefinition, after: BotDefinition) -> Changes:
    """Compare two definitions, by part and by file."""
    old, new = before.digests, after.digests
    added, removed = sorted(new.keys() - old.keys()), sorted(old.keys() - new.keys())
    changed = sorted(path for path in new.keys() & old.keys() if new[path] != old[path])
    parts = dict.fromkeys(_part_of(path) for path in sorted((*added, *changed, *removed)))
    return Changes(parts=tuple(parts), added=tuple(added), changed=tuple(changed), removed=tuple(removed))


_PARTS = {"behaviors": "behavior", "base_actions": "action"}


def _part_of(path: str) -> str:
    pieces = path.split("/")
    if len(pieces) > 2 and pieces[0] in _PARTS:
        return f"{_PARTS[pieces[0]]} {clean_name(pieces[1])}"
    return "rules" if pieces[0] == "rules" else "bot"


def _by_name(values: tuple[Any, ...], name: str) -> Any:
    return {value.name: value for value in values}[name]
