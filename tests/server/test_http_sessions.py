"""Sessions over HTTP: how long one lives is decided by its use, whoever answers its requests."""

from __future__ import annotations

import asyncio

import httpx2

from tests.server.clients import served_http
from tests.server.test_http_calls import ACCEPT, HELLO, Raw, in_session, raw
from trysquare import CallContext, StaticToolset, tool
from trysquare.server import HttpOptions, StaticTokens
from trysquare.server.http.sessions import HttpSession, SessionRegistry

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


async def test_a_call_whose_client_has_gone_for_good_does_not_keep_its_session() -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def ask(context: CallContext) -> str:
        """Ask somebody who never answers."""
        started.set()
        try:
            await context.ask("Well?", {"type": "object", "properties": {}})
        finally:
            stopped.set()
        return "answered"

    toolset = StaticToolset([tool(ask)])
    async with (
        served_http(toolset, None, HttpOptions(session_idle=IDLE)) as base,
        httpx2.AsyncClient(timeout=20) as client,
    ):
        session = await in_session(client, f"{base}/mcp")
        asking = asyncio.create_task(session.call("ask", {}))
        async with asyncio.timeout(20):
            await started.wait()
            asking.cancel()
            await stopped.wait()
        assert (await session.call("ask", {})).status_code == 404


async def test_too_many_sessions_end_the_one_that_was_idle_longest() -> None:
    ended: list[HttpSession] = []
    sessions = SessionRegistry(60, ended.append, limit=3)
    opened = [sessions.open(None) for _ in range(3)]
    first, second, third = [one for one in opened if one is not None]
    assert sessions.find(first.id, None) is first
    use = second.begin_use()
    fourth = sessions.open(None)
    assert fourth is not None
    assert ended == [third], "the first was used since, the second is in use"
    held = [use, first.begin_use(), fourth.begin_use()]
    assert sessions.open(None) is None
    held[1].end()
    assert sessions.open(None) is not None
    assert ended == [third, first]
    sessions.close()


async def test_many_idle_sessions_end_while_another_is_used() -> None:
    async with (
        served_http(toolset(asyncio.Event()), None, HttpOptions(session_idle=3 * IDLE)) as base,
        httpx2.AsyncClient(timeout=20) as client,
    ):
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
        opened = [await client.post(f"{base}/mcp", json=hello, headers={"Accept": ACCEPT}) for _ in range(300)]
        idle = [Raw(client, f"{base}/mcp", answer.headers["mcp-session-id"]) for answer in opened]
        used = await in_session(client, f"{base}/mcp")
        assert set(await used_for(6 * IDLE, used)) == {200}
        assert {(await each.call("add", {"a": 1, "b": 2})).status_code for each in idle} == {404}
