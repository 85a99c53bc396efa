"""Tasks whose server is killed at every point of their life: one result, and effects once."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from tests.bots.bot_folders import write_bot
from tests.bots.faults.postgres import postgres_server
from tests.e2e.servers import served_over_http
from tests.e2e.stdio_process import REPOSITORY, started_process
from tests.e2e.task_tools import tools as work
from tests.server.task_calls import TaskClient, over_http, over_stdio, stored_tasks, until
from tests.support import size
from trysquare.core.json import JsonObject
from trysquare.server import ServeOptions
from trysquare.store import StoredApprovals, project_state
from trysquare.store.database import open_database
from trysquare.store.watchers import watching

pytestmark = pytest.mark.timeout(1200)
TOOLS = ("once", "again", "steps")
POINTS = ("created", "asking", "answered", "running", "ended", "cancelled", "cancelled-asking")
YES: JsonObject = {"action": "accept", "content": {"value": True}}
INTERRUPTED = "TASK_INTERRUPTED"


class Site:
    """A folder with the state of a server, and what its tools did."""

    def __init__(self, folder: Path, *source: str, database: str | None = None) -> None:
        self.folder = folder
        self._source = source or ("tests.e2e.task_tools:tools",)
        self._database = database
        folder.mkdir(parents=True, exist_ok=True)

    @asynccontextmanager
    async def server(self, *, elicits: bool = True) -> AsyncGenerator[TaskClient]:
        """A server process, killed with SIGKILL at the end of the block."""
        environment = {
            "TASK_FOLDER": str(self.folder), "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}",
            "XDG_STATE_HOME": str(self.folder / "user"),
            **({} if self._database is None else {"TRYSQUARE_DATABASE": self._database}),
        }  # fmt: skip
        command = ["-m", "trysquare", "serve", *self._source, "--project", str(self.folder), "--profile", "full"]
        async with started_process(command, environment=environment) as process:
            yield TaskClient(over_stdio(process), elicits=elicits)

    def lines(self, file: str) -> list[str]:
        path = self.folder / file
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def open_gate(self, name: str) -> None:
        (self.folder / f"open-{name}").touch()

    def count(self, name: str) -> int:
        return self.lines("effects").count(name)


async def until_point(site: Site, client: TaskClient, tool: str, point: str) -> str:
    """Bring a new task to a point of its life."""
    name, asks = name_of(tool, point), point in ("asking", "answered", "cancelled-asking")
    task = await client.begin(tool, name=name, asks=asks)
    if asks:
        [key] = (await client.until(task, "input_required"))["inputRequests"]
        if point == "answered":
            await client.answer(task, **{key: YES})
    if point in ("running", "ended", "cancelled"):
        await until(lambda: name in site.lines("stored" if tool == "steps" else "effects"))
    if point == "ended":
        site.open_gate(name)
        await until(lambda: name in site.lines("ended"))
    if point.startswith("cancelled"):
        await client.cancel(task)
    return task


def name_of(tool: str, point: str) -> str:
    return f"{tool.rpartition('__')[2]}-{point}"


async def final(site: Site, client: TaskClient, task: str, name: str) -> JsonObject:
    """How a task ends after its server was killed; a question that is open is answered."""
    site.open_gate(name)
    found = await client.until(task, "input_required")
    if found["status"] == "input_required":
        await client.answer(task, **dict.fromkeys(found["inputRequests"], YES))
        found = await client.until(task)
    # Whoever looks again reads the same.
    assert (await client.get(task)) == found
    return found


def check(found: JsonObject, effects: int, *, name: str, may_lose: bool, is_cancelled: bool = False) -> None:
    """One result, and effects once. Only work that must not run twice may be given up, and says so."""
    if is_cancelled:
        assert (found["status"], min(effects, 1)) == ("cancelled", effects), name
    elif found["status"] == "failed":
        assert may_lose, name
        assert found["error"]["data"]["code"] == INTERRUPTED
        assert effects <= 1, name
    else:
        assert found["status"] == "completed", name
        assert found["result"]["content"][0]["text"] == name
        assert effects == 1, name


async def at_every_point(site: Site, tools: Sequence[str], points: Sequence[str], lost: Collection[str]) -> None:
    """Kill a server whose tasks are at every point of their life, and look what became of them."""
    tasks: dict[tuple[str, str], str] = {}
    async with site.server() as client:
        for tool in tools:
            for point in points:
                tasks[tool, point] = await until_point(site, client, tool, point)
    async with site.server() as client:
        for (tool, point), task in tasks.items():
            name = name_of(tool, point)
            found = await final(site, client, task, name)
            is_cancelled = point.startswith("cancelled")
            check(found, site.count(name), name=name, may_lose=name in lost, is_cancelled=is_cancelled)


LOST = ("once-created", "once-answered", "once-running", "steps-created", "steps-answered")
"""Killed before a step was stored: nothing tells whether it was done, so the task is given up."""


async def test_tasks_survive_a_killed_server_at_every_point(tmp_path: Path) -> None:
    for round in range(size(1, 20)):
        await at_every_point(Site(tmp_path / str(round)), TOOLS, POINTS, LOST)


async def kills(site: Site, rounds: int, seed: int) -> Counter[str]:
    """Kill a server again and again, after any number of its answers, and check every task at the end."""
    rng = random.Random(seed)
    known: dict[str, tuple[str, str]] = {}
    for number in range(rounds):
        async with site.server() as client:
            calls = [
                asyncio.create_task(_begin(client, rng.choice(TOOLS), f"{number}-{each}", rng.random() < 0.5))
                for each in range(8)
            ]
            wanted = len(known) + rng.randint(1, len(calls))
            for each in asyncio.as_completed(calls):
                task, tool, name = await each
                known[task] = (tool, name)
                if len(known) >= wanted:
                    break
            looked = rng.sample(sorted(known), k=min(4, len(known)))
            for task in looked[: rng.randint(0, 4)]:
                found = await client.get(task)
                if found["status"] == "input_required":
                    await client.answer(task, **dict.fromkeys(found["inputRequests"], YES))
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
    ends = Counter[str]()
    async with site.server() as client:
        for task, (tool, name) in known.items():
            found = await final(site, client, task, name)
            check(found, site.count(name), name=name, may_lose=tool != "again")
            ends[found["status"]] += 1
    assert set(Counter(site.lines("effects")).values()) <= {1}
    return ends


async def _begin(client: TaskClient, tool: str, name: str, asks: bool) -> tuple[str, str, str]:
    return await client.begin(tool, name=name, asks=asks), tool, name


async def test_random_kills_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    ends = await kills(Site(tmp_path), size(2, 120), seed=23)
    assert ends["completed"] > 0


async def test_tasks_survive_killed_servers_on_postgresql(tmp_path: Path) -> None:
    with postgres_server() as url:
        await at_every_point(Site(tmp_path, database=url), TOOLS, POINTS, LOST)
        assert not (tmp_path / ".trysquare" / "tasks").exists()
        if rounds := size(0, 60):
            await kills(Site(tmp_path, database=url), rounds, seed=24)


async def test_tasks_of_a_server_survive_a_killed_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server behind goes on over HTTP. Its tasks are found again, and no tool is called a second time."""
    monkeypatch.setenv("TASK_FOLDER", str(tmp_path))
    config = tmp_path / "mcp.json"
    site = Site(tmp_path, "--gateway", str(config))
    async with served_over_http(work.toolset(), ServeOptions(tasks=stored_tasks(tmp_path / "upstream"))) as url:
        config.write_text(json.dumps({"mcpServers": {"work": {"url": url}}}), encoding="utf-8")
        points = ("running", "asking", "answered", "cancelled-asking")
        await at_every_point(site, ("work__once", "work__again"), points, ())
    assert site.lines("repeated") == []


