"""story_bot in server processes, with its runs in PostgreSQL: killed, resumed, and shared by two checkouts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from anyio.lowlevel import checkpoint
from mcp import Client, MCPError, StdioServerParameters

from tests.bots.served_bots import STORY_BOT, BotClient

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkouts(tmp_path: Path) -> Path:
    """A folder with two checkouts, `one` and `two`."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    return tmp_path


@asynccontextmanager
async def served(project: Path, database: str) -> AsyncGenerator[BotClient]:
    """The bot as a client starts it, in one checkout of the project `shop`."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "XDG_STATE_HOME": str(project.with_name("user-state")),
        "TRYSQUARE_DATABASE": database,
        "TRYSQUARE_PROJECT_ID": "shop",
    }
    words = ["-m", "trysquare", "serve", "--bot", str(STORY_BOT), "--project", str(project)]
    started = StdioServerParameters(command=sys.executable, args=words, cwd=project, env=environment)
    async with asyncio.timeout(100), Client(started, mode="legacy") as client:
        yield BotClient(client=client, project=project)


def children() -> set[int]:
    """The processes that this one started."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(number) for each in lists for number in each.read_text().split()}


async def kill_while_it_closes(project: Path, database: str) -> None:
    """Come to gather_context, ask for its close, and kill the server once the database has it or not, as it falls."""
    before = children()
    async with served(project, database) as bot:
        [server] = children() - before
        await bot.call("tool", confirm=True)
        await bot.call("tool")
        closing = asyncio.create_task(bot.call("close_current_action", request_key="close-1"))
        await checkpoint()
        os.kill(server, signal.SIGKILL)
        with pytest.raises(MCPError):
            await closing


async def test_a_killed_server_is_resumed_from_another_checkout_and_each_close_counts_once(
    postgres_url: str, checkouts: Path
) -> None:
    one, two = (checkouts.joinpath(name) for name in ("one", "two"))
    await kill_while_it_closes(one, postgres_url)

    async with served(two, postgres_url) as bot:
        closed = await bot.call("close_current_action", request_key="close-1")
        assert (closed["completed_action"], closed["next_action"]) == ("gather_context", "decide_planning_criteria")
        assert bot.completed() == ["shape.initialize_project", "shape.gather_context"]

    (one / "workflow_state.json").unlink(missing_ok=True)
    async with served(one, postgres_url) as bot:
        again = await bot.call("close_current_action", request_key="close-1")
        assert (again["completed_action"], again["replayed"]) == ("gather_context", True)
        assert (await bot.call("tool"))["action"] == "decide_planning_criteria"
        assert bot.completed() == ["shape.initialize_project", "shape.gather_context"]
        bot.write_state(**{**bot.state(), "current_action": "story_bot.code.validate_rules"})
        assert (await bot.call("tool"))["action"] == "decide_planning_criteria"
        assert bot.state()["current_action"] == "story_bot.shape.decide_planning_criteria"

    assert json.loads((two / "workflow_state.json").read_text())["current_action"].endswith("decide_planning_criteria")
    assert not (one / ".trysquare" / "project-id").exists()
