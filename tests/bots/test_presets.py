"""Depths of a run: chosen at its start, kept with it, and never a way around a gate."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.bots.bot_folders import write_bot
from tests.bots.served_bots import Person, served
from trysquare.bots.definition.check import check_folder
from trysquare.bots.definition.findings import Finding
from trysquare.cli.main import main

QUICK = {"actions": ["shape", "code.build_knowledge"]}
PROVEN = {"shape.gather_context": {"proof": True}}
SHORT = {"actions": ["build_knowledge"], "drops_proof": True}


def bot(folder: Path, presets: Mapping[str, Any], **config: Any) -> Path:
    names = {"name": "mini", "behaviors": ["shape", "code"], "presets": presets, **config}
    return write_bot(folder, {"bot_config.json": names})


def findings(folder: Path) -> list[Finding]:
    """What the check finds beside the small bot's missing instructions."""
    return [each for each in check_folder(folder).findings if each.code != "no_instructions"]


async def test_what_a_preset_leaves_out_is_passed_by_and_not_done(tmp_path: Path) -> None:
    folder = bot(tmp_path / "bot", {"quick": {"actions": ["shape.build_knowledge", "code.gather_context"]}})
    async with served(tmp_path, bot=folder, name="mini") as client:
        begun = await client.call("tool", confirm=True, preset="quick")
        assert (begun["action"], begun["preset"]) == ("initialize_project", "quick")
        refused = await client.call("shape_gather_context")
        assert (refused["error"]["code"], refused["preset"]) == ("STATE_CONFLICT", "quick")
        assert client.state()["preset"] == "quick"
        seen: list[str] = []
        while not (answer := await client.call("tool")).get("workflow_complete"):
            seen.append(f"{answer['behavior']}.{answer['action']}")
            if not answer["action_completed"]:
                await client.call("close_current_action", expected_action=seen[-1])
        assert seen == ["shape.build_knowledge", "code.initialize_project", "code.gather_context"]
        assert "shape.gather_context" not in client.completed()
        assert client.state()["workflow_complete"] is True


async def test_a_behavior_that_is_left_out_is_passed_by(tmp_path: Path) -> None:
    folder = bot(tmp_path / "bot", {"quick": {"actions": ["code"]}})
    async with served(tmp_path, bot=folder, name="mini") as client:
        begun = await client.call("tool", confirm=True, preset="quick")
        assert begun["behavior"] == "code"
        assert (await client.call("shape_tool"))["error"]["code"] == "STATE_CONFLICT"


async def test_neither_a_call_nor_an_edit_changes_the_depth_of_a_run(tmp_path: Path) -> None:
    folder, project = bot(tmp_path / "bot", {"quick": QUICK, "thorough": {}}), tmp_path / "project"
    project.mkdir()
    async with served(project, bot=folder, name="mini") as client:
        await client.call("tool", confirm=True, preset="thorough")
        for run in ({}, {"run": "main"}):
            again = await client.call("tool", preset="quick", **run)
            assert (again["error"]["code"], again["preset"]) == ("STATE_CONFLICT", "thorough")
        assert (await client.call("tool", preset="thorough"))["action"] == "gather_context"
        file = project / "workflow_state.json"
        file.write_text(file.read_text(encoding="utf-8").replace('"thorough"', '"quick"'), encoding="utf-8")
        assert (await client.call("tool"))["preset"] == "thorough"
        file.unlink()
        assert (await client.call("tool", confirm=True))["preset"] == "thorough"
        assert (await client.call("tool", preset="quick"))["error"]["code"] == "STATE_CONFLICT"


async def test_an_edit_of_the_folder_changes_later_runs_only(tmp_path: Path) -> None:
    folder, project = bot(tmp_path / "bot", {"quick": {"actions": ["build_knowledge"]}}), tmp_path / "project"
    project.mkdir()
    async with served(project, bot=folder, name="mini") as client:
        await client.call("tool", confirm=True, preset="quick")
    bot(folder, {"quick": {"actions": ["gather_context"]}})
    async with served(project, bot=folder, name="mini") as client:
        assert (await client.call("tool"))["action"] == "build_knowledge"
        await client.call("tool", confirm=True, preset="quick", run="later")
        assert (await client.call("tool", run="later"))["action"] == "gather_context"
    bot(folder, {})
    async with served(project, bot=folder, name="mini") as client:
        assert (await client.call("tool"))["preset"] == "quick"


async def test_a_record_of_an_earlier_version_has_the_full_depth(tmp_path: Path) -> None:
    folder, project = bot(tmp_path / "bot", {"quick": {"actions": ["build_knowledge"]}}), tmp_path / "project"
    project.mkdir()
    async with served(project, bot=folder, name="mini") as client:
        await client.call("tool", confirm=True)
    with sqlite3.connect(project / ".trysquare" / "state.db") as database:
        assert "depth" not in "".join(row[0] for row in database.execute("SELECT state FROM workflow_runs"))
    database.close()
    assert "preset" not in json.loads((project / "workflow_state.json").read_text(encoding="utf-8"))
    async with served(project, bot=folder, name="mini") as client:
        assert (await client.call("tool"))["action"] == "gather_context"


async def test_a_proof_is_dropped_only_by_a_person(tmp_path: Path) -> None:
    folder, nobody, person = bot(tmp_path / "bot", {"short": SHORT}, gates=PROVEN), Person(agrees=False), Person()
    async with served(tmp_path, bot=folder, name="mini", person=nobody) as client:
        refused = await client.call("tool", confirm=True, preset="short")
        assert not refused["success"]
        assert len(nobody.asked) == 1
        assert "shape.gather_context" in nobody.asked[0]
        assert (await client.call("tool"))["action"] == "initialize_project"
    project = tmp_path / "other"
    project.mkdir()
    async with served(project, bot=folder, name="mini", person=person) as client:
        await client.call("tool", confirm=True, preset="short")
        assert (await client.call("tool"))["action"] == "build_knowledge"
        assert (await client.call("close_current_action"))["next_behavior"] == "code"
        assert len(person.asked) == 1


