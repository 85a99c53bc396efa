"""Damaged records of one run: every command names them, and the other runs go on."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.bots.bot_folders import write_bot
from tests.bots.served_bots import served
from tests.cli.conftest import Run

HERE = ("--project", ".", "--bot", "mini")
DAMAGES = {
    "state": "UPDATE workflow_runs SET state = '{bad' WHERE run = 'x'",
    "completions": "UPDATE workflow_latest SET body = '[1]' WHERE run = 'x'",
    "note": "UPDATE workflow_notes SET value = '{bad' WHERE run = 'x'",
    "history": "UPDATE workflow_entries SET body = '{bad' WHERE run = 'x'",
    "note of no run": "UPDATE workflow_notes SET value = '{bad' WHERE run = ''",
}


@pytest.fixture
def mini(project: Path) -> Path:
    write_bot(project / "mini")
    asyncio.run(calls(project, "main", "x"))
    return project


async def calls(project: Path, *runs: str) -> list[dict[str, Any]]:
    async with served(project, bot=project / "mini", name="mini") as client:
        answers: list[dict[str, Any]] = []
        for run in runs:
            await client.call("shape_gather_context", run=run)
            answers.append(await client.call("close_current_action", run=run))
        return answers


def damage(project: Path, sql: str) -> None:
    with closing(sqlite3.connect(project / ".trysquare/state.db")) as connection:
        assert connection.execute(sql).rowcount
        connection.commit()


@pytest.mark.parametrize("what", DAMAGES)
def test_the_other_run_goes_on_and_nothing_crashes(run: Run, mini: Path, what: str) -> None:
    damage(mini, DAMAGES[what])
    main, other = asyncio.run(calls(mini, "main", "x"))
    assert main["completed_action"] == "gather_context"
    if what in ("state", "completions", "note"):
        assert (other["error"]["code"], other["damaged"]) == ("STATE_UNAVAILABLE", True)
    commands = (
        ("status",), ("history", "--run", "x"), ("history", "--run", "x", "--events"), ("export",), ("verify",),
        ("comment", "--run", "x"), ("diff", "main", "x"), ("correct",), ("fork", "y", "--run", "x"),
    )  # fmt: skip
    for command in commands:
        done = run("bot", *command, *HERE)
        assert done.code in (0, 1, 2)
        assert "Traceback" not in done.err
        assert "INTERNAL_ERROR" not in done.out + done.err
    assert run("bot", "history", *HERE).code == 0


@pytest.mark.parametrize("what", ["state", "completions"])
def test_a_damaged_run_is_listed_named_and_recovered(run: Run, mini: Path, what: str) -> None:
    damage(mini, DAMAGES[what])
    [report] = run("bot", "status", "--json", *HERE).json
    assert "`x` is damaged" in report["notices"][0]
    assert [each["run"] for each in report["runs"]] == ["main"]
    assert '"run": "x"' in run("bot", "export", *HERE).out
    assert run("bot", "verify", *HERE).code == 1
    assert run("bot", "recover", "--run", "x", *HERE).code == 0
    [report] = run("bot", "status", "--json", *HERE).json
    assert (report["notices"], [each["run"] for each in report["runs"]]) == ([], ["main", "x"])
    assert run("bot", "verify", *HERE).code == 0


def test_who_cannot_use_the_database_sees_what_the_state_file_shows(run: Run, mini: Path) -> None:
    """A file in place of the directory fails like missing permission, for root too."""
    [before] = run("bot", "status", "--json", *HERE).json
    shutil.rmtree(mini / ".trysquare")
    (mini / ".trysquare").touch()
    [report] = run("bot", "status", "--json", *HERE).json
    shown = ("run", "version", "current_action", "state", "progress")
    assert [[each[name] for name in shown] for each in report["runs"]] == [
        [each[name] for name in shown] for each in before["runs"]
    ]
    assert "workflow_state.json" in report["notices"][0]
    assert run("bot", "history", *HERE).code != 0
