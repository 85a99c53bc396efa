"""Actions that are closed together, and closes that race: every gate on the way counts, through a real MCP client."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.bots.bot_folders import write_bot
from tests.bots.served_bots import Person, served

ACTIONS = ("initialize_project", "gather_context", "build_knowledge", "validate_rules")
COMBINE = {"policy": "combine_next"}


def chained(folder: Path, **gates: dict[str, Any]) -> Path:
    """A bot whose gather_context, build_knowledge and validate_rules are closed together."""
    together = {
        "gather_context": COMBINE,
        "build_knowledge": COMBINE,
        "validate_rules": {"policy": "manual"},
    }
    changes: dict[str, Any] = {
        f"base_actions/{number}_{name}/action_config.json": {"name": name} for number, name in enumerate(ACTIONS, 1)
    }
    config = {f"shape.{name}": {**keys, **gates.get(name, {})} for name, keys in together.items()}
    changes["bot_config.json"] = {"name": "mini", "behaviors": ["shape"], "gates": config}
    changes["behaviors/2_code/instructions.json"] = None
    document = "behaviors/1_shape/2_content/1_knowledge_graph"
    changes[f"{document}/build_notes.json"] = {"name": "notes", "template": "notes.json", "output": "docs/notes.json"}
    changes[f"{document}/notes.json"] = {"epics": []}
    changes["behaviors/1_shape/3_rules/named.json"] = {
        "description": "A story begins with a capital.",
        "scanner": {"kind": "regex", "applies_to": "story.name", "match": "require", "pattern": "^[A-Z]"},
        "do": {"examples": ["Book a table"]},
        "dont": {"examples": ["book a table"]},
    }
    return write_bot(folder, changes)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project."""
    made = tmp_path / "project"
    made.mkdir()
    return made


@pytest.mark.parametrize("proven", ["gather_context", "build_knowledge", "validate_rules"])
async def test_proof_that_any_action_of_a_chain_needs_is_needed_for_its_close(
    project: Path, tmp_path: Path, proven: str
) -> None:
    folder, person = chained(tmp_path / "bot", **{proven: {"proof": True}}), Person(agrees=False)
    async with served(project, bot=folder, name="mini", person=person) as bot:
        delivered = await bot.call("shape_gather_context")
        assert list(delivered["data"]["combined"]) == ["build_knowledge", "validate_rules"]
        refused = await bot.follow(delivered)
        assert refused["error"]["code"] == "CONSENT_REFUSED"
        assert bot.completed() == []
        person.agrees = True
        closed = await bot.follow(delivered)
        assert closed["closed_together"] == ["gather_context", "build_knowledge"]
        assert (closed["completed_action"], closed["approval"]) == ("validate_rules", "confirmed")
    assert len(person.asked) == 2


async def test_a_chain_without_proof_asks_nobody(project: Path, tmp_path: Path) -> None:
    person = Person(agrees=False)
    async with served(project, bot=chained(tmp_path / "bot"), name="mini", person=person) as bot:
        closed = await bot.follow(await bot.call("shape_gather_context"))
    assert (closed["approval"], person.asked) == ("claimed", [])


async def test_a_person_is_asked_about_the_files_of_every_action_of_the_chain(project: Path, tmp_path: Path) -> None:
    folder = chained(tmp_path / "bot", gather_context={"proof": True})
    (project / "docs").mkdir()
    notes = project / "docs" / "notes.json"
    notes.write_text('{"epics": []}', encoding="utf-8")
    async with served(project, bot=folder, name="mini") as bot:
        await bot.call("shape_gather_context")
        first = await bot.call("close_current_action")
        same = await bot.call("close_current_action")
        # The document belongs to build_knowledge, in the middle: another one is another question.
        notes.write_text('{"epics": [], "goal": "another"}', encoding="utf-8")
        second = await bot.call("close_current_action")
    assert same["approval"]["code"] == first["approval"]["code"]
    assert first["approval"]["code"] != second["approval"]["code"]


async def test_a_chain_is_closed_only_over_clean_rules_where_one_of_it_asks_for_that(
    project: Path, tmp_path: Path
) -> None:
    folder = chained(tmp_path / "bot", build_knowledge={"requires_clean": True})
    (project / "docs").mkdir()
    graph = {"epics": [{"name": "Eat", "stories": [{"name": "book a table"}]}]}
    (project / "docs" / "notes.json").write_text(json.dumps(graph), encoding="utf-8")
    async with served(project, bot=folder, name="mini") as bot:
        await bot.call("shape_gather_context")
        refused = await bot.call("close_current_action")
    assert "shape.build_knowledge` needs clean rules" in refused["error"]["message"]
    assert refused["violations"][0]["rule"] == "named"


async def test_an_action_of_the_chain_can_be_named_as_the_expected_one(project: Path, tmp_path: Path) -> None:
    async with served(project, bot=chained(tmp_path / "bot"), name="mini") as bot:
        await bot.call("shape_gather_context")
        closed = await bot.call("close_current_action", expected_action="shape.build_knowledge")
    assert closed["completed_action"] == "validate_rules"


async def test_closes_that_race_never_close_what_needs_proof(project: Path, tmp_path: Path) -> None:
    folder = write_bot(
        tmp_path / "bot",
        {
            "bot_config.json": {
                "name": "mini",
                "behaviors": ["shape", "code"],
                "gates": {"shape.build_knowledge": {"proof": True}},
            }
        },
    )
    async with served(project, bot=folder, name="mini") as bot:
        for _ in range(5):
            await bot.call("shape_gather_context")
            answers = await asyncio.gather(*(bot.call("close_current_action") for _ in range(8)))
            assert sum(1 for answer in answers if "completed_action" in answer) == 1
            assert bot.state()["current_action"] == "mini.shape.build_knowledge"
