"""Sessions over HTTP: how long one lives is decided by its use, whoever answers its requests."""

from __future__ import annotations

import asyncio

import httpx2

from tests.server.clients import served_http
from tests.server.test_http_calls import Raw, in_session, raw
from trysquare import StaticToolset, tool
from trysquare.server import HttpOptions, StaticTokens

IDLE = 0.5


async def used_for(seconds: float, session: Raw) -> list[int]:
    """The statuses of calls, one after the other, for so long."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    statuses: list[int] = []
    while loop.time() < until:
        statuses.append((await session.call("add", {"a": 1, "b": 2})).status_code)
    return statuses


def toolset(release: asyncio.Event) -> StaticToolset:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    async def hold() -> str:
        """Wait for the test."""
        await release.wait()
        return "released"

    return StaticToolset([tool(add), tool(hold)])


async def test_a_session_lives_as_long_as_it_is_used_and_an_idle_one_ends() -> None:
    release = asyncio.Event()
    async with (
        served_http(toolset(release), None, HttpOptions(session_idle=IDLE)) as base,
        httpx2.AsyncClient(timeout=20) as client,
    ):
        used, holding, idle = [await in_session(client, f"{base}/mcp") for _ in range(3)]
        held = asyncio.create_task(holding.call("hold", {}))
        assert set(await used_for(4 * IDLE, used)) == {200}
        assert (await idle.call("add", {"a": 1, "b": 2})).status_code == 404
        release.set()
        answered = await held
    assert answered.status_code == 200
    assert "released" in answered.text


async def test_an_open_stream_keeps_its_session() -> None:
    async with (
        served_http(toolset(asyncio.Event()), None, HttpOptions(session_idle=IDLE)) as base,
        httpx2.AsyncClient(timeout=20) as client,
    ):
        listening, other = [await in_session(client, f"{base}/mcp") for _ in range(2)]
        async with listening.listening() as response:
            assert response.status_code == 200
            await used_for(3 * IDLE, other)
        assert (await listening.call("add", {"a": 1, "b": 2})).status_code == 200


async def test_an_idle_session_of_a_token_ends_too() -> None:
    http = HttpOptions(session_idle=IDLE, verifier=StaticTokens(["t"]))
    async with (
        served_http(toolset(asyncio.Event()), None, http) as base,
        httpx2.AsyncClient(timeout=20, headers={"Authorization": "Bearer t"}) as client,
    ):
        used, idle = [await in_session(client, f"{base}/mcp") for _ in range(2)]
        assert set(await used_for(3 * IDLE, used)) == {200}
        assert (await idle.call("add", {"a": 1, "b": 2})).status_code == 404


async def test_a_session_that_its_client_ended_is_gone_at_once() -> None:
    async with raw(era="2025-11-25", http=HttpOptions(session_idle=IDLE)) as session:
        await session.end()
        assert (await session.call("add", {"a": 1, "b": 2})).status_code == 404
