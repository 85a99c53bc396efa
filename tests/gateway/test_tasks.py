"""Tasks of servers behind a gateway: ours to the client, theirs to the server."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from tests.e2e.servers import served_over_http
from tests.gateway.opened import Place
from tests.server.task_calls import TaskClient, over_http, stored_tasks, until
from trysquare import CallContext, TaskOptions, Tools, Toolset
from trysquare.app import open_app
from trysquare.core.json import JsonObject
from trysquare.server import ServeOptions
from trysquare.settings import Settings

NAME = "work__"


@dataclass(kw_only=True)
class Upstream:
    """A server whose tools are tasks, and what they did."""

    effects: list[str] = field(default_factory=list[str])
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    def toolset(self) -> Toolset:
        tools = Tools("work")
        options = TaskOptions(poll=0.05)

        @tools.tool(task=options)
        async def wait(context: CallContext) -> str:
            """Wait until the test lets it end."""
            await context.progress(1, 2, "half of it")
            self.begun.set()
            try:
                await self.may_end.wait()
            except asyncio.CancelledError:
                self.stopped.set()
                raise
            self.effects.append("waited")
            return "done"

        @tools.tool(task=options)
        async def greet(context: CallContext) -> str:
            """Ask for a name."""
            name = await context.ask("Who?", str)
            self.effects.append(name)
            return f"Hello {name}"

        @tools.tool(task=options)
        async def crash() -> str:
            """Fail in a way that nobody expected."""
            raise RuntimeError("broken")

        return tools.toolset()


@contextlib.asynccontextmanager
async def front(
    place: Place, upstream: Upstream, monkeypatch: pytest.MonkeyPatch, *, declares: bool = True
) -> AsyncGenerator[TaskClient]:
    """A client of a gateway in front of the server, both over HTTP."""
    monkeypatch.setenv("XDG_STATE_HOME", str(place.folder / "state"))
    options = ServeOptions(tasks=stored_tasks(place.folder / "upstream"))
    async with asyncio.timeout(60), served_over_http(upstream.toolset(), options) as url:
        place.write_config({"work": {"url": url}})
        settings = Settings(gateway=(place.config,), project=place.folder, profile=("full",))
        async with (
            open_app(settings) as app,
            served_over_http(app.toolset, app.serve_options()) as address,
            httpx2.AsyncClient(timeout=60) as http,
        ):
            yield TaskClient(over_http(http, address), declares=declares)


def text_of(result: JsonObject) -> str:
    return result["content"][0]["text"]


async def test_a_task_of_a_server_is_a_task_of_ours_with_its_progress_and_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream = Upstream()
    async with front(Place(folder=tmp_path), upstream, monkeypatch) as client:
        task = await client.begin(f"{NAME}wait")
        found = await client.until_that(task, lambda found: "statusMessage" in found)
        upstream.may_end.set()
        done = await client.until(task)
    assert found["statusMessage"].endswith("1 of 2: half of it")
    assert text_of(done["result"]) == "done"
    assert done["result"]["_meta"]["trysquare/origin"]["server"] == "work"
    assert upstream.effects == ["waited"]


async def test_what_a_task_of_a_server_asks_is_answered_in_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream = Upstream()
    async with front(Place(folder=tmp_path), upstream, monkeypatch) as client:
        task = await client.begin(f"{NAME}greet")
        asks = await client.until(task, "input_required")
        [(key, question)] = asks["inputRequests"].items()
        await client.answer(task, **{key: {"action": "accept", "content": {"value": "Ada"}}})
        done = await client.until(task)
    assert question["params"]["message"] == "work asks: Who?"
    assert text_of(done["result"]) == "Hello Ada"
    assert upstream.effects == ["Ada"]


async def test_a_client_without_tasks_waits_for_the_task_of_a_server_and_answers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream = Upstream()
    async with front(Place(folder=tmp_path), upstream, monkeypatch, declares=False) as client:
        asks = await client.call(f"{NAME}greet")
        [key] = asks["inputRequests"]
        answers = {key: {"action": "accept", "content": {"value": "Ada"}}}
        state = asks["requestState"]
        done = await client.ask(
            "tools/call", name=f"{NAME}greet", arguments={}, requestState=state, inputResponses=answers
        )
    assert text_of(done) == "Hello Ada"
    assert upstream.effects == ["Ada"]


async def _cancel_running(client: TaskClient, upstream: Upstream) -> None:
    task = await client.begin(f"{NAME}wait")
    await upstream.begun.wait()
    await client.cancel(task)
    assert (await client.until(task))["status"] == "cancelled"
    await upstream.stopped.wait()


async def _cancel_asking(client: TaskClient, upstream: Upstream) -> None:
    task = await client.begin(f"{NAME}greet")
    await client.until(task, "input_required")
    await client.cancel(task)
    assert (await client.get(task))["status"] == "cancelled"


@pytest.mark.parametrize("cancelled", [_cancel_running, _cancel_asking])
async def test_a_cancelled_task_is_cancelled_at_its_server(
    cancelled: Callable[[TaskClient, Upstream], Awaitable[None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream = Upstream()
    async with front(Place(folder=tmp_path), upstream, monkeypatch) as client:
        await cancelled(client, upstream)
        with contextlib.closing(sqlite3.connect(tmp_path / "upstream" / "state.db")) as stored:
            await until(lambda: stored.execute("SELECT status FROM tasks").fetchall() == [("cancelled",)])
    assert upstream.effects == []


async def test_a_task_that_fails_at_its_server_says_which_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with front(Place(folder=tmp_path), Upstream(), monkeypatch) as client:
        done = await client.until(await client.begin(f"{NAME}crash"))
    assert (done["status"], done["result"]["isError"]) == ("completed", True)
    assert done["result"]["_meta"]["trysquare/origin"]["server"] == "work"