async def test_a_task_outlives_a_killed_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASK_FOLDER", str(tmp_path))
    async with (
        served_over_http(work.toolset(), ServeOptions(tasks=stored_tasks(tmp_path))) as url,
        httpx2.AsyncClient(timeout=60) as http,
    ):
        killed = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.e2e.task_client", url, cwd=REPOSITORY, stdout=asyncio.subprocess.PIPE
        )
        assert killed.stdout is not None
        task = (await killed.stdout.readline()).decode().strip()
        killed.kill()
        await killed.wait()
        (tmp_path / "open-Ada").touch()
        done = await TaskClient(over_http(http, url)).until(task)
    assert done["result"]["content"][0]["text"] == "Ada"
    assert (tmp_path / "effects").read_text(encoding="utf-8") == "Ada\n"


INITIALIZE = "base_actions/1_initialize_project/action_config.json"
GATED = {"name": "mini", "behaviors": ["shape", "code"], "gates": {"shape.gather_context": {"proof": True}}}


@pytest.mark.parametrize("killed", ["waiting", "decided", "closing"])
async def test_a_close_that_waits_for_a_decision_outlives_its_server(tmp_path: Path, killed: str) -> None:
    """A decision made meanwhile counts, and a later run closes nothing again, nor what comes after."""
    auto = {"name": "initialize_project", "workflow": True, "policy": "auto"}
    bot = write_bot(tmp_path / "bot", {"bot_config.json": GATED, INITIALIZE: auto})
    site = Site(tmp_path / "project", "--bot", str(bot))
    state = project_state(site.folder)
    async with site.server(elicits=False) as client:
        await client.call("mini_tool", parameters={"confirm": True})
        await client.call("mini_tool")
        with watching(state.parent):
            task = await client.begin("mini_close_current_action")
        approvals = StoredApprovals(open_database(state))
        [asked] = approvals.pending()
        assert (await client.get(task))["status"] == "working"
        if killed == "closing":
            approvals.approve(asked.code, by="Ada")
            await until(lambda: approvals.state_of(asked.code) is None)
    if killed == "decided":
        approvals.approve(asked.code, by="Ada")
    async with site.server(elicits=False) as client:

        def decide(found: JsonObject) -> bool:
            # Killed after the decision was used, and before the close: it is asked for again.
            for each in approvals.pending():
                approvals.approve(each.code, by="Ada")
            return found["status"] != "working"

        done = await client.until_that(task, decide)
        assert (await client.get(task)) == done
    assert done["status"] == "completed", done
    assert done["result"]["structuredContent"]["completed_action"] == "gather_context"
    run = json.loads((site.folder / "workflow_state.json").read_text(encoding="utf-8"))
    assert run["current_action"] == "mini.shape.build_knowledge"
    closed = [each["action_state"] for each in run["completed_actions"]]
    assert closed == ["mini.shape.initialize_project", "mini.shape.gather_context"]
