"""Checks of the rows about serving, calling and testing tools."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import fastmcp
import httpx2 as httpx
import pytest
from fastapi import FastAPI
from fastmcp.server.middleware import Middleware as TheirMiddleware
from fastmcp.server.middleware.rate_limiting import RateLimitingMiddleware
from fastmcp.tools import Tool as TheirTool
from fastmcp.tools.tool_transform import ArgTransform

from tests.comparison.rows import ours, theirs
from trysquare import (
    Argument,
    CallContext,
    Client,
    CombinedToolset,
    Depends,
    McpRequest,
    Proceed,
    Result,
    Tool,
    Tools,
    from_fastapi,
    transform_tool,
)
from trysquare.catalog.lint.engine import lint
from trysquare.middleware import cache_results, rate_limit
from trysquare.reload import open_reloading
from trysquare.testing import call, override

COMMAND = str(Path(sys.executable).with_name("trysquare"))
SERVER = '''
from trysquare import Tools

tools = Tools("greeter")


@tools.tool
def greet(name: str) -> str:
    """Greet a person by name."""
    return f"Hello, {name}"


@tools.resource("note://{title}")
def note(title: str) -> str:
    """A note."""
    return f"The note {title}"


@tools.prompt
def letter(to: str) -> str:
    """Write a letter."""
    return f"Write to {to}."


if __name__ == "__main__":
    tools.run()
'''


def greeter() -> Tools:
    """The tools that most checks serve."""
    tools = Tools("greeter")

    @tools.tool
    def greet(name: str) -> str:
        """Greet a person by name."""
        return f"Hello, {name}"

    return tools


def written(folder: Path, text: str = SERVER) -> Path:
    (folder / "server.py").write_text(text, encoding="utf-8")
    return folder / "server.py"


async def output(*command: str, cwd: Path) -> str:
    """What a command prints; it must succeed."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    told, _ = await process.communicate()
    assert process.returncode == 0, told.decode()
    return told.decode()


@ours("run a file")
async def run_a_file(folder: Path) -> None:
    source = written(folder)
    async with Client(str(source)) as client:
        assert (await client.call_tool("greet", {"name": "Ada"})).text == "Hello, Ada"
    async with Client.stdio([sys.executable, str(source)]) as client:
        assert (await client.call_tool("greet", {"name": "Bob"})).text == "Hello, Bob"


@ours("reload")
async def reload(folder: Path) -> None:
    source = written(folder)
    async with open_reloading([str(source)], project=folder) as toolset:
        changes: asyncio.Queue[str] = asyncio.Queue()
        toolset.subscribe(changes.put_nowait)
        written(folder, SERVER.replace("def greet(", "def salute("))
        while await changes.get() != "tools":
            pass
        assert [tool.name for tool in toolset.tools()] == ["salute"]


@ours("both protocol versions")
async def both_versions(folder: Path) -> None:
    for version in ("2025-11-25", "2026-07-28"):
        async with Client(greeter(), protocol_version=version) as client:
            assert (await client.call_tool("greet", {"name": "Ada"})).text == "Hello, Ada"


@ours("in FastAPI or Starlette, with pages beside it")
async def mounted(folder: Path) -> None:
    tools = greeter()

    @tools.custom_route("/hello")
    def hello() -> str:
        return "hello"

    async with _requests(tools.http_app()) as requests:
        assert (await requests.get("/hello")).text == "hello"


@theirs("in FastAPI or Starlette, with pages beside it")
async def their_mounted(folder: Path) -> None:
    from starlette.responses import PlainTextResponse

    mcp = fastmcp.FastMCP("x")

    @mcp.custom_route("/hello", methods=["GET"])
    async def hello(request: Any) -> PlainTextResponse:
        return PlainTextResponse("hello")

    async with _requests(mcp.http_app()) as requests:
        assert (await requests.get("/hello")).text == "hello"


