"""What a definition demands of its gates, and when another one demands less."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.bots.bot_folders import write_bot
from trysquare.bots import load_bot
from trysquare.bots.definition.model import strength_of
from trysquare.bots.workflow.machine import STORED_STRENGTH, Strength, weakenings

GATES = {"shape.gather_context": {"proof": True}, "code.build_knowledge": {"requires_clean": True}}
RULE = {
    "description": "No hedging.",
    "scanner": {"kind": "regex", "pattern": "maybe", "applies_to": "story.name"},
    "dont": {"examples": ["maybe"]},
}


def strength(folder: Path, **config: Any) -> Strength:
    """The strength of the minimal bot with a rule and something in its configuration."""
    bot = {"name": "mini", "behaviors": ["shape", "code"], **config}
    return strength_of(
        load_bot(write_bot(folder, {"bot_config.json": bot, "behaviors/2_code/3_rules/sure.json": RULE}))
    )


def test_the_same_demands_are_not_weaker_and_survive_json(tmp_path: Path) -> None:
    before = strength(tmp_path / "a", gates=GATES)
    assert STORED_STRENGTH.validate_json(STORED_STRENGTH.dump_json(before)) == before
    assert weakenings(before, replace(before, digest="other")) == ()


@pytest.mark.parametrize(
    "config",
    [
        {"gates": {"shape.gather_context": {"proof": True}}},
        {"gates": {"code.build_knowledge": {"requires_clean": True}}},
        {"gates": {**GATES, "shape.gather_context": {"proof": True, "policy": "skip"}}},
    ],
    ids=["clean off", "proof off", "passed over"],
)
def test_a_missing_demand_is_weaker_and_the_other_way_is_not(tmp_path: Path, config: dict[str, Any]) -> None:
    before, after = strength(tmp_path / "a", gates=GATES), strength(tmp_path / "b", **config)
    assert weakenings(before, after)
    assert weakenings(after, before) == ()


@pytest.mark.parametrize("jump", ["ahead", "reopened"])
def test_an_easier_jump_is_weaker(tmp_path: Path, jump: str) -> None:
    denied, confirmed = (
        strength(tmp_path / "a", jumps={jump: "deny"}),
        strength(tmp_path / "b", jumps={jump: "confirm"}),
    )
    allowed = strength(tmp_path / "c")
    assert weakenings(denied, confirmed)
    assert weakenings(confirmed, allowed)
    assert not weakenings(allowed, denied)


def test_a_changed_rule_is_weaker_where_a_gate_needs_clean_rules(tmp_path: Path) -> None:
    before = strength(tmp_path / "a", gates=GATES)
    other = {**RULE, "scanner": {"kind": "regex", "pattern": "may", "applies_to": "story.name"}}
    bot = {"name": "mini", "behaviors": ["shape", "code"], "gates": GATES}
    for number, changed in enumerate((other, {**RULE, "severity": "warning"}, None)):
        folder = write_bot(
            tmp_path / str(number), {"bot_config.json": bot, "behaviors/2_code/3_rules/sure.json": changed}
        )
        assert weakenings(before, strength_of(load_bot(folder)))


def test_what_a_gate_guarded_and_what_comes_before_it_now_is_weaker(tmp_path: Path) -> None:
    before = strength(tmp_path / "a", gates=GATES)
    first, *rest = before.order
    moved = replace(before, digest="other", order=(before.order[-1], first, *rest[:-1]))
    assert any("comes before shape.gather_context" in said for said in weakenings(before, moved))
    outside = replace(
        before,
        digest="other",
        order=tuple(each for each in before.order if not each.endswith("build_knowledge")),
        independent=frozenset({"build_knowledge"}),
    )
    assert any("can be called without" in said for said in weakenings(before, outside))


def test_in_a_strict_run_every_action_is_a_gate(tmp_path: Path) -> None:
    before = strength(tmp_path / "a")
    shorter = replace(before, digest="other", order=before.order[:-1])
    assert weakenings(before, shorter) == ()
    (weakening,) = weakenings(before, shorter, strict=True)
    assert weakening.startswith("code.build_knowledge ")
