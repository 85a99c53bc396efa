"""Instructions: whole parts within a budget, each sent once, and every one of them to be had."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from tests.bots.bot_folders import write_bot
from tests.bots.faults.desk import at
from tests.bots.served_bots import STORY_BOT, BotClient, served
from trysquare.bots import load_bot
from trysquare.bots.instructions import Part, pack
from trysquare.core.result import dump_json
from trysquare.core.tokens import count_tokens

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


def fetch(name: str) -> dict[str, Any]:
    """A call as long as a real one."""
    return {"tool": "story_bot_tool", "arguments": {"parameters": {"part": f"exploration.build_knowledge/{name}"}}}


@given(parts=PARTS, budget=st.integers(200, 900))
def test_a_pack_stays_within_its_budget_with_all_that_it_names(parts: list[Part], budget: int) -> None:
    packed = pack(parts, budget=budget)
    assert {part.name for part in (*packed.parts.sent, *packed.parts.left_out)} == {part.name for part in parts}
    assert count_tokens(dump_json(packed.to_json(fetch))) <= budget


@given(parts=PARTS)
def test_what_was_delivered_is_named_and_not_sent_again(parts: list[Part]) -> None:
    first = pack(parts, budget=10_000)
    second = pack(parts, budget=10_000, held=set(first.digests()))
    assert second.parts.sent == ()
    assert [part.name for part in second.parts.unchanged] == [part.name for part in parts]


def test_a_part_that_changed_is_sent_while_the_others_are_named_by_their_digest() -> None:
    before = [Part(name="rules", content=["one"]), Part(name="questions", content=["who?"])]
    held = set(pack(before, budget=1_000).digests())
    after = [Part(name="rules", content=["one", "two"]), before[1]]
    assert pack(after, budget=1_000, held=held).to_json(fetch) == {
        "rules": ["one", "two"],
        "unchanged": {"questions": before[1].digest[:12]},
    }


def test_what_is_left_out_is_named_by_importance_and_a_long_rest_together() -> None:
    parts = [Part(name=f"part{number}", content="word " * 1_500, priority=number) for number in range(20)]
    left_out = pack(parts, budget=1_000).to_json(fetch)["left_out"]
    assert [each["part"] for each in left_out[:-1]] == ["part19", "part18"]
    assert left_out[-1] == {"more_parts": 18, "fetch": fetch("*")}


async def test_every_pack_of_story_bot_stays_under_its_budget(tmp_path: Path) -> None:
    definition = load_bot(STORY_BOT)
    async with served(tmp_path) as bot:
        for behavior in definition.behaviors:
            for action in definition.actions:
                answer = await bot.call(f"{behavior.name}_{action.name}", fresh=True)
                instructions = answer["data"].get("instructions", {})
                budget = definition.gates[at(f"{behavior.name}.{action.name}")].budget_tokens
                assert count_tokens(dump_json(instructions)) <= budget, (behavior.name, action.name)


async def test_each_part_that_is_left_out_comes_with_the_very_call_that_fetches_it(tmp_path: Path) -> None:
    questions = {"questions": [f"What about the {number}th thing that matters to somebody?" for number in range(60)]}
    async with small_bot(tmp_path, questions) as bot:
        answer = await bot.call("shape_gather_context", run="spike")
        (left,) = answer["data"]["instructions"]["left_out"]
        assert left == snapshot(
            {
                "part": "guardrails",
                "tokens": 787,
                "fetch": {
                    "tool": "mini_tool",
                    "arguments": {"parameters": {"run": "spike", "part": "shape.gather_context/guardrails"}},
                },
            }
        )
        await bot.call("code_gather_context", run="spike")
        # The handle holds the action: it brings the same part although the run has moved on.
        fetched = await bot.send(left["fetch"])
        assert (fetched["behavior"], fetched["data"]["part"]) == ("shape", "guardrails")
        assert fetched["data"]["content"]["key_questions"] == questions["questions"]
        assert bot.state()["runs"]["spike"]["current_action"] == "mini.code.gather_context"


async def test_an_unknown_part_is_answered_with_the_parts_that_there_are(tmp_path: Path) -> None:
    async with small_bot(tmp_path, {"questions": ["Who?"]}) as bot:
        unknown = await bot.call("shape_gather_context", part="nothing")
        assert "`guardrails`" in unknown["error"]["message"]
        listed = await bot.follow(unknown)
        named = {each["part"]: each["fetch"] for each in listed["data"]["content"]}
        fetched = await bot.send(named["guardrails"])
    assert fetched["data"]["content"] == {"key_questions": ["Who?"]}


async def test_fetching_a_part_writes_nothing(tmp_path: Path) -> None:
    graph = tmp_path / "docs" / "stories" / "story-graph.json"
    graph.parent.mkdir(parents=True)
    graph.write_text('{"schema": 1, "product": "Club", "goal": "", "epics": []}', encoding="utf-8")
    async with served(tmp_path) as bot:
        fetched = await bot.call("shape_render_output", part="renders")
        both = await bot.call("shape_gather_context", part="guardrails", answers={"Who?": "Guests."})
    assert fetched["data"]["content"]
    assert "`answers`" in both["error"]["message"]
    assert sorted(path.name for path in graph.parent.iterdir()) == ["story-graph.json"]


@asynccontextmanager
async def small_bot(tmp_path: Path, questions: dict[str, Any]) -> AsyncGenerator[BotClient]:
    """A bot whose gather_context may say little."""
    project = tmp_path / "project"
    project.mkdir()
    folder = write_bot(
        tmp_path / "bot",
        {
            "base_actions/2_gather_context/action_config.json": {"workflow": True, "budget_tokens": 600},
            "base_actions/2_gather_context/instructions.json": {"instructions": ["Ask."]},
            "behaviors/1_shape/1_guardrails/1_required_context/key_questions.json": questions,
        },
    )
    async with served(project, bot=folder, name="mini") as bot:
        yield bot


async def test_moving_on_sends_only_what_is_new_and_asking_again_sends_all(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        first = await bot.call("shape_gather_context")
        assert "unchanged" not in first["data"]["instructions"]
        handle = first["data"]["delivery"]["handle"]
        moved_on = await bot.call("shape_decide_planning_criteria", delivery=handle)
        assert "behavior_instructions" in moved_on["data"]["instructions"]["unchanged"]
        again = await bot.call("shape_decide_planning_criteria", delivery=moved_on["data"]["delivery"]["handle"])
        assert "unchanged" not in again["data"]["instructions"]


async def test_whoever_does_not_name_a_delivery_gets_the_whole_text(tmp_path: Path) -> None:
    """A new conversation, a sub-agent, or one whose history was cut: none of them knows the handle."""
    async with served(tmp_path) as bot:
        first = await bot.call("shape_gather_context")
        other = await bot.call("shape_decide_planning_criteria")
        assert "unchanged" not in other["data"]["instructions"]
        assert first["data"]["delivery"]["to"]
        closed = await bot.follow(first)
        assert closed["next"]["arguments"]["parameters"]["delivery"] == first["data"]["delivery"]["handle"]
        stranger = await bot.call("discovery_gather_context", delivery="00000000")
        assert "unchanged" not in stranger["data"]["instructions"]
        run = await bot.call("shape_decide_planning_criteria", delivery=first["data"]["delivery"]["handle"], run="b")
        assert "unchanged" not in run["data"]["instructions"], "another run was delivered nothing"


async def test_scope_leaves_out_the_rules_that_it_does_not_touch(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        all_rules = await bot.call("shape_validate_rules", fresh=True)
        scoped = await bot.call("shape_validate_rules", fresh=True, scope={"story": ["Book a table"]})
    assert scoped["data"]["instructions"]["scope"] == {"story": ["Book a table"]}
    assert rules_in(scoped) < rules_in(all_rules)


SCOPED = {
    "epics": [
        {
            "name": "Eat",
            "stories": [
                {"name": "book a table", "test_file": "tests/test_book.py"},
                {"name": "cancel a table", "test_file": "tests/test_cancel.py"},
            ],
        },
        {"name": "Pay", "stories": [{"name": "split the bill"}]},
    ],
    "increments": [{"name": "First", "stories": ["split the bill"]}],
}


@pytest.mark.parametrize(
    ("scope", "found"),
    [
        (None, {"book a table", "cancel a table", "split the bill", "tests/test_book.py", "tests/test_cancel.py"}),
        ({"story": ["book a table"]}, {"book a table", "tests/test_book.py"}),
        ({"epic": ["Eat"]}, {"book a table", "cancel a table", "tests/test_book.py", "tests/test_cancel.py"}),
        ({"increment": ["First"]}, {"split the bill"}),
        ({"files": ["tests/test_cancel.py"]}, {"tests/test_cancel.py"}),
    ],
)
async def test_scope_leaves_out_what_the_rules_find_elsewhere(
    tmp_path: Path, scope: dict[str, list[str]] | None, found: set[str]
) -> None:
    async with scoped_bot(tmp_path) as bot:
        answer = await bot.call("shape_validate_rules", scope=scope or "all")
        violations = answer["data"]["instructions"]["violations"]
        assert {each.get("where", each["file"]).rpartition(" > ")[2] for each in violations} == found


async def test_a_scope_that_names_nothing_of_the_graph_is_reported(tmp_path: Path) -> None:
    async with scoped_bot(tmp_path) as bot:
        answer = await bot.call("shape_validate_rules", scope={"story": ["book a tabel"]})
        (warning,) = answer["warnings"]
        assert "`book a tabel`" in warning
        assert answer["next"]["arguments"]["parameters"]["scope"] == {"story": ["book a tabel"]}


@asynccontextmanager
async def scoped_bot(tmp_path: Path) -> AsyncGenerator[BotClient]:
    """A bot with a rule for stories and one for files, both broken everywhere in the project."""
    project = tmp_path / "project"
    for name in ("test_book.py", "test_cancel.py"):
        file = project / "tests" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("sleep(1)\n", encoding="utf-8")
    (project / "docs").mkdir()
    (project / "docs" / "map.json").write_text(json.dumps(SCOPED), encoding="utf-8")
    rules = {
        "capital": {"kind": "regex", "applies_to": "story.name", "match": "require", "pattern": "^[A-Z]"},
        "no_sleep": {"kind": "regex", "applies_to": "file", "files": "*.py", "pattern": "sleep"},
    }
    changes: dict[str, Any] = {
        **EVERYTHING,
        **{
            f"behaviors/1_shape/3_rules/{name}.json": {"description": "A rule.", "scanner": scanner}
            for name, scanner in rules.items()
        },
    }
    async with served(project, bot=write_bot(tmp_path / "bot", changes), name="mini") as bot:
        yield bot


def rules_in(answer: dict[str, dict[str, dict[str, object]]]) -> set[str]:
    """The rules that an answer holds."""
    return {name for name in answer["data"]["instructions"] if name.startswith("rule:")}


CONTENT = "behaviors/1_shape/2_content"
CONTEXT = "behaviors/1_shape/1_guardrails/1_required_context"
PLANNING = "behaviors/1_shape/1_guardrails/2_planning"
EVERYTHING: dict[str, Any] = {
    "instructions.json": {"goal": "the bot's goal", "instructions": ["holds in the whole bot"]},
    "behaviors/1_shape/instructions.json": {
        "goal": "the behavior's goal",
        "inputs": ["an idea"],
        "outputs": ["a map"],
        "instructions": ["holds in the behavior"],
    },
    f"{CONTEXT}/key_questions.json": {"questions": ["a key question?"]},
    f"{CONTEXT}/evidence.json": {"evidence": ["some evidence"]},
    f"{CONTEXT}/instructions.json": {"instructions": ["how to ask"]},
    f"{PLANNING}/typical_assumptions.json": {"assumptions": ["an assumption"]},
    f"{PLANNING}/recommended_human_activity.json": {"activities": ["an activity"]},
    f"{PLANNING}/decision_criteria/depth.json": {"question": "how deep?", "options": ["thin", "thick"]},
    f"{CONTENT}/1_knowledge_graph/instructions.json": {"instructions": ["how to build"]},
    f"{CONTENT}/1_knowledge_graph/build_map.json": {"name": "map", "type": "story_graph", "template": "map.json",
        "output": "docs/map.json"},
    f"{CONTENT}/1_knowledge_graph/map.json": {"epics": ["the template"]},
    f"{CONTENT}/2_render/instructions.json": {"instructions": ["how to render"]},
    f"{CONTENT}/2_render/render_map.json": {
        "name": "map",
        "input": "docs/map.json",
        "output": "docs/map.md",
        "template": "templates/map.md",
        "description": "the rendered map",
    },
    f"{CONTENT}/2_render/templates/map.md": "# {{ product }}\n",
    f"{CONTENT}/3_synchronize/instructions.json": {"instructions": ["how to synchronize"]},
    "behaviors/1_shape/3_rules/short.json": {
        "description": "a rule of the behavior",
        "do": {"description": "do this", "examples": ["good"]},
        "dont": {"description": "not this", "examples": ["bad"]},
    },
    "rules/all.json": {"description": "a rule of the whole bot"},
    **{
        f"base_actions/{number}_{name}/{file}": content
        for number, name in enumerate(
            ("initialize_project", "gather_context", "decide_planning_criteria", "build_knowledge", "render_output",
             "synchronize_output", "validate_rules"), start=1)
        for file, content in (
            ("action_config.json", {"name": name}),
            ("instructions.json", {"instructions": [f"the base text of {name}"]}),
        )
    },
    **{
        f"behaviors/1_shape/{name}/instructions.json": {"instructions": [f"what shape adds to {name}"]}
        for name in ("gather_context", "build_knowledge")
    },
    "base_actions/3_build_knowledge/action_config.json": None,
}  # fmt: skip
EVERYWHERE = ("holds in the whole bot", "the bot's goal", "holds in the behavior", "the behavior's goal", "a map")


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("gather_context", ("a key question?", "some evidence", "how to ask", "what shape adds to gather_context")),
        ("decide_planning_criteria", ("an assumption", "an activity", "how deep?", "thick", "saved: Guests.")),
        (
            "build_knowledge",
            ("how to build", "the template", "docs/map.json", "what shape adds to build_knowledge", "saved: Guests.",
             "saved: thin", "saved assumption", "saved in another behavior", "a rule of the behavior", "do this", "bad",
             "a rule of the whole bot"),
        ),
        ("render_output", ("how to render", "the rendered map", "docs/map.md")),
        ("synchronize_output", ("how to synchronize",)),
        ("validate_rules", ("a rule of the behavior", "good", "not this", "a rule of the whole bot")),
        ("correct_bot", ("a rule of the behavior", "behaviors/1_shape/3_rules/short.json", "corrected: shorter")),
    ],
)  # fmt: skip
async def test_instructions_are_merged_from_everything_that_the_bot_and_the_project_say(
    tmp_path: Path, action: str, said: tuple[str, ...]
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    async with served(project, bot=write_bot(tmp_path / "bot", EVERYTHING), name="mini") as bot:
        await bot.call("shape_gather_context", answers={"a key question?": "saved: Guests."})
        await bot.call(
            "shape_decide_planning_criteria", decisions={"depth": "saved: thin"}, assumptions=["saved assumption"]
        )
        await bot.call("code_gather_context", answers={"where?": "saved in another behavior"})
        # Only correct_bot understands corrections; every other action refuses them.
        own = {"corrections": ["corrected: shorter"]} if action == "correct_bot" else {}
        answer = await bot.call(f"shape_{action}", fresh=True, scope={"epic": ["Come to eat"]}, **own)
    told = dump_json(answer["data"]["instructions"])
    base = () if action == "correct_bot" else (f"the base text of {action}",)
    missing = [text for text in (*EVERYWHERE, *base, *said, "Come to eat") if text not in told]
    assert missing == []