@asynccontextmanager
async def _requests(app: Any) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of an ASGI application in this process."""
    transport = httpx.ASGITransport(app)
    async with app.lifespan(app), httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as requests:
        yield requests


@ours("authentication")
async def authentication(folder: Path) -> None:
    (folder / "trysquare.toml").write_text('[http]\ntokens = ["a-token-of-32-characters-or-more"]\n', encoding="utf-8")
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"accept": "application/json, text/event-stream"}
    async with _requests(greeter().http_app()) as requests:
        refused = await requests.post("/mcp", json=body, headers=headers)
        given = {**headers, "authorization": "Bearer a-token-of-32-characters-or-more"}
        admitted = await requests.post("/mcp", json=body, headers=given)
    assert (refused.status_code, refused.headers["www-authenticate"][:6]) == (401, "Bearer")
    assert admitted.status_code != 401


@ours("a long result")
async def long_result(folder: Path) -> None:
    tools = Tools()

    @tools.tool(result_limit=300)
    def squares(count: int) -> list[str]:
        """List squares."""
        return [f"{number} squared is {number * number}" for number in range(count)]

    read: list[str] = []
    async with Client(tools) as client:
        page = await client.call_tool("squares", {"count": 50})
        while page.next is not None:
            read.append(page.text)
            page = await client.call_tool(page.next["tool"], page.next["arguments"])
    whole = "".join((*read, page.text))
    assert all(f"{number} squared is {number * number}" in whole for number in range(50))


@ours("middleware of your own")
async def middleware(folder: Path) -> None:
    tools = greeter()
    seen: list[str] = []

    @tools.middleware
    def noted(inner: Tool) -> Tool:
        async def call(arguments: dict[str, Any], context: CallContext) -> Result[Any]:
            seen.append(inner.name)
            return await inner.call(arguments, context)

        return inner.wrapped(call)

    async with Client(tools) as client:
        assert (await client.call_tool("greet", {"name": "Ada"})).text == "Hello, Ada"
    assert seen == ["greet"]

    @tools.on_request("tools/list")
    async def listed(request: McpRequest, proceed: Proceed) -> dict[str, Any]:
        seen.append(request.method)
        return await proceed()

    async with Client(tools) as client:
        await client.list_tools()
    assert seen == ["greet", "tools/list"]


@theirs("middleware of your own")
async def their_middleware(folder: Path) -> None:
    seen: list[str] = []

    class Noted(TheirMiddleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            seen.append(context.message.name)
            return await call_next(context)

    mcp = fastmcp.FastMCP("x", middleware=[Noted()])

    @mcp.tool
    def greet(name: str) -> str:
        """Greet."""
        return name

    async with fastmcp.Client(mcp) as client:
        await client.call_tool("greet", {"name": "Ada"})
    assert seen == ["greet"]


@ours("rate limits, cached results")
async def limits(folder: Path) -> None:
    tools = Tools(middleware=[cache_results(3600), rate_limit(2, 3600)])
    runs: list[int] = []

    @tools.tool(read_only=True)
    def look(number: int) -> int:
        """Look."""
        runs.append(number)
        return number

    async with Client(tools) as client:
        for number in (1, 1, 2):
            assert (await client.call_tool("look", {"number": number})).data == number
        refused = await client.call_tool("look", {"number": 3}, raise_on_error=False)
        assert (await client.call_tool("look", {"number": 1})).data == 1
    assert (runs, refused.code) == ([1, 2], "BUDGET_EXHAUSTED")


@theirs("rate limits, cached results")
async def their_limits(folder: Path) -> None:
    mcp = fastmcp.FastMCP("x", middleware=[RateLimitingMiddleware(max_requests_per_second=0.001, burst_capacity=1)])

    @mcp.tool
    def look() -> int:
        """Look."""
        return 1

    async def too_many() -> None:
        async with fastmcp.Client(mcp) as client:
            await client.call_tool("look")
            await client.call_tool("look")

    with pytest.raises(Exception, match="ate limit"):
        await too_many()


@ours("parts switched off")
async def switched_off(folder: Path) -> None:
    tools = greeter()
    tools.tool(lambda: "x", name="other", tags=frozenset({"internal"}))
    tools.disable(tags={"internal"})
    assert [tool.name for tool in tools.toolset().tools()] == ["greet"]
    tools.enable("other", only=True)
    assert [tool.name for tool in tools.toolset().tools()] == ["other"]


@theirs("parts switched off")
async def their_parts_switched_off(folder: Path) -> None:
    mcp = fastmcp.FastMCP("x")
    mcp.tool(lambda: "x", name="one", tags={"internal"})
    mcp.tool(lambda: "x", name="two")
    mcp.disable(tags={"internal"})
    async with fastmcp.Client(mcp) as client:
        assert [tool.name for tool in await client.list_tools()] == ["two"]


@ours("a tool made of another one")
async def transformed(folder: Path) -> None:
    [greet] = greeter().toolset().tools()
    tools = Tools()
    tools.add(transform_tool(greet, name="welcome", arguments={"name": Argument(name="guest")}))
    async with Client(tools) as client:
        assert (await client.call_tool("welcome", {"guest": "Ada"})).text == "Hello, Ada"


@theirs("a tool made of another one")
async def their_transformed(folder: Path) -> None:
    mcp = fastmcp.FastMCP("x")

    def greet(name: str) -> str:
        """Greet."""
        return f"Hello, {name}"

    made = TheirTool.from_tool(greet, name="welcome", transform_args={"name": ArgTransform(name="guest")})
    mcp.add_tool(made)
    async with fastmcp.Client(mcp) as client:
        assert (await client.call_tool("welcome", {"guest": "Ada"})).data == "Hello, Ada"


@ours("several sets of tools as one")
async def combined(folder: Path) -> None:
    other = Tools()

    @other.tool(prefix="shop")
    def buy(item: str) -> str:
        """Buy."""
        return item

    async with Client(CombinedToolset([greeter().toolset(), other.toolset()])) as client:
        assert {"greet", "shop_buy"} <= {tool.name for tool in await client.list_tools()}
    whole = greeter()
    whole.mount(greeter(), "inner")
    async with Client(whole) as client:
        assert (await client.call_tool("inner_greet", {"name": "Ada"})).text == "Hello, Ada"


def _priced() -> FastAPI:
    app = FastAPI(title="Shop")

    @app.get("/prices/{name}")
    def read_price(name: str) -> dict[str, str]:
        return {"name": name}

    return app


@ours("APIs described by OpenAPI, FastAPI applications")
async def api(folder: Path) -> None:
    async with Client(from_fastapi(_priced())) as client:
        assert (await client.call_tool("read_price", {"name": "tea"})).data == {"name": "tea"}


@theirs("APIs described by OpenAPI, FastAPI applications")
async def their_api(folder: Path) -> None:
    mcp = fastmcp.FastMCP.from_fastapi(app=_priced())
    async with fastmcp.Client(mcp) as client:
        [tool] = await client.list_tools()
        assert (await client.call_tool(tool.name, {"name": "tea"})).structured_content == {"name": "tea"}


@theirs("several sets of tools as one")
async def their_combined(folder: Path) -> None:
    mcp, other = fastmcp.FastMCP("x"), fastmcp.FastMCP("y")

    @other.tool
    def buy(item: str) -> str:
        """Buy."""
        return item

    mcp.mount(other, namespace="shop")
    async with fastmcp.Client(mcp) as client:
        assert [tool.name for tool in await client.list_tools()] == ["shop_buy"]


@ours("other servers behind one")
async def gateway(folder: Path) -> None:
    entry = {"command": COMMAND, "args": ["serve", str(written(folder))]}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"greeter": entry}}), encoding="utf-8")
    command = [COMMAND, "serve", "--gateway", str(folder / "mcp.json")]
    async with Client.stdio(command, cwd=folder) as client:
        arguments = {"action": "execute", "tool_name": "greet", "tool_inputs": {"name": "Ada"}}
        assert "Hello, Ada" in (await client.call_tool("mcp_greeter", arguments)).text


@ours("finding tools among many")
async def finding(folder: Path) -> None:
    async with Client(greeter()) as client:
        found = await client.call_tool("find_tools", {"query": "say hello to a person"})
    assert "greet" in found.text


@ours("on the command line")
async def command_line(folder: Path) -> None:
    written(folder)
    ways = (
        (("list",), "greet"),
        (("call", "server.py", "greet", "name=Ada"), "Hello, Ada"),
        (("read", "server.py", "note://shopping"), "The note shopping"),
        (("prompt", "server.py", "letter", "to=Ada"), "Write to Ada."),
        (("list", "--", sys.executable, "server.py"), "greet"),
    )
    for words, expected in ways:
        command = (*words, "server.py") if words == ("list",) else words
        assert expected in await output(COMMAND, *command, cwd=folder)


@ours("installing into clients")
async def installing(folder: Path) -> None:
    written(folder)
    told = await output(COMMAND, "install", "cursor", "--tools", "server.py", "--print", cwd=folder)
    assert '"mcpServers"' in told


@ours("a client library")
async def client_library(folder: Path) -> None:
    async with Client(greeter()) as client:
        assert client.server_info.name == "greeter"
        assert (await client.call_tool("greet", {"name": "Ada"})).data == "Hello, Ada"


@ours("tests")
async def pytest_plugin(folder: Path) -> None:
    written(folder)
    (folder / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\ntrysquare_tools = "server.py"\n', encoding="utf-8"
    )
    (folder / "test_server.py").write_text(
        "async def test_a_greeting(client):\n"
        '    assert (await client.call_tool("greet", {"name": "Ada"})).text == "Hello, Ada"\n',
        encoding="utf-8",
    )
    assert "1 passed" in await output(sys.executable, "-m", "pytest", "-q", "test_server.py", cwd=folder)
    tools = Tools()

    def user() -> str:
        raise AssertionError("replaced")

    @tools.tool
    def whoami(user: Annotated[str, Depends(user)]) -> str:
        """Name the user."""
        return user

    with override(tools, {user: "Ada"}):
        assert (await call(tools, "whoami")).value == "Ada"


@ours("descriptions")
async def descriptions(folder: Path) -> None:
    tools = greeter()
    assert lint(tools.toolset()) == []

    @tools.tool
    def wave(times: int) -> str:
        """Wave."""
        return "~" * times

    rules = {(finding.rule, finding.field) for finding in lint(tools.toolset())}
    assert ("field-described", "times") in rules
