"""Agents from outside: on the command line and over MCP, with a model behind a real HTTP connection."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from tests.agents.scripted import call
from tests.e2e.stdio_process import started_process
from tests.models.stand_in import serving
from tests.server.task_calls import TaskClient, over_stdio
from tests.support import told as all_told
from trysquare.cli.main import main
from trysquare.core.json import JsonObject

READER = """
name = "reader"
description = "Reads files and says what is in them."
instructions = "Read, then finish."
[tools]
required = ["file"]
[policy]
default = "deny"
rules = [
  { effect = "allow", tool = "file", actions = ["read", "write"] },
  { effect = "ask", tool = "file", actions = ["write"] },
]
[budget]
steps = 6
"""


def completion(said: JsonObject) -> tuple[int, dict[str, str], str]:
    """What a server answers that knows nothing of calls: a call in plain text."""
    message = {"role": "assistant", "content": f"I go on.\n```json\n{json.dumps(said)}\n```"}
    usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
    return 200, {}, json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})


@contextmanager
def project(folder: Path, *said: JsonObject) -> Generator[Path]:
    """A project with an agent of its own, whose model says these things."""
    (folder / "agents").mkdir()
    (folder / "agents" / "reader.toml").write_text(READER, encoding="utf-8")
    (folder / "hello.txt").write_text("hello there", encoding="utf-8")
    with serving("free", troubles=[completion(one) for one in said]) as server:
        (folder / "trysquare.toml").write_text(
            f'model = "openai:m@{server.url}"\n[models]\nhold = "free"\nretries = 0\n', encoding="utf-8"
        )
        yield folder


READ = call("file", action="read", path="hello.txt")
DONE = call("finish", summary="It says hello.", files=["hello.txt"])


@pytest.mark.parametrize("kept", ["--job", "--no-job"])
def test_run_shows_each_step_and_what_came_of_it(kept: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with project(tmp_path, READ, DONE):
        code = main(["run", "reader", "What does it say?", "--project", str(tmp_path), kept])
    told = capsys.readouterr()
    assert code == 0, told.err
    assert told.out.splitlines() == ["finished: It says hello.", "2 steps, 2 calls, 50 tokens"]
    # A job is looked at now and then, so that a quick step may pass unseen.
    assert ("file read hello.txt: ok" if kept == "--no-job" else "done") in told.err


def test_run_ends_with_1_where_the_work_is_not_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with project(tmp_path, READ, call("give_up", reason="It is too short.")):
        code = main(["run", "reader", "Sum it up.", "--project", str(tmp_path), "--no-job", "--json"])
    assert code == 1
    assert json.loads(capsys.readouterr().out)["status"] == "gave_up"


def test_a_call_waits_for_approval_and_names_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = (call("file", action="write", path="new.txt", content="x"), call("give_up", reason="Nobody agrees."))
    with project(tmp_path, *said):
        main(["run", "reader", "Write it.", "--project", str(tmp_path), "--no-job"])
    assert "trysquare approve " in capsys.readouterr().out
    assert not (tmp_path / "new.txt").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "reader"], "the task is missing"),
        (["run", "nobody", "x"], "unknown agent `nobody`"),
        (["run", "builder", "x", "--steps", "0"], "0 is not above 0"),
        (["run", "builder", "x"], "no model is configured"),
    ],
)
def test_wrong_usage_is_reported_in_one_line(
    words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code: Any = main(words)
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert told in capsys.readouterr().err


def test_show_prints_a_definition_to_be_copied(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "triager", "--show"]) == 0
    assert 'name = "triager"' in capsys.readouterr().out


async def test_an_agent_is_a_tool_over_mcp_with_a_handle_progress_and_an_outcome(tmp_path: Path) -> None:
    steps: list[str | None] = []

    async def told(progress: float, total: float | None, message: str | None) -> None:
        steps.append(message)

    with project(tmp_path, READ, DONE), anyio.fail_after(100):
        environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
        words = ["-m", "trysquare", "serve", "--agents", "--project", str(tmp_path)]
        command = StdioServerParameters(command=sys.executable, args=words, cwd=tmp_path, env=environment)
        async with Client(stdio_client(command)) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            started = await client.call_tool("agent_reader", {"action": "start", "task": "What does it say?"})
            assert started.structured_content is not None
            job = all_told(started)["job"]
            ended = await client.call_tool(
                "agent_reader", {"action": "wait", "job": job, "seconds": 60}, progress_callback=told
            )
            other = await client.call_tool("agent_builder", {"action": "status", "job": job})
            unknown = await client.call_tool("agent_reader", {"action": "cancel", "job": "nothing"})
    assert {"agent_builder", "agent_reviewer", "agent_debugger", "agent_triager", "agent_reader"} <= set(names)
    assert ended.structured_content is not None
    assert ended.structured_content["outcome"]["status"] == "finished"
    assert all_told(ended)["message"] == "finished: It says hello."
    assert steps
    assert other.is_error
    assert unknown.is_error


async def test_a_run_is_a_task_for_a_client_that_supports_tasks(tmp_path: Path) -> None:
    with project(tmp_path, READ, DONE):
        words = ["-m", "trysquare", "serve", "--agents", "--project", str(tmp_path)]
        async with started_process(words, environment={"XDG_STATE_HOME": str(tmp_path / "state")}) as process:
            client = TaskClient(over_stdio(process))
            task = await client.begin("agent_reader", action="start", task="What does it say?")
            found = await client.until(task)
    assert found["status"] == "completed"
    assert found["result"]["structuredContent"]["outcome"]["status"] == "finished"
