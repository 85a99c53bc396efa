"""Corrections of a bot: kept, shown as a diff, and applied or taken back by a human alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bots.bot_folders import write_bot
from tests.bots.served_bots import BotClient, Person, served

RULE: dict[str, Any] = {
    "description": "No tab.",
    "scanner": {"kind": "regex", "pattern": "TAB", "applies_to": "file", "files": ["*.txt"]},
    "do": {"examples": ["space"]},
    "dont": {"examples": ["TAB"]},
}
FILE = "behaviors/1_shape/instructions.json"
GOAL = {"text": "The goal is too vague", "file": FILE, "old": '"A map."', "new": '"A map of stories."'}
BROKEN = {"text": "Look for BAT", "file": "rules/tabs.json", "old": '"pattern": "TAB"', "new": '"pattern": "BAT"'}
EXTRA = {"text": "A rule more", "file": "rules/extra.json", "new": json.dumps(RULE)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_bot(tmp_path / "bot", {"rules/tabs.json": RULE})


def files(folder: Path) -> dict[str, str]:
    return {str(each.relative_to(folder)): each.read_text() for each in folder.rglob("*") if each.is_file()}


async def begun(client: BotClient) -> BotClient:
    await client.call("tool", confirm=True)
    return client


async def correct(client: BotClient, **parameters: Any) -> dict[str, Any]:
    return await client.call("shape_correct_bot", **parameters)


async def test_corrections_are_kept_and_shown_as_a_diff(tmp_path: Path, folder: Path) -> None:
    before = files(folder)
    async with served(tmp_path, bot=folder, name="mini") as client:
        await begun(client)
        await correct(client, corrections=["Ask less", GOAL])
        await correct(client, corrections=["Ask less", GOAL])
    async with served(tmp_path, bot=folder, name="mini") as client:
        kept = (await correct(client))["data"]["corrections"]
    assert [(each["id"], each["status"], each["text"]) for each in kept] == [
        (1, "kept", "Ask less"), (2, "kept", "The goal is too vague"),
    ]  # fmt: skip
    assert '+  "goal": "A map of stories."' in kept[1]["diff"]
    assert files(folder) == before


async def test_a_human_applies_a_correction_and_takes_it_back(tmp_path: Path, folder: Path) -> None:
    person, before = Person(), files(folder)
    async with served(tmp_path, bot=folder, name="mini", person=person) as client:
        await begun(client)
        await correct(client, corrections=[GOAL, EXTRA])
        for number in (1, 2):
            applied = await correct(client, apply=number)
            assert applied["data"]["correction"]["status"] == "applied"
        assert "A map of stories." in person.asked[-2]
        delivered = await client.call("shape_gather_context")
        assert "A map of stories." in json.dumps(delivered["data"])
        again = await correct(client, apply=1)
        assert again["error"]["code"] == "STATE_CONFLICT"
        for number in (2, 1):
            back = await correct(client, take_back=number)
            assert back["data"]["correction"]["status"] == "taken_back"
    assert files(folder) == before


@pytest.mark.parametrize("person", [None, Person(agrees=False)])
async def test_a_model_alone_changes_nothing(tmp_path: Path, folder: Path, person: Person | None) -> None:
    before = files(folder)
    async with served(tmp_path, bot=folder, name="mini", person=person) as client:
        await begun(client)
        await correct(client, corrections=[GOAL])
        refused = await correct(client, apply=1)
    assert refused["error"]["code"] == ("CONSENT_REQUIRED" if person is None else "CONSENT_REFUSED")
    assert files(folder) == before


@pytest.mark.parametrize(
    "edit",
    [
        BROKEN,
        {"text": "x", "file": FILE, "old": '"goal"', "new": '"goal'},
        {"text": "x", "file": "bot_config.json", "old": '"mini"', "new": '"maxi"'},
        {"text": "x", "file": "bot_config.json", "old": '"name"', "new": '"proofs": true, "name"'},
    ],
)
async def test_what_the_bots_rules_do_not_hold_with_is_taken_back(
    tmp_path: Path, folder: Path, edit: dict[str, str]
) -> None:
    before = files(folder)
    async with served(tmp_path, bot=folder, name="mini", person=Person()) as client:
        await begun(client)
        await correct(client, corrections=[edit])
        refused = await correct(client, apply=1)
        assert refused["error"]["code"] in ("CONFIG_INVALID", "STATE_CONFLICT")
        assert "taken back" in refused["error"]["message"] or "Nothing was changed" in refused["error"]["message"]
        assert (await correct(client))["data"]["corrections"][0]["status"] == "kept"
    assert files(folder) == before


@pytest.mark.parametrize(
    "edit",
    [
        {"text": "x", "file": "../outside.txt", "new": "x"},
        {"text": "x", "file": "/etc/outside.txt", "new": "x"},
        {"text": "x", "file": FILE, "new": "x"},
        {"text": "x", "file": FILE, "old": "not there", "new": "x"},
        {"text": "x", "file": "none.json", "old": "a", "new": "x"},
        {"text": "x"},
    ],
)
async def test_a_correction_that_does_not_fit_is_named_and_asks_nobody(
    tmp_path: Path, folder: Path, edit: dict[str, str]
) -> None:
    person, before = Person(), files(tmp_path)
    async with served(tmp_path, bot=folder, name="mini", person=person) as client:
        await begun(client)
        asked = len(person.asked)
        [kept] = (await correct(client, corrections=[edit]))["data"]["corrections"]
        assert ("problem" in kept) == ("file" in edit)
        assert not (await correct(client, apply=1))["success"]
        assert len(person.asked) == asked
    assert files(folder) == {
        path.removeprefix("bot/"): text for path, text in before.items() if path.startswith("bot/")
    }


async def test_a_file_that_was_changed_since_is_not_taken_back(tmp_path: Path, folder: Path) -> None:
    async with served(tmp_path, bot=folder, name="mini", person=Person()) as client:
        await begun(client)
        await correct(client, corrections=[GOAL])
        await correct(client, apply=1)
        path = folder / FILE
        path.write_text(path.read_text().replace("stories", "journeys"))
        refused = await correct(client, take_back=1)
    assert "was changed since" in refused["error"]["message"]
    assert "journeys" in path.read_text()


@pytest.mark.parametrize("given", [{"apply": 7}, {"apply": True}, {"apply": 1, "take_back": 1}, {"corrections": [{}]}])
async def test_a_wrong_call_is_refused(tmp_path: Path, folder: Path, given: dict[str, Any]) -> None:
    async with served(tmp_path, bot=folder, name="mini", person=Person()) as client:
        await begun(client)
        refused = await correct(client, **given)
    assert not refused["success"]
    assert refused["error"]["code"] in ("RESOURCE_NOT_FOUND", "VALIDATION_INVALID_PARAM")
