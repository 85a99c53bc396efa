"""Instructions: whole parts within a budget, each sent once, and every one of them to be had."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.bots.served_bots import served
from trysquare.bots.instructions import Part, pack

PARTS = st.lists(
    st.builds(
        Part,
        name=st.text(st.characters(categories=["Ll"]), min_size=1, max_size=6),
        content=st.text(min_size=1, max_size=300),
        priority=st.integers(0, 100),
    ),
    max_size=8,
    unique_by=lambda part: part.name,
)


@given(parts=PARTS, budget=st.integers(0, 200))
def test_a_pack_stays_within_its_budget_and_loses_no_part(parts: list[Part], budget: int) -> None:
    packed = pack(parts, budget=budget)
    assert packed.tokens <= budget
    assert {part.name for part in (*packed.sent, *packed.left_out)} == {part.name for part in parts}


@given(parts=PARTS)
def test_what_was_delivered_is_named_and_not_sent_again(parts: list[Part]) -> None:
    first = pack(parts, budget=10_000)
    second = pack(parts, budget=10_000, held=set(first.digests()))
    assert second.sent == ()
    assert [part.name for part in second.unchanged] == [part.name for part in parts]


@given(parts=PARTS, budget=st.integers(0, 100))
def test_a_more_important_part_is_never_left_out_for_one_that_matters_less(parts: list[Part], budget: int) -> None:
    packed = pack(parts, budget=budget)
    for left in packed.left_out:
        more = [part for part in packed.sent if part.priority < left.priority]
        assert packed.tokens - sum(part.tokens() for part in more) + left.tokens() > budget


async def test_every_pack_of_story_bot_stays_under_its_budget_and_the_rest_can_be_fetched(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        for behavior in ("shape", "scenarios", "code"):
            for action in ("gather_context", "build_knowledge", "validate_rules"):
                answer = await bot.call(f"{behavior}_{action}", fresh=True)
                for left in answer["data"]["instructions"].get("left_out", []):
                    part = await bot.call(f"{behavior}_{action}", part=left["part"])
                    assert part["data"]["content"]


async def test_a_small_budget_leaves_parts_out_by_name_and_hands_them_out_on_demand(tmp_path: Path) -> None:
    from tests.bots.bot_folders import write_bot

    project = tmp_path / "project"
    project.mkdir()
    questions = {"questions": [f"What about the {number}th thing that matters to somebody?" for number in range(60)]}
    folder = write_bot(
        tmp_path / "bot",
        {
            "base_actions/2_gather_context/action_config.json": {"workflow": True, "budget_tokens": 300},
            "base_actions/2_gather_context/instructions.json": {"instructions": ["Ask."]},
            "behaviors/1_shape/1_guardrails/1_required_context/key_questions.json": questions,
        },
    )
    async with served(project, bot=folder, name="mini") as bot:
        answer = await bot.call("shape_gather_context")
        assert [left["part"] for left in answer["data"]["instructions"]["left_out"]] == ["guardrails"]
        fetched = await bot.call("shape_gather_context", part="guardrails")
        assert fetched["data"]["content"]["key_questions"] == questions["questions"]
        unknown = await bot.call("shape_gather_context", part="nothing")
        assert "`guardrails`" in unknown["error"]["message"]


async def test_moving_on_sends_only_what_is_new_and_asking_again_sends_all(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        first = await bot.call("shape_gather_context")
        assert "unchanged" not in first["data"]["instructions"]
        moved_on = await bot.call("shape_decide_planning_criteria")
        assert "behavior_instructions" in moved_on["data"]["instructions"]["unchanged"]
        again = await bot.call("shape_decide_planning_criteria")
        assert "unchanged" not in again["data"]["instructions"]


async def test_scope_leaves_out_the_rules_that_it_does_not_touch(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        all_rules = await bot.call("shape_validate_rules", fresh=True)
        scoped = await bot.call("shape_validate_rules", fresh=True, scope={"story": ["Book a table"]})
    assert scoped["data"]["instructions"]["scope"] == {"story": ["Book a table"]}
    assert rules_in(scoped) < rules_in(all_rules)


def rules_in(answer: dict[str, dict[str, dict[str, object]]]) -> set[str]:
    """The rules that an answer holds."""
    return {name for name in answer["data"]["instructions"] if name.startswith("rule:")}
