"""Tasks of a test: where they are kept, and a client that sends what the extension has."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
from msgspec import json as msgspec_json

from tests.e2e.stdio_process import StdioProcess
from tests.server.clients import served_http
from trysquare import Principal, Toolset
from trysquare.core.json import JsonObject
from trysquare.server import ServeOptions
from trysquare.store import LazyDatabase
from trysquare.store.tasks import StoredTasks, TaskFile

Exchange: TypeAlias = Callable[[JsonObject], Awaitable[JsonObject]]
"""Sends a request and returns the response."""
TASKS = "io.modelcontextprotocol/tasks"
FINAL = ("completed", "failed", "cancelled")
LOOK = 0.02


def stored_tasks(folder: Path, *, most_open: int = 64, most_kept: int = 1_000) -> StoredTasks:
    """Tasks in a state file of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return StoredTasks(TaskFile(LazyDatabase(folder / "state.db")), most_open=most_open, most_kept=most_kept)


async def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until something holds of what other processes write."""
    async with asyncio.timeout(seconds):
        while True:
            if holds():
                return
            await asyncio.sleep(LOOK)


class RefusedRequest(Exception):
    """An error response."""

    def __init__(self, error: JsonObject) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]
        self.data: JsonObject = error.get("data") or {}


class TaskClient:
    """A client of protocol 2026-07-28, with or without the extension."""

    def __init__(self, exchange: Exchange, *, declares: bool = True, elicits: bool = True) -> None:
        self._exchange = exchange
        self._ids = itertools.count(1)
        self._capabilities: JsonObject = {"elicitation": {}} if elicits else {}
        if declares:
            self._capabilities["extensions"] = {TASKS: {}}

    async def ask(self, method: str, **params: Any) -> JsonObject:
        """The result of a request; `RefusedRequest` for an error."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": self._capabilities,
            "io.modelcontextprotocol/clientInfo": {"name": "tasks", "version": "1"},
        }
        frame: JsonObject = {"jsonrpc": "2.0", "id": next(self._ids), "method": method}
        response = await self._exchange({**frame, "params": {**params, "_meta": meta}})
        if "error" in response:
            raise RefusedRequest(response["error"])
        return response["result"]

    async def call(self, tool: str, /, **arguments: Any) -> JsonObject:
        return await self.ask("tools/call", name=tool, arguments=arguments)

    async def begin(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool that answers with a task; returns the id of the task."""
        created = await self.call(tool, **arguments)
        assert created["resultType"] == "task"
        return created["taskId"]

    async def get(self, task: str) -> JsonObject:
        return await self.ask("tasks/get", taskId=task)

    async def answer(self, task: str, **responses: JsonObject) -> JsonObject:
        return await self.ask("tasks/update", taskId=task, inputResponses=responses)

    async def cancel(self, task: str) -> JsonObject:
        return await self.ask("tasks/cancel", taskId=task)

    async def until(self, task: str, *statuses: str) -> JsonObject:
        """The task once it has one of the statuses, or has ended."""
        return await self.until_that(task, lambda found: found["status"] in (*statuses, *FINAL))

    async def until_that(self, task: str, holds: Callable[[JsonObject], bool], seconds: float = 60) -> JsonObject:
        """The task once something holds of it."""
        async with asyncio.timeout(seconds):
            while True:
                if holds(found := await self.get(task)):
                    return found
                await asyncio.sleep(LOOK)


def over_stdio(server: StdioProcess) -> Exchange:
    async def exchange(frame: JsonObject) -> JsonObject:
        await server.send(frame)
        return await server.answer(frame["id"])

    return exchange


def over_http(http: httpx2.AsyncClient, address: str, token: str | None = None) -> Exchange:
    async def exchange(frame: JsonObject) -> JsonObject:
        named = frame["params"].get("name") or frame["params"].get("taskId")
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": frame["method"],
            **({} if named is None else {"Mcp-Name": named}),
            **({} if token is None else {"Authorization": f"Bearer {token}"}),
        }
        response = await http.post(address, content=msgspec_json.encode(frame), headers=headers)
        if response.headers["content-type"].startswith("text/event-stream"):
            lines = [line for line in response.text.splitlines() if line.startswith("data: {")]
            return msgspec_json.decode(lines[-1].removeprefix("data: "))
        return response.json()

    return exchange


@asynccontextmanager
async def task_client(
    toolset: Toolset, tasks: StoredTasks, *, principal: str = "ada", declares: bool = True
) -> AsyncGenerator[TaskClient]:
    """A client of a server over HTTP whose tasks are kept in a store."""
    options = ServeOptions(tasks=tasks, principal=Principal(subject=principal))
    async with served_http(toolset, options) as address, httpx2.AsyncClient(timeout=60) as http:
        yield TaskClient(over_http(http, f"{address}/mcp"), declares=declares)
