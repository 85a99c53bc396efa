"""What an action receives and returns, and the instruction parts that several actions share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from trysquare.bots.artifacts import SavedAnswers
from trysquare.bots.definition.model import ActionDefinition, BehaviorDefinition, BotDefinition
from trysquare.bots.instructions import Part
from trysquare.bots.parameters import Parameters, Scope
from trysquare.bots.scanners.base import Rule
from trysquare.core.json import JsonObject

FIRST, OWN, GIVEN, BEHAVIOR, SAVED, RULES, EARLIER = 100, 95, 85, 80, 70, 60, 40
"""Priorities of parts: the highest survive a short budget."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionInput:
    """One call of an action."""

    definition: BotDefinition
    behavior: BehaviorDefinition
    action: ActionDefinition
    project: Path
    parameters: Parameters = field(default_factory=Parameters)
    scope: Scope = field(default_factory=Scope)
    saved: SavedAnswers = field(default_factory=SavedAnswers)
    only_reads: bool = False
    """Whether only the instructions are wanted, so that nothing may be written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionOutput:
    """The parts of an action's instructions in reading order, with the data it produced."""

    parts: tuple[Part, ...] = ()
    data: JsonObject = field(default_factory=dict[str, Any])
    warnings: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Optional files of the bot that this action could use and that do not exist."""
    message: str | None = None
    failure: str | None = None
    """Why the action produced nothing, although its instructions are returned."""


Action: TypeAlias = Callable[[ActionInput], ActionOutput]
"""An action. It may read and write in the project; it does not move the workflow."""


def without_empty(**fields: Any) -> JsonObject:
    """The fields that have a value, in the given order."""
    return {name: value for name, value in fields.items() if value}


def base_parts(call: ActionInput) -> list[Part]:
    """The parts of every action: its own text, the additions and goal of the behavior, the bot's text, the scope."""
    behavior, bot = call.behavior, call.definition
    addition = behavior.additions.get(call.action.name)
    of_behavior = without_empty(
        goal=behavior.goal,
        inputs=list(behavior.inputs),
        outputs=list(behavior.outputs),
        instructions=list(behavior.instructions),
    )
    of_bot = without_empty(goal=bot.goal, instructions=list(bot.instructions))
    return [
        Part(name="base_instructions", content=list(call.action.instructions), priority=FIRST),
        Part(name="action_instructions", content=list(addition.instructions) if addition else [], priority=OWN),
        Part(name="behavior_instructions", content=of_behavior, priority=BEHAVIOR),
        Part(name="bot_instructions", content=of_bot, priority=BEHAVIOR),
        Part(name="scope", content=call.scope.to_json(), priority=OWN),
    ]


def saved_parts(call: ActionInput) -> list[Part]:
    """The answers and decisions of this behavior, then those of the others."""
    own, answers, decisions = call.behavior.name, dict(call.saved.answers), dict(call.saved.decisions)
    return [
        Part(name="clarifications", content=answers.pop(own, {}), priority=SAVED),
        Part(name="decisions", content=decisions.pop(own, {}), priority=SAVED),
        Part(name="earlier_clarifications", content=answers, priority=EARLIER),
        Part(name="earlier_decisions", content=decisions, priority=EARLIER),
    ]


def rules_parts(call: ActionInput, *, priority: int = RULES, examples: bool = True) -> list[Part]:
    """The behavior's rules within the scope: one part each, so that some fit a short budget, or a single summary."""
    rules = [rule for rule in call.definition.rules_of(call.behavior.name) if call.scope.holds(rule)]
    if not examples:
        return [Part(name="rules", content={rule.name: rule.description for rule in rules}, priority=priority)]
    return [Part(name=f"rule:{rule.name}", content=_rule(rule), priority=priority) for rule in rules]


def _rule(rule: Rule) -> JsonObject:
    content: JsonObject = {"description": rule.description, "severity": rule.severity}
    for name, side in (("do", rule.do), ("dont", rule.dont)):
        if side.description or side.examples:
            content[name] = {"description": side.description, "examples": list(side.examples)}
    return content


def missing_files(call: ActionInput, part: str, *, parent: str = "") -> tuple[str, ...]:
    """Files that the bot lacks for this action: its instructions, `part` of the behavior, or the whole `parent`."""
    own = (path for path in call.definition.missing if path == f"{call.action.folder}/instructions.json")
    behavior = (path for path in call.behavior.missing if part in path or (parent and path.endswith(f"/{parent}")))
    return (*own, *behavior)
