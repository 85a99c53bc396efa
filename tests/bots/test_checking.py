"""Exploring a workflow: a sound one passes, and each defect is shown by the calls that lead to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from trysquare.bots import check_bot, load_bot
from trysquare.bots.definition.check import check_workflow
from trysquare.bots.definition.model import ActionDefinition, BehaviorDefinition, BotDefinition, Gate
from trysquare.bots.scanners.base import Examples, PythonScanner, Rule, Target
from trysquare.bots.workflow.machine import Plan, Policy, Position

STORY_BOT = Path(__file__).parents[2] / "examples" / "bots" / "story_bot"
PLAN = Plan(bot="b", behaviors=("shape", "code"), actions=("gather", "build", "validate"))


def at(behavior: str, action: str) -> Position:
    return Position(behavior=behavior, action=action)


def with_policies(**policies: Policy) -> Plan:
    return replace(PLAN, policies={at("shape", action): policy for action, policy in policies.items()})


def test_the_story_bot_has_no_defect() -> None:
    checked = check_bot(load_bot(STORY_BOT))
    assert checked.defects == ()
    assert checked.exhaustive
    assert checked.states > 1000


def test_every_combination_of_gates_that_the_loader_lets_through_is_sound() -> None:
    policies: tuple[Policy, ...] = ("manual", "auto", "skip", "combine_next")
    for first in policies:
        for second in policies:
            assert check_workflow(with_policies(gather=first, build=second)).defects == ()


def test_a_last_action_that_waits_for_the_next_is_a_dead_end() -> None:
    plan = replace(with_policies(validate="combine_next"), jumps={"ahead": "deny", "reopened": "deny"})
    (defect,) = check_workflow(plan).defects
    assert (defect.kind, defect.position) == ("dead_end", at("shape", "validate"))
    assert defect.trace == ("shape.gather is closed", "shape.build is closed")


def test_a_behavior_of_which_everything_is_passed_over_is_a_dead_end() -> None:
    defects = check_workflow(with_policies(gather="skip", build="skip", validate="skip")).defects
    assert [each.kind for each in defects] == ["dead_end"]


def test_an_action_that_can_never_be_closed_is_a_dead_end_at_that_action() -> None:
    plan = replace(PLAN, jumps={"ahead": "deny"})
    defects = check_workflow(plan, shut=frozenset({at("code", "build")})).defects
    assert [(each.kind, each.position) for each in defects] == [
        ("dead_end", at("code", "build")),
        ("unreachable", at("code", "validate")),
    ]
    assert defects[0].trace == ("code.gather is closed",)


def test_a_jump_around_a_shut_action_is_a_way_out() -> None:
    assert check_workflow(PLAN, shut=frozenset({at("code", "build")})).defects == ()


def test_an_action_that_is_passed_over_and_must_not_be_jumped_to_is_unreachable() -> None:
    plan = replace(with_policies(build="skip"), jumps={"ahead": "deny"})
    (defect,) = check_workflow(plan).defects
    assert (defect.kind, defect.position) == ("unreachable", at("shape", "build"))
    steps = str(defect).splitlines()[1:]
    assert len(steps) == 3
    for step, position in zip(steps, ("shape.gather", "shape.validate", "shape.build"), strict=True):
        assert f" {position} " in step


def test_an_action_that_closes_itself_where_proof_is_asked_for_is_shown() -> None:
    plan = replace(with_policies(build="auto"), jumps={"ahead": "deny", "reopened": "deny"})
    (defect,) = check_workflow(plan, proof=frozenset({at("shape", "build")})).defects
    assert (defect.kind, defect.position) == ("unapproved", at("shape", "build"))
    assert defect.trace == ("shape.gather is closed", "open shape.build", "shape.build closes itself")


def test_a_defect_is_found_in_each_behavior_that_has_it() -> None:
    policies: dict[Position, Policy] = {at(b, "validate"): "combine_next" for b in PLAN.behaviors}
    defects = check_workflow(replace(PLAN, policies=policies)).defects
    assert [each.position.behavior for each in defects] == ["shape", "code"]


def test_many_behaviors_are_explored_in_rows_of_neighbours() -> None:
    plan = replace(PLAN, behaviors=tuple(f"behavior_{number}" for number in range(20)))
    checked = check_workflow(plan)
    assert checked.defects == ()
    assert checked.exhaustive


def bot(rule: Rule, **gate: bool) -> BotDefinition:
    actions = tuple(ActionDefinition(name=name, folder=name) for name in PLAN.actions)
    behavior = BehaviorDefinition(name="shape", folder="shape", rules=(rule,))
    gates = {at("shape", action): Gate(**gate) for action in PLAN.actions}  # pyright: ignore[reportArgumentType]
    return BotDefinition(name="b", root=Path("/"), behaviors=(behavior,), actions=actions, gates=gates)


def test_a_gate_that_waits_for_a_rule_which_cannot_run_is_a_dead_end() -> None:
    scanner = PythonScanner(callable="json:no_such_name", target=Target(kind="story"), message="m")
    rule = Rule(name="r", file="r.json", description="d", scanner=scanner, dont=Examples(examples=({"name": "x"},)))
    defects = check_bot(bot(rule, requires_clean=True)).defects
    assert [each.kind for each in defects] == ["dead_end"]
    assert check_bot(bot(rule)).defects == ()


def test_proof_turns_an_automatic_gate_into_one_for_the_user() -> None:
    rule = Rule(name="r", file="r.json", description="d")
    definition = bot(rule, proof=True)
    gates = {position: replace(gate, policy="auto") for position, gate in definition.gates.items()}
    assert check_bot(replace(definition, gates=gates)).defects == ()
