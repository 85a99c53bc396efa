"""BotDefinition: what a bot's folder says, as frozen values."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trysquare.bots.naming import ToolName, clean_name, tool_names
from trysquare.bots.plan import Jump, JumpPolicy, Plan, Policy, Position
from trysquare.bots.rules import Rule

DEFAULT_BUDGET = 6_000
"""Tokens of one instruction pack, where nothing else is set."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    """What it takes to leave an action, and how much may be said in it."""

    policy: Policy = "manual"
    proof: bool = False
    """Whether a person must prove the close; the bot's agent alone cannot."""
    requires_clean: bool = False
    """Whether the rules must be without violations before it is closed."""
    budget_tokens: int = DEFAULT_BUDGET


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionDefinition:
    """A base action: every behavior has it."""

    name: str
    folder: str
    workflow: bool = True
    """Whether it has a place in the order; an independent action can be called at any time and moves nothing."""
    description: str = ""
    instructions: tuple[str, ...] = ()
    trigger_patterns: tuple[str, ...] = ()
    gate: Gate = field(default_factory=Gate)


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionAddition:
    """What one behavior adds to a base action."""

    action: str
    instructions: tuple[str, ...] = ()
    trigger_patterns: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One of the answers to a decision, and what follows from it."""

    name: str
    description: str = ""
    outcome: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionCriterion:
    """A decision to take before the work: the question, its options, and what the decision changes."""

    name: str
    question: str
    description: str = ""
    options: tuple[Option, ...] = ()
    outcome: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Guardrails:
    """What is asked, assumed and decided before a behavior's work begins."""

    key_questions: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    context_instructions: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    human_activity: tuple[str, ...] = ()
    decision_criteria: tuple[DecisionCriterion, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class KnowledgeConfig:
    """A document that build_knowledge makes: where it goes and the shape that it has."""

    name: str
    file: str
    output: str
    """Where the document lies, relative to the project."""
    template: str
    template_text: str
    description: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderConfig:
    """A file that render_output makes of a document, by a template or by a builder."""

    name: str
    file: str
    input: str
    output: str
    template: str | None = None
    template_text: str | None = None
    builder: str | None = None
    description: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class SynchronizeConfig:
    """A rendered file whose edits synchronize_output carries back into the document."""

    name: str
    file: str
    render: str
    """The render config that made the file."""
    input: str
    """The rendered file, relative to the project."""
    output: str
    """The document that takes the edits, relative to the project."""
    carries: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """What a behavior produces."""

    knowledge: tuple[KnowledgeConfig, ...] = ()
    knowledge_instructions: tuple[str, ...] = ()
    renders: tuple[RenderConfig, ...] = ()
    render_instructions: tuple[str, ...] = ()
    synchronizations: tuple[SynchronizeConfig, ...] = ()
    synchronize_instructions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class BehaviorDefinition:
    """One behavior: a kind of work, with what is asked, decided, produced and held to in it."""

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
    """Optional parts that the folder does not have, by the path where they would be."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BotDefinition:
    """A bot: its behaviors and actions in order, the gates between them, and everything they say."""

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
    """Rules of all behaviors."""
    gates: Mapping[Position, Gate] = field(default_factory=dict[Position, Gate])
    """The gate of every action of every behavior."""
    jumps: Mapping[Jump, JumpPolicy] = field(default_factory=dict[Jump, JumpPolicy])
    missing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """What was read but not understood: keys that nothing uses."""
    digests: Mapping[str, str] = field(default_factory=dict[str, str])
    """The digest of every file that was read, by its path in the folder."""
    run: str | None = None
    """The run whose files the paths name; None for the main one."""

    @property
    def digest(self) -> str:
        """One digest of everything that was read."""
        lines = "".join(f"{path}\0{digest}\n" for path, digest in sorted(self.digests.items()))
        return hashlib.sha256(lines.encode()).hexdigest()

    @property
    def workflow_actions(self) -> tuple[ActionDefinition, ...]:
        """The actions that have a place in the order."""
        return tuple(action for action in self.actions if action.workflow)

    @property
    def independent_actions(self) -> tuple[ActionDefinition, ...]:
        """The actions that stand outside the order."""
        return tuple(action for action in self.actions if not action.workflow)

    def behavior(self, name: str) -> BehaviorDefinition:
        """The behavior of that name; `KeyError` where there is none."""
        return _named(self.behaviors, name)

    def action(self, name: str) -> ActionDefinition:
        """The action of that name; `KeyError` where there is none."""
        return _named(self.actions, name)

    def gate(self, behavior: str, action: str) -> Gate:
        """The gate of an action in a behavior."""
        return self.gates[Position(behavior=behavior, action=action)]

    @property
    def all_rules(self) -> tuple[Rule, ...]:
        """The rules of the bot and of every behavior."""
        return (*self.rules, *(rule for behavior in self.behaviors for rule in behavior.rules))

    def rules_of(self, behavior: str) -> tuple[Rule, ...]:
        """The rules of the bot and of a behavior, the most important first."""
        return tuple(sorted((*self.rules, *self.behavior(behavior).rules), key=lambda rule: (rule.priority, rule.name)))

    def triggers_of(self, behavior: str, action: str) -> tuple[str, ...]:
        """The trigger patterns of an action in a behavior: its own first, then those of the base action."""
        addition = self.behavior(behavior).additions.get(action)
        own = addition.trigger_patterns if addition else ()
        return tuple(dict.fromkeys((*own, *self.action(action).trigger_patterns)))

    def tool_names(self) -> tuple[ToolName, ...]:
        """The tools that profile `full` lists."""
        return tuple(
            tool_names(self.name, (each.name for each in self.behaviors), (each.name for each in self.actions))
        )

    def plan(self) -> Plan:
        """The order and the gates alone, as the workflow needs them."""
        return Plan(
            bot=self.name,
            behaviors=tuple(behavior.name for behavior in self.behaviors),
            actions=tuple(action.name for action in self.workflow_actions),
            independent=frozenset(action.name for action in self.independent_actions),
            policies={at: gate.policy for at, gate in self.gates.items() if self.action(at.action).workflow},
            jumps=self.jumps,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """What differs between two readings of a bot's folder."""

    parts: tuple[str, ...]
    """The parts that differ: `bot`, `behavior shape`, `action render_output`, `rules`."""
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.parts)


def changed_parts(before: BotDefinition, after: BotDefinition) -> Changes:
    """What a reload brought, by part and by file."""
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


def _named(values: tuple[Any, ...], name: str) -> Any:
    found = next((value for value in values if value.name == name), None)
    if found is None:
        raise KeyError(name)
    return found
