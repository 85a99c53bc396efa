"""The parts that the instructions of every action have, and those that several of them share."""

from __future__ import annotations

from trysquare.bots.actions.work import Work
from trysquare.bots.instructions import Part
from trysquare.bots.rules import Rule
from trysquare.core.types import JsonObject

FIRST, OWN, GIVEN, BEHAVIOR, RULES, SAVED, EARLIER = 100, 95, 85, 80, 60, 70, 40
"""What is kept first where the budget is short."""


def base_parts(work: Work) -> list[Part]:
    """What is said in every action: its own text, what the behavior adds and is for, and what holds in all of it."""
    addition = work.behavior.additions.get(work.action.name)
    return [
        Part(name="base_instructions", content=list(work.action.instructions), priority=FIRST),
        Part(name="action_instructions", content=list(addition.instructions) if addition else [], priority=OWN),
        Part(name="behavior_instructions", content=_behavior(work), priority=BEHAVIOR),
        Part(name="bot_instructions", content=_bot(work), priority=BEHAVIOR),
        Part(name="scope", content=work.scope.to_json(), priority=OWN),
    ]


def _bot(work: Work) -> JsonObject:
    told: JsonObject = {"goal": work.definition.goal, "instructions": list(work.definition.instructions)}
    return {name: part for name, part in told.items() if part}


def _behavior(work: Work) -> JsonObject:
    behavior = work.behavior
    told: JsonObject = {"goal": behavior.goal, "inputs": list(behavior.inputs), "outputs": list(behavior.outputs)}
    told["instructions"] = list(behavior.instructions)
    return {name: part for name, part in told.items() if part}


def saved_parts(work: Work) -> list[Part]:
    """The answers and decisions of this behavior, and those of the others."""
    own, answers, decisions = work.behavior.name, dict(work.saved.answers), dict(work.saved.decisions)
    return [
        Part(name="clarifications", content=answers.pop(own, {}), priority=SAVED),
        Part(name="decisions", content=decisions.pop(own, {}), priority=SAVED),
        Part(name="earlier_clarifications", content=answers, priority=EARLIER),
        Part(name="earlier_decisions", content=decisions, priority=EARLIER),
    ]


def rules_parts(work: Work, *, priority: int = RULES, examples: bool = True) -> list[Part]:
    """The rules of the behavior that the scope touches, one part each, so that some of them fit when not all do."""
    rules = [rule for rule in work.definition.rules_of(work.behavior.name) if work.scope.holds(rule)]
    if not examples:
        return [Part(name="rules", content={rule.name: rule.description for rule in rules}, priority=priority)]
    return [Part(name=f"rule:{rule.name}", content=_rule(rule), priority=priority) for rule in rules]


def _rule(rule: Rule) -> JsonObject:
    told: JsonObject = {"description": rule.description, "severity": rule.severity}
    for name, side in (("do", rule.do), ("dont", rule.dont)):
        if side.description or side.examples:
            told[name] = {"description": side.description, "examples": list(side.examples)}
    return told


def missing_below(work: Work, part: str, *, of: str = "") -> tuple[str, ...]:
    """What the bot's folder lacks for this action: its own texts, a part of the behavior, or all that it is part of."""
    own = (path for path in work.definition.missing if path == f"{work.action.folder}/instructions.json")
    behavior = (path for path in work.behavior.missing if part in path or (of and path.endswith(f"/{of}")))
    return (*own, *behavior)