async def test_a_strict_run_keeps_every_action_that_nobody_gave_up(tmp_path: Path) -> None:
    kept = bot(tmp_path / "kept", {"quick": {"actions": ["build_knowledge"]}})
    async with served(tmp_path, bot=kept, name="mini", strict=True, person=Person()) as client:
        refused = await client.call("tool", confirm=True, preset="quick")
        assert refused["error"]["code"] == "STATE_CONFLICT"
    free, project, person = bot(tmp_path / "free", {"short": SHORT}), tmp_path / "project", Person()
    project.mkdir()
    async with served(project, bot=free, name="mini", strict=True, person=person) as client:
        await client.call("tool", confirm=True, preset="short")
        assert "takes away" in person.asked[0]
        assert (await client.call("tool"))["action"] == "build_knowledge"


async def test_a_run_that_becomes_strict_returns_to_what_was_left_out(tmp_path: Path) -> None:
    folder, project = bot(tmp_path / "bot", {"quick": {"actions": ["build_knowledge"]}}), tmp_path / "project"
    project.mkdir()
    async with served(project, bot=folder, name="mini") as client:
        await client.call("tool", confirm=True, preset="quick")
        await client.call("tool")
        assert (await client.call("close_current_action"))["completed_action"] == "build_knowledge"
    async with served(project, bot=folder, name="mini", strict=True, person=Person()) as client:
        assert (await client.call("tool"))["action"] == "gather_context"


@pytest.mark.parametrize(
    ("preset", "code"),
    [
        ({"actions": []}, "dead_end"),
        ({"actions": ["correct_bot"]}, "unknown_name"),
        ({"actions": ["biuld_knowledge", "code"]}, "unknown_name"),
        ({"gates": ["shape.validate"]}, "unknown_name"),
        ({"action": ["code"]}, "unknown_key"),
        ({"actions": ["code"]}, "weak_preset"),
        ({"gates": []}, "weak_preset"),
    ],
)
def test_mistakes_in_presets_are_found(tmp_path: Path, preset: dict[str, Any], code: str) -> None:
    found = findings(bot(tmp_path, {"quick": preset}, gates=PROVEN))
    assert code in [each.code for each in found]
    assert {each.file for each in found} == {"bot_config.json"}
    assert all(each.line > 1 for each in found)


def test_presets_of_every_kind_pass(tmp_path: Path) -> None:
    folder = bot(tmp_path, {"quick": SHORT, "normal": {"actions": ["shape", "code"]}, "thorough": {}}, gates=PROVEN)
    assert findings(folder) == []


async def test_an_unknown_preset_starts_nothing(tmp_path: Path) -> None:
    folder = bot(tmp_path / "bot", {"quick": QUICK})
    async with served(tmp_path, bot=folder, name="mini") as client:
        refused = await client.call("tool", confirm=True, preset="quik")
        assert "`quick`" in refused["error"]["message"]
        assert (await client.call("shape_correct_bot", preset="quick"))["success"] is False
        assert (await client.call("tool", confirm=True, preset="quick"))["preset"] == "quick"


WAIVED = '"depth":{"name":"quick","left_out":["shape.gather_context"]'
FORGED = {
    "a preset that nobody chose": f"{WAIVED}}}",
    "an agreement that nobody gave": f'{WAIVED},"confirmed":true}}',
}


@pytest.mark.parametrize("how", FORGED)
@pytest.mark.parametrize("started", [True, False])
async def test_verify_names_a_preset_that_was_forged(
    tmp_path: Path, how: str, capsys: pytest.CaptureFixture[str], *, started: bool
) -> None:
    folder, project = bot(tmp_path / "bot", {"quick": QUICK}, gates=PROVEN), tmp_path / "project"
    project.mkdir()
    words = ["bot", "verify", "--json", "--project", str(project), "--bot", str(folder)]
    async with served(project, bot=folder, name="mini", person=Person()) as client:
        await client.call("tool", confirm=True)
        if started:
            await client.call("tool")
            await client.call("close_current_action")
    assert main(words) == 0
    capsys.readouterr()
    with sqlite3.connect(project / ".trysquare" / "state.db") as database:
        for table in ("workflow_runs", "workflow_events"):
            forged = f"""replace(state, '"rejections":0', '"rejections":0,{FORGED[how]}')"""
            assert database.execute(f"UPDATE {table} SET state = {forged}").rowcount
    database.close()
    async with served(project, bot=folder, name="mini", person=Person(agrees=False)) as client:
        await client.call("code_gather_context")
    assert main(words) == 1
    problems = json.loads(capsys.readouterr().out)[0]["problems"]
    assert ("presets", "main") in {(each["check"], each["where"]) for each in problems}


async def test_verify_accepts_a_preset_that_a_person_agreed_to_and_its_fork(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, project = bot(tmp_path / "bot", {"short": SHORT}, gates=PROVEN), tmp_path / "project"
    project.mkdir()
    place = ["--project", str(project), "--bot", str(folder)]
    async with served(project, bot=folder, name="mini", person=Person()) as client:
        await client.call("tool", confirm=True, preset="short")
        await client.call("tool")
    assert main(["bot", "fork", "later", *place]) == 0
    assert main(["bot", "verify", *place]) == 0
    capsys.readouterr()
