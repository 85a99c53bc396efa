"""Servers over HTTP: both eras and the transport before them, through the pool as every call goes."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.types import ASGIApp

from tests.gateway.remote_servers import channels, listening, of_the_earlier_era, remote, sdk_server
from tests.gateway.toys import Person, called_by, hear_nothing, words
from trysquare.gateway.pool.pool import ServerPool, open_pool
from trysquare.store import Secrets

WAYS = ["modern", "legacy", "legacy json", "legacy without sessions", "sse", "sse of today", "sse found out"]


def app_of(way: str) -> tuple[ASGIApp, str, str]:
    server = sdk_server()
    match way:
        case "modern":
            return server.streamable_http_app(), "/mcp", "http"
        case "legacy":
            return of_the_earlier_era(server.streamable_http_app()), "/mcp", "http"
        case "legacy json":
            return of_the_earlier_era(server.streamable_http_app(json_response=True)), "/mcp", "http"
        case "legacy without sessions":
            return of_the_earlier_era(server.streamable_http_app(stateless_http=True)), "/mcp", "http"
        case "sse":
            return of_the_earlier_era(server.sse_app()), "/sse", "sse"
        case "sse of today":
            return server.sse_app(), "/sse", "sse"
        case _:
            return of_the_earlier_era(server.sse_app()), "/sse", "http"


@pytest.fixture
def secrets(tmp_path: Path) -> Secrets:
    return Secrets(tmp_path / "secrets.json")


@asynccontextmanager
async def reached(way: str, secrets: Secrets, on_change: Any = hear_nothing) -> AsyncGenerator[ServerPool]:
    """A pool with one remote server."""
    app, path, transport = app_of(way)
    async with listening(app) as place:
        config = remote(f"{place}{path}", transport)
        async with open_pool({"far": config}, on_change=on_change, transports=channels(secrets)) as pool:
            yield pool


@pytest.fixture(params=WAYS)
async def far(request: pytest.FixtureRequest, secrets: Secrets) -> AsyncGenerator[ServerPool]:
    async with reached(request.param, secrets) as pool:
        yield pool


async def test_tools_are_listed_and_called_over_every_transport(far: ServerPool) -> None:
    names = [definition.name for definition in await far.definitions("far")]
    assert names == ["echo", "steps", "greet", "grow"]
    assert await words(far, "echo", "Grüße\n", server="far") == "Grüße\n"


async def test_many_calls_at_once_each_get_their_own_answer(far: ServerPool) -> None:
    found = await asyncio.gather(*(words(far, "echo", number, server="far") for number in range(20)))
    assert found == [str(number) for number in range(20)]


@pytest.mark.parametrize("way", ["modern", "legacy", "sse"])
async def test_progress_reaches_the_caller(way: str, secrets: Secrets) -> None:
    person = Person()
    async with reached(way, secrets) as pool:
        assert (
            await words(pool, "steps", "x", server="far", context=called_by(person, meta={"progress_token": 7})) == "x"
        )
    assert {total for _, total in person.told} == {3.0}


@pytest.mark.parametrize("way", ["legacy", "sse"])
async def test_a_question_of_an_earlier_revision_reaches_the_user_in_the_call(way: str, secrets: Secrets) -> None:
    async with reached(way, secrets) as pool:
        found = await words(pool, "greet", "Who?", server="far", context=called_by(Person("Ada")))
    assert found == "hello Ada"


@pytest.mark.parametrize("way", ["legacy", "sse", "modern"])
async def test_a_changed_list_is_announced(way: str, secrets: Secrets) -> None:
    told = asyncio.Queue[tuple[str, str]]()
    async with reached(way, secrets, lambda server, kind: told.put_nowait((server, kind))) as pool:
        await pool.definitions("far")
        with anyio.fail_after(20):
            await words(pool, "grow", "fresh", server="far")
            while await told.get() != ("far", "tools"):
                pass


_WITHOUT_SDK = """
import asyncio, sys
sys.modules["mcp"] = sys.modules["mcp_types"] = None
from pathlib import Path
from trysquare.gateway.config.load import read_config
from trysquare.gateway.pool.pool import open_pool

async def main():
    async with open_pool(read_config(Path(sys.argv[1])).usable(), on_change=lambda server, kind: None) as pool:
        print([tool.name for tool in await pool.definitions("far")])

asyncio.run(main())
"""


@pytest.mark.parametrize("way", ["modern", "legacy", "sse"])
async def test_a_session_without_a_login_needs_no_sdk(way: str, tmp_path: Path) -> None:
    app, path, _ = app_of(way)
    async with listening(app) as place:
        file = tmp_path / "mcp.json"
        file.write_text(json.dumps({"mcpServers": {"far": {"url": f"{place}{path}"}}}), encoding="utf-8")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _WITHOUT_SDK, str(file), stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
    assert output.decode().strip() == "['echo', 'steps', 'greet', 'grow']"
