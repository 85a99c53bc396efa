"""`http_app`: the tools in FastAPI and Starlette, under any path, with their lifespan and routes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from tests.announcing_server import AnnouncingServer
from trysquare import Client, Consent, DeclarationError, Tools, http_app

VERSIONS = ("2025-11-25", "2026-07-28")


def make_tools() -> tuple[Tools, list[str]]:
    tools, events = Tools("mounted"), list[str]()

    @tools.lifespan
    async def opened() -> AsyncGenerator[list[str]]:
        events.append("open")
        yield events
        events.append("close")

    @tools.tool
    def add(a: int, b: int = 1) -> int:
        return a + b

    @tools.tool(consent=Consent(question="Wipe {what}?"))
    def wipe(what: str) -> str:
        return f"wiped {what}"

    @tools.custom_route("/shout", methods=["POST"])
    async def shout(request: Request) -> PlainTextResponse:
        return PlainTextResponse((await request.body()).decode().upper())

    @tools.custom_route("/hello")
    def hello() -> str:
        return "hello"

    return tools, events


def in_starlette(app: Any, *, lifespan: bool) -> Any:
    async def home(request: Request) -> PlainTextResponse:
        return PlainTextResponse("home")

    routes = [Route("/", home), Mount("/tools", app)]
    return Starlette(routes=routes, lifespan=app.lifespan if lifespan else None)


def in_fastapi(app: Any, *, lifespan: bool) -> Any:
    around = FastAPI(lifespan=app.lifespan if lifespan else None)
    around.get("/")(lambda: "home")
    around.mount("/tools", app)
    return around


@asynccontextmanager
async def serving(app: Any, host: str = "127.0.0.1") -> AsyncGenerator[str]:
    with socket.create_server((host, 0)) as listener:
        server = AnnouncingServer(uvicorn.Config(app, log_config=None, lifespan="on", ws="none"))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve([listener]))
            async with asyncio.timeout(30):
                await server.listening.wait()
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                server.should_exit = True


@pytest.fixture(autouse=True)
def own_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mount", [in_starlette, in_fastapi])
async def test_tools_are_mounted_with_consent_routes_and_the_lifespan_of_the_application(
    mount: Callable[..., Any], version: str
) -> None:
    tools, events = make_tools()
    async with serving(mount(tools.http_app(), lifespan=True)) as address:
        assert events == ["open"]
        url = f"{address}/tools/mcp"
        async with Client(url, protocol_version=version, elicitation_handler=lambda _: {"approve": True}) as client:
            assert (await client.call_tool("add", {"a": 1})).data == 2
            assert (await client.call_tool("wipe", {"what": "it"})).text == "wiped it"
        async with Client(url, protocol_version=version) as client:
            assert (await client.call_tool("wipe", {"what": "it"}, raise_on_error=False)).code == "CONSENT_REQUIRED"
        async with httpx.AsyncClient(base_url=address) as http:
            assert "home" in (await http.get("/")).text
            assert (await http.post("/tools/shout", content="hey")).text == "HEY"
            assert (await http.get("/tools/hello")).text == "hello"
            assert (await http.get("/tools/shout")).status_code == 405
    assert events == ["open", "close"]


async def test_without_the_lifespan_of_the_application_the_first_request_opens_the_tools() -> None:
    tools, events = make_tools()
    async with serving(in_starlette(tools.http_app(path="/"), lifespan=False)) as address:
        assert events == []
        async with Client(f"{address}/tools/") as client:
            assert (await client.call_tool("add", {"a": 1})).data == 2
        assert events == ["open"]


async def test_the_application_serves_by_itself_with_the_settings_of_its_project(tmp_path: Path) -> None:
    tools, events = make_tools()
    (tmp_path / "trysquare.toml").write_text('prefix = "my"\n[http]\ntokens = ["secret-of-it"]\n', encoding="utf-8")
    async with serving(http_app(tools.toolset(), project=tmp_path)) as address:
        async with Client(f"{address}/mcp", bearer="secret-of-it") as client:
            assert (await client.call_tool("my_add", {"a": 1})).data == 2
        async with httpx.AsyncClient() as http:
            assert (await http.post(f"{address}/mcp", json={})).status_code == 401
    assert events == ["open", "close"]


@pytest.mark.parametrize(
    ("options", "client", "host", "status"),
    [
        ({}, ("127.0.0.1", 1), "localhost", 200),
        ({}, ("10.0.0.7", 1), "localhost", 403),
        ({}, ("127.0.0.1", 1), "mcp.example.com", 421),
        ({"allowed_hosts": ["mcp.example.com"]}, ("127.0.0.1", 1), "mcp.example.com", 200),
        ({"public": True}, ("10.0.0.7", 1), "mcp.example.com", 200),
    ],
)
async def test_only_this_machine_may_call_without_a_token_unless_it_is_public(
    options: dict[str, Any], client: tuple[str, int], host: str, status: int
) -> None:
    app = make_tools()[0].http_app(**options)
    transport = httpx.ASGITransport(app=app, client=client)
    async with app.lifespan(), httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as http:
        assert (await http.get("/hello")).status_code == status


async def test_a_wrong_route_or_configuration_is_reported_when_the_application_starts(tmp_path: Path) -> None:
    tools = Tools()

    @tools.custom_route("/x")
    def takes_two(one: str, two: str) -> str:
        return one + two

    with pytest.raises(DeclarationError, match="one parameter"):
        async with tools.http_app().lifespan():
            pass
    with pytest.raises(DeclarationError, match="begins with"):
        tools.custom_route("x")
