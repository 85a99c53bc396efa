"""Fifty agents over four server processes, which are killed and started again: each close counts exactly once."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tests.bots.bot_folders import write_bot
from tests.server.test_http_calls import MODERN_META
from tests.support import size, told
from trysquare.bots.workflow.runs import open_workflows
from trysquare.store.workflows import StoredRun

ROOT = Path(__file__).parents[3]
SERVERS = 4
AGENTS = 50
BEHAVIORS = size(20, 400)
CLOSES = 3 * BEHAVIORS
KILLS = size(4, 40)
ACTIONS = ("initialize_project", "gather_context", "build_knowledge")
TOOL = "mini_close_current_action"
TOKEN = "a-token-of-this-test"
TROUBLE = (httpx2.TransportError, asyncio.IncompleteReadError, ConnectionError)


def long_bot(folder: Path) -> Path:
    """A bot with many behaviors of three actions each."""
    names = [f"b{number}" for number in range(1, BEHAVIORS + 1)]
    parts = {f"behaviors/{number}_{name}/instructions.json": {"goal": name} for number, name in enumerate(names, 1)}
    config = {"name": "mini", "behaviors": names}
    unused = {f"behaviors/{each}/instructions.json": None for each in ("1_shape", "2_code")}
    return write_bot(folder, {"bot_config.json": config, **unused, **parts})


@dataclass(kw_only=True)
class Servers:
    """Server processes on one project, each at a port of its own."""

    words: list[str]
    env: dict[str, str]
    ports: list[int]
    processes: dict[int, Process] = field(default_factory=dict[int, Process])

    async def start(self, port: int) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "trysquare", "serve", *self.words, "--http", f"127.0.0.1:{port}",
            cwd=ROOT, env=self.env, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        self.processes[port] = process
        assert process.stderr is not None
        heard = b""
        while b"Serving at" not in heard:
            line = await process.stderr.readline()
            assert line, f"the server has not started: {heard.decode()}"
            heard += line

    async def kill(self, port: int) -> None:
        process = self.processes.pop(port)
        process.kill()
        await process.wait()


@asynccontextmanager
async def running(project: Path, bot: Path, url: str | None) -> AsyncGenerator[Servers]:
    """Four servers, which are gone at the end of the block."""
    # With a shared database every request needs a token, and a setting that takes what stays on each machine.
    shared = {"TRYSQUARE_DATABASE": url, "TRYSQUARE_HTTP_ACCEPT_LOCAL_STATE": "true"} if url else {}
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TRYSQUARE_HTTP_TOKENS": TOKEN, **shared}
    words = ["--bot", str(bot), "--project", str(project)]
    servers = Servers(words=words, env=env, ports=_free_ports(SERVERS))
    try:
        async with anyio.create_task_group() as group:
            for port in servers.ports:
                group.start_soon(servers.start, port)
        yield servers
    finally:
        for port in list(servers.processes):
            await servers.kill(port)


def _free_ports(wanted: int) -> list[int]:
    """Ports that nobody uses; they are open together here, so that none is given twice."""
    sockets = [socket.socket() for _ in range(wanted)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


@dataclass(kw_only=True)
class Crowd:
    """The agents, and what was acknowledged to them."""

    servers: Servers
    client: httpx2.AsyncClient
    acknowledged: list[str] = field(default_factory=list[str])
    heard: anyio.Condition = field(default_factory=anyio.Condition)

    async def work(self, name: int) -> None:
        """One agent: it closes with a key of its own each time, and asks again at another server until it is told."""
        for number in count():
            answer = await self.sure_answer(f"{name}-{number}", turn=name + number)
            if answer.get("already_closed"):
                return
            async with self.heard:
                self.acknowledged.append(f"{answer['behavior']}.{answer['completed_action']}")
                self.heard.notify_all()

    async def sure_answer(self, key: str, turn: int) -> dict[str, Any]:
        for port in count(turn):
            try:
                envelope = await self.close(self.servers.ports[port % SERVERS], key)
            except TROUBLE:
                await anyio.lowlevel.checkpoint()
                continue
            if envelope["success"]:
                return envelope
            assert envelope["error"]["code"] in ("STATE_CONFLICT", "STATE_UNAVAILABLE"), envelope
        raise AssertionError

    async def close(self, port: int, key: str) -> dict[str, Any]:
        params = {"name": TOOL, "arguments": {"parameters": {"request_key": key}}, "_meta": MODERN_META}
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": TOOL,
            "Authorization": f"Bearer {TOKEN}",
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        response = await self.client.post(f"http://127.0.0.1:{port}/mcp", json=message, headers=headers)
        # A call that takes long is answered as a stream of events, of which the last one is the answer.
        events = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")]
        answer = json.loads(events[-1] if events else response.text)
        return told(answer["result"])

    async def disturb(self) -> None:
        """Kill one server after the other while the agents work, and start each again."""
        for number in range(KILLS):
            await self.until((number + 1) * CLOSES // (KILLS + 2))
            port = self.servers.ports[number % SERVERS]
            await self.servers.kill(port)
            await self.servers.start(port)

    async def until(self, closes: int) -> None:
        async with self.heard:
            while len(self.acknowledged) < closes:
                await self.heard.wait()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str | None:
    return None if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.mark.timeout(1800)
async def test_each_acknowledged_close_is_one_transition_though_servers_are_killed(
    url: str | None, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    bot = long_bot(tmp_path / "bot")
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(running(project, bot, url))
        client = await stack.enter_async_context(httpx2.AsyncClient(timeout=60))
        crowd = Crowd(servers=servers, client=client)
        async with anyio.create_task_group() as group:
            group.start_soon(crowd.disturb)
            for name in range(AGENTS):
                group.start_soon(crowd.work, name)

    expected = sorted(f"b{number}.{action}" for number in range(1, BEHAVIORS + 1) for action in ACTIONS)
    assert sorted(crowd.acknowledged) == expected, "every close was acknowledged to one agent, once"
    stored, made = _stored(project, url)
    assert json.loads(stored.state)["finished"] is True
    assert made == CLOSES


def _stored(project: Path, url: str | None) -> tuple[StoredRun, int]:
    """The main run, and how many completions are stored."""
    store = open_workflows(url, project)
    try:
        with store.read("mini") as rows:
            run = rows.run("main")
            assert run is not None
            return run, len(rows.entries("main", run.generation, after=0, limit=10**6))
    finally:
        store.close()
