"""`trysquare bot`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.bots.served_bots import STORY_BOT, served
from tests.cli.conftest import Run, Types

HERE = ("--project", ".", "--bot", "mine")


@pytest.fixture
def bot(run: Run, project: Path) -> Path:
    """A bot that `bot new` made, with one action delivered and closed in the project."""
    run("bot", "new", "mine")
    asyncio.run(_work(project))
    return project / "mine"


async def _work(project: Path) -> None:
    async with served(project, bot=project / "mine", name="mine") as client:
        await client.call("shape_gather_context")
        await client.call("close_current_action")
        await client.call("tool")


def test_a_new_bot_is_right_and_can_be_served(run: Run, project: Path) -> None:
    made = run("bot", "new", "mine", "--json").json
    assert made["tools"] == 3 + 2 + 2 * 5
    checked = run("bot", "check", "mine")
    assert checked.code == 0
    assert "OK: no errors." in checked.out
    assert "15 tools listed" in run("list", "--bot", "mine").out


def test_story_bot_passes_its_check(run: Run) -> None:
    report = run("bot", "check", str(STORY_BOT), "--json").json
    assert (report["bot"], report["tools"], report["problems"]) == ("story_bot", 75, [])


def test_a_new_bot_overwrites_nothing(run: Run, project: Path) -> None:
    run("bot", "new", "mine")
    again = run("bot", "new", "mine")
    assert again.code == 2
    assert "already exists" in again.err


def test_a_name_that_no_tool_can_have_is_refused(run: Run, project: Path) -> None:
    refused = run("bot", "new", "My-Bot")
    assert refused.code == 2
    assert not (project / "My-Bot").exists()


def test_a_rule_that_misses_its_own_example_fails_the_check(run: Run, project: Path) -> None:
    run("bot", "new", "mine")
    rule = project / "mine/rules/names_say_what_is_done.json"
    rule.write_text(rule.read_text(encoding="utf-8").replace("manage|", ""), encoding="utf-8")
    checked = run("bot", "check", "mine")
    assert checked.code == 1
    assert "don't example" in checked.out


def test_status_tells_where_the_run_stands(run: Run, bot: Path) -> None:
    refused = run("bot", "status", "--run", "nope", *HERE)
    assert refused.code == 2
    assert "unknown run `nope`" in refused.err
    shown = run("bot", "status", *HERE).out
    assert "shape.build_knowledge" in shown
    [report] = run("bot", "status", "--json", *HERE).json
    assert report["runs"][0]["current_action"] == "shape.build_knowledge"
    assert report["runs"][0]["progress"] == "1/8"


def test_history_tells_who_closed_what_and_how(run: Run, bot: Path) -> None:
    [line] = run("bot", "history", "--json", *HERE).json
    assert (line["action"], line["what"], line["delivered"]) == ("shape.gather_context", "claimed", "yes")
    assert "shape.gather_context" in run("bot", "history", *HERE).out
    kinds = [event["what"] for event in run("bot", "history", "--events", "--json", *HERE).json]
    assert kinds[-2:] == ["close", "open"]


def test_a_fork_goes_its_own_way_and_diff_shows_it(run: Run, bot: Path) -> None:
    run("bot", "fork", "other", *HERE)
    same = run("bot", "diff", "main", "other", "--json", *HERE).json
    assert (same["actions"], same["files"]) == ([], [])
    run("bot", "rewind", "0", "--run", "other", "--reason", "from the start", *HERE)
    rows: list[dict[str, Any]] = run("bot", "diff", "main", "other", "--json", *HERE).json["actions"]
    assert {row["action"] for row in rows} >= {"shape.gather_context", "shape.build_knowledge"}
    assert "shape.build_knowledge" in run("bot", "status", *HERE).out


def test_a_rejection_needs_a_reason(run: Run, bot: Path) -> None:
    assert run("bot", "reject", *HERE).code == 2
    sent_back = run("bot", "reject", "--reason", "Too vague.", *HERE)
    assert sent_back.out.startswith("shape.build_knowledge ")
    assert "Too vague." in sent_back.out
    assert "sent back (1)" in run("bot", "status", *HERE).out


def test_nobody_approves_without_a_terminal(run: Run, bot: Path) -> None:
    refused = run("bot", "approve", *HERE)
    assert refused.code == 2
    assert "human" in refused.err
    assert len(run("bot", "history", "--json", *HERE).json) == 1


def test_without_a_bot_the_command_says_how_to_name_one(run: Run, project: Path) -> None:
    refused = run("bot", "status", "--project", ".")
    assert refused.code == 2
    assert "--bot FOLDER" in refused.err


def test_an_approval_at_the_terminal_closes_with_proof(run: Run, bot: Path, types: Types) -> None:
    types("yes\n")
    closed = run("bot", "approve", *HERE)
    assert closed.code == 0, closed.err
    assert "shape.build_knowledge is closed" in closed.out
    assert [line["what"] for line in run("bot", "history", "--json", *HERE).json] == ["claimed", "confirmed"]


def test_a_refusal_at_the_terminal_closes_nothing(run: Run, bot: Path, types: Types) -> None:
    types("no\n")
    assert run("bot", "approve", *HERE).code == 1
    assert len(run("bot", "history", "--json", *HERE).json) == 1


def test_nothing_is_sent_back_where_no_run_has_begun(run: Run, project: Path) -> None:
    run("bot", "new", "mine")
    refused = run("bot", "reject", "--reason", "no", *HERE)
    assert (refused.code, "has not started" in refused.err) == (1, True)
    assert not (project / "workflow_state.json").exists()


@pytest.mark.parametrize(
    ("decision", "closed"), [("approve", ["claimed", "reopened", "confirmed"]), ("reject", ["claimed", "reopened"])]
)
def test_the_code_of_a_close_that_waits_is_approved_or_refused(
    run: Run, bot: Path, types: Types, decision: str, closed: list[str]
) -> None:
    # What was claimed before the run became strict is open again.
    code = asyncio.run(_ask_to_close(bot.parent, reopens=True))
    types("yes\n")
    decided = run("bot", decision, code, *HERE)
    assert decided.code == 0, decided.err
    asyncio.run(_ask_to_close(bot.parent))
    assert [line["what"] for line in run("bot", "history", "--json", *HERE).json] == closed


async def _ask_to_close(project: Path, *, reopens: bool = False) -> str:
    """Close as an agent that cannot ask anybody; the code that a person is to decide about, if one still is."""
    async with served(project, bot=project / "mine", name="mine", strict=True) as client:
        if reopens:
            assert (await client.call("tool"))["action"] == "gather_context"
        waiting = await client.call("close_current_action", expected_action="shape.gather_context")
        return str(waiting.get("approval", {}).get("code")) if "error" in waiting else ""


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_code_that_nobody_gave_out_is_refused(run: Run, bot: Path, types: Types, decision: str) -> None:
    types("yes\n")
    refused = run("bot", decision, "AAAA-BBBB", *HERE)
    assert refused.code != 0
    assert "AAAA-BBBB" in refused.err


def test_the_history_of_no_run_and_a_limit_that_is_none_are_refused(run: Run, bot: Path) -> None:
    assert "unknown run `nope`. Known runs: main." in run("bot", "history", "--run", "nope", *HERE).err
    assert "is not above 0" in run("bot", "history", "--limit", "0", *HERE).err
