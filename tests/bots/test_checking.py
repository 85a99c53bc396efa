"""Exploring a workflow: a sound one passes, and each defect is shown by the calls that lead to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import size
from trysquare.bots import check_bot, load_bot
from trysquare.bots.definition.check import check_workflow
from trysquare.bots.definition.model import ActionDefinition, BehaviorDefinition, BotDefinition, Gate
from trysquare.bots.scanners.base import Examples, PythonScanner, Rule, Target
from trysquare.bots.workflow.machine import Jump, JumpPolicy, Plan, Policy, Position

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


def long_list(count: int, jump: str | None, gates: frozenset[str] = frozenset()) -> tuple[Plan, frozenset[Position]]:
    """A behavior of many actions, some of which need proof, with one kind of jump denied."""
    plan = Plan(bot="b", behaviors=("shape",), actions=tuple(f"item_{number}" for number in range(count)))
    plan = replace(plan, jumps={} if jump is None else {jump: "deny"})  # pyright: ignore[reportArgumentType]
    return plan, frozenset(at("shape", name) for name in gates)


@pytest.mark.parametrize("jump", [None, "ahead", "reopened"])
def test_a_long_list_of_like_actions_is_explored_whole_in_few_states(jump: str | None) -> None:
    thirty, more = long_list(30, jump), long_list(500, jump)
    for plan, proof in (thirty, more):
        checked = check_workflow(plan, proof=proof)
        assert (checked.defects, checked.exhaustive) == ((), True)
    assert check_workflow(thirty[0]).states == check_workflow(more[0]).states < 100


def test_a_long_list_with_many_gates_grows_with_its_length_where_every_jump_is_allowed() -> None:
    plan, proof = long_list(40, None, frozenset(f"item_{number}" for number in range(0, 40, 2)))
    checked = check_workflow(plan, proof=proof)
    assert (checked.defects, checked.exhaustive) == ((), True)
    assert checked.states < 4 * 40


def test_every_action_behind_a_shut_one_of_a_long_list_is_named() -> None:
    plan, _ = long_list(30, "ahead")
    defects = check_workflow(plan, shut=frozenset({at("shape", "item_9")})).defects
    assert [each.position for each in defects if each.kind == "dead_end"] == [at("shape", "item_9")]
    unreachable = {each.position for each in defects if each.kind == "unreachable"}
    assert unreachable == {at("shape", f"item_{number}") for number in range(10, 30)}
    assert all(f"`{each.position}`" in each.message for each in defects)


def test_what_is_cut_short_claims_no_defect() -> None:
    plan, proof = long_list(60, "reopened", frozenset(f"item_{number}" for number in range(0, 60, 2)))
    checked = check_workflow(plan, proof=proof)
    assert (checked.defects, checked.exhaustive) == ((), False)


@given(
    st.lists(st.sampled_from(["manual", "auto", "skip", "combine_next"]), min_size=9, max_size=9),
    st.sets(st.integers(0, 8), max_size=2),
    st.sampled_from([{}, {"ahead": "deny"}, {"reopened": "deny"}, {"ahead": "deny", "reopened": "deny"}]),
)
@settings(max_examples=size(12, 200), deadline=None)
def test_a_shortened_list_has_the_defects_of_the_whole(
    policies: list[Policy], shut: set[int], jumps: dict[Jump, JumpPolicy]
) -> None:
    plan, _ = long_list(9, None)
    positions = list(plan.order)
    plan = replace(plan, policies=dict(zip(positions, policies, strict=True)), jumps=jumps)
    closed = frozenset(positions[number] for number in shut)
    found = {(each.kind, each.position) for each in check_workflow(plan, shut=closed).defects}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trysquare.bots.definition.check.EXACT", 9)
        whole = {(each.kind, each.position) for each in check_workflow(plan, shut=closed).defects}
    assert {each for each in found if each[0] != "dead_end"} == {each for each in whole if each[0] != "dead_end"}
    assert any(kind == "dead_end" for kind, _ in found) == any(kind == "dead_end" for kind, _ in whole)


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
