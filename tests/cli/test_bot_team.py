"""`trysquare bot assign`, `comment` and `verify`."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.bots.bot_folders import write_bot
from tests.bots.served_bots import Person, served
from tests.cli.conftest import Run
from trysquare.core.context import local_principal

ME = local_principal().subject
HERE = ("--project", ".", "--bot", "mini")


@pytest.fixture
def mini(project: Path) -> Path:
    """A bot with a gate, a rule on text files, and an action that a human proved."""
    config = {"name": "mini", "behaviors": ["shape", "code"], "gates": {"shape.gather_context": {"proof": True}}}
    rule: dict[str, Any] = {
        "description": "No tab.",
        "scanner": {"kind": "regex", "pattern": "TAB", "applies_to": "file", "files": ["notes/*.txt"]},
        "do": {"examples": ["space"]},
        "dont": {"examples": ["TAB"]},
    }
    write_bot(project / "mini", {"bot_config.json": config, "rules/tabs.json": rule})
    asyncio.run(work(project))
    return project


async def work(project: Path) -> None:
    async with served(project, bot=project / "mini", name="mini", person=Person()) as client:
        await client.call("shape_gather_context")
        closed = await client.call("close_current_action")
        assert closed["approval"] == "confirmed"


def problems(run: Run, *options: str) -> list[tuple[str, str]]:
    """What `bot verify` finds, by check and place; its exit code says whether it found anything."""
    done = run("bot", "verify", "--json", *options, *HERE)
    [report] = done.json
    found = [(each["check"], each["where"]) for each in report["problems"]]
    assert done.code == (1 if found else 0)
    return found


def database(project: Path, sql: str) -> None:
    with closing(sqlite3.connect(project / ".trysquare/state.db")) as connection:
        connection.execute(sql)
        connection.commit()


def test_a_project_in_which_everything_holds_passes(run: Run, mini: Path) -> None:
    assert problems(run) == []
    assert "OK" in run("bot", "verify", *HERE).out


def test_everything_that_does_not_hold_is_listed_at_once(run: Run, mini: Path) -> None:
    (mini / "notes").mkdir()
    (mini / "notes/a.txt").write_text("fine\nTAB\n", encoding="utf-8")
    database(mini, "DELETE FROM audit WHERE kind = 'consent.approved'")
    database(mini, "UPDATE workflow_runs SET state = replace(state, 'build_knowledge', 'gather_context')")
    found = problems(run)
    assert ("rules", "main: notes/a.txt:2") in found
    assert ("receipts", "main: shape.gather_context") in found
    assert {where for check, where in found if check == "records"} == {
        "audit log of the runs", "audit log of the approvals", "main",
    }  # fmt: skip


def test_an_approval_that_nobody_gave_is_found(run: Run, mini: Path) -> None:
    database(mini, f'UPDATE workflow_latest SET body = replace(body, \'"by":"{ME}"\', \'"by":"eve"\')')
    assert ("receipts", "main: shape.gather_context") in problems(run)


def test_open_actions_are_a_problem_only_on_request(run: Run, mini: Path) -> None:
    open_actions = [where for check, where in problems(run, "--complete") if check == "complete"]
    assert open_actions[:1] == ["main: shape.initialize_project"]


def test_a_checkout_without_its_database_is_verified_by_the_state_file(run: Run, mini: Path) -> None:
    before = (mini / "workflow_state.json").read_bytes()
    shutil.rmtree(mini / ".trysquare")
    assert problems(run) == [("receipts", "main: shape.gather_context")]
    assert problems(run, "--without-receipts") == []
    state = json.loads(before)
    state["completed_actions"][0]["approval"] = "claimed"
    (mini / "workflow_state.json").write_text(json.dumps(state), encoding="utf-8")
    assert problems(run, "--without-receipts") == [("gates", "main: shape.gather_context")]
    assert not (mini / ".trysquare").exists(), "nothing is written"
    (mini / "workflow_state.json").write_text("{", encoding="utf-8")
    assert problems(run) == [("records", "workflow_state.json")]


def test_an_unknown_run_is_wrong_usage(run: Run, mini: Path) -> None:
    refused = run("bot", "verify", "--run", "nope", *HERE)
    assert refused.code == 2
    assert "nope" in refused.err


def test_a_behavior_is_assigned_in_a_run_and_taken_back(run: Run, mini: Path) -> None:
    def closes() -> str:
        async def close() -> str:
            async with served(mini, bot=mini / "mini", name="mini") as client:
                await client.call("code_gather_context")
                answer = await client.call("close_current_action")
                return answer.get("completed_action") or answer["error"]["code"]

        return asyncio.run(close())

    assert run("bot", "assign", "code", "eve", "bob", "--json", *HERE).json["assignees"] == ["eve", "bob"]
    assert closes() == "PERMISSION_DENIED"
    run("bot", "assign", "code", *HERE)
    assert closes() == "gather_context"
    refused = run("bot", "assign", "cod", "eve", *HERE)
    assert (refused.code, "Did you mean code" in refused.err) == (2, True)


def test_comments_are_kept_and_listed(run: Run, mini: Path) -> None:
    run("bot", "comment", "shape.gather_context", "See #12", *HERE)
    run("bot", "comment", "code.gather_context", "Later", *HERE)
    [first, second] = sorted(run("bot", "comment", "--json", *HERE).json, key=lambda line: line["text"])
    assert (first["action"], first["text"], first["by"]) == ("code.gather_context", "Later", ME)
    assert second["references"] == ["#12"]
    [only] = run("bot", "comment", "shape.gather_context", "--json", *HERE).json
    assert only["text"] == "See #12"
    refused = run("bot", "comment", "shape.gather", "x", *HERE)
    assert (refused.code, "Did you mean" in refused.err) == (2, True)


def test_what_a_model_wrote_draws_nothing_on_the_terminal(run: Run, mini: Path) -> None:
    evil = "fine\u001b[2K\rProblems: none"

    async def write() -> None:
        async with served(mini, bot=mini / "mini", name="mini") as client:
            await client.call("shape_gather_context", comment=evil, run="b")
            edit = {"text": evil, "file": "new.txt", "new": evil}
            await client.call("shape_correct_bot", corrections=[edit])

    asyncio.run(write())
    for command in (("comment", "--run", "b"), ("correct",)):
        shown = run("bot", *command, *HERE).out
        assert "Problems" in shown
        assert "\u001b" not in shown
        assert "\r" not in shown
