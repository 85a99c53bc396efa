"""The built-in actions by name. An action that is not among them hands out its instructions."""

from __future__ import annotations

from trysquare.bots.actions import (
    build_knowledge,
    correct_bot,
    decide_planning_criteria,
    gather_context,
    initialize_project,
    plain,
    render_output,
    synchronize_output,
    validate_rules,
)
from trysquare.bots.actions.work import Execute, Outcome, Work
from trysquare.bots.definition import BehaviorDefinition, BotDefinition
from trysquare.bots.saved import clarification_path, planning_path

BUILT_IN: dict[str, Execute] = {
    "initialize_project": initialize_project.execute,
    "gather_context": gather_context.execute,
    "decide_planning_criteria": decide_planning_criteria.execute,
    "build_knowledge": build_knowledge.execute,
    "render_output": render_output.execute,
    "synchronize_output": synchronize_output.execute,
    "validate_rules": validate_rules.execute,
    "correct_bot": correct_bot.execute,
}


def execute(work: Work) -> Outcome:
    """Do what the action of this work does."""
    return BUILT_IN.get(work.action.name, plain.execute)(work)


def produced_files(definition: BotDefinition, behavior: BehaviorDefinition, action: str) -> tuple[str, ...]:
    """The files that an action makes, relative to the project: what a person looks at before it is closed."""
    content = behavior.content
    match action:
        case "initialize_project":
            return ()
        case "gather_context":
            return (clarification_path(definition),)
        case "decide_planning_criteria":
            return (planning_path(definition),)
        case "build_knowledge":
            return tuple(each.output for each in content.knowledge)
        case "render_output":
            return tuple(each.output for each in content.renders)
        case "synchronize_output":
            return tuple(dict.fromkeys(each.output for each in content.synchronizations))
        case _:
            return tuple(each.output for each in content.knowledge)
