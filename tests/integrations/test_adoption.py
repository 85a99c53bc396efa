"""`trysquare adopt`: a FastMCP server becomes one of Trysquare, and what does not is listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from trysquare import Client
from trysquare.cli.main import main
from trysquare.integrations.adoption import adopt
from trysquare.sources import load_tools

SERVER = '''# Sells tea, since 1706.
from fastmcp import Context, FastMCP  # the framework
from fastmcp.exceptions import ToolError

mcp: FastMCP = FastMCP("té", instructions="Sells tea.", website_url="https://tea.example")


@mcp.tool(annotations={"readOnlyHint": True, "title": "Price"}, tags={"prices"})
def price(name: str, count: int = 1) -> dict[str, int]:
    """The price of an article."""  # stays
    if name != "tea":
        raise ToolError(f"no {name}")
    return {"price": 3 * count}


@mcp.tool()
async def slow(ctx: Context | None = None) -> str:
    assert ctx is not None
    await ctx.report_progress(progress=1, total=2)
    await ctx.info("half")
    return "done"


@mcp.resource("menu://{day}", mime_type="text/plain")
def menu(day: str) -> str:
    return f"tea on {day}"


@mcp.prompt
def recipe(name: str) -> str:
    return f"Make {name}"


def local() -> int:
    return 4


mcp.add_tool(local)

if __name__ == "__main__":
    mcp.run(transport="http", host="0.0.0.0", port=9000)
'''


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_an_adopted_server_does_what_it_did(tmp_path: Path, version: str) -> None:
    adopted = adopt(SERVER.replace("ctx: Context | None = None", "ctx: Context"))
    assert adopted is not None
    assert adopted.left == ()
    file = tmp_path / f"adopted_{version[:4]}.py"
    file.write_text(adopted.text, encoding="utf-8")
    async with Client(load_tools(str(file), project=tmp_path), protocol_version=version) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert {"price", "slow", "local"} <= set(tools)
        assert (await client.call_tool("price", {"name": "tea", "count": 2})).data == {"price": 6}
        assert (await client.call_tool("slow", {})).text == "done"
        assert "tea on monday" in str(await client.read_resource("menu://monday"))
        assert "Make tea" in str(await client.get_prompt("recipe", {"name": "tea"}))


def test_comments_and_everything_else_stay() -> None:
    adopted = adopt(SERVER)
    assert adopted is not None
    for kept in ("# Sells tea, since 1706.", "# the framework", "# stays", 'if __name__ == "__main__":'):
        assert kept in adopted.text
    assert 'mcp.run(http="0.0.0.0:9000")' in adopted.text
    assert "fastmcp" not in adopted.text


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("mcp.run()", "mcp.run()"),
        ('mcp.run("stdio")', "mcp.run()"),
        ('mcp.run(transport="streamable-http")', "mcp.run(http=True)"),
        ('mcp.run(transport="sse", port=1)', 'mcp.run(http="127.0.0.1:1")'),
        ("mcp.run(transport=chosen)", 'mcp.run(http=chosen != "stdio")'),
        ('mcp.run("http", port=port)', 'mcp.run(http="127.0.0.1:" + str(port))'),
        ("mcp.run(chosen, host=h, port=1)", 'mcp.run(http=h + ":1" if chosen != "stdio" else False)'),
    ],
)
def test_run_keeps_its_transport(line: str, result: str) -> None:
    adopted = adopt(f'from fastmcp import FastMCP\n\nmcp = FastMCP("x")\n{line}\n')
    assert adopted is not None
    assert adopted.text.splitlines()[-1] == result


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("from fastmcp.server.auth import Anything\n\nAnything()", 1),
        ('from fastmcp import FastMCP\nmcp = FastMCP("x",\n    auth=None,  # none\n)', 3),
        ('from fastmcp import FastMCP\nmcp = FastMCP("x")\n\n\nmcp.no_such_method()', 5),
        ("from fastmcp import Context\n\ndef f(ctx: Context):\n    return ctx.elicit('?', str)", 4),
        ("import fastmcp\n\nfastmcp.anything()", 1),
        ('from fastmcp import FastMCP\nmcp = FastMCP("x")\n@mcp.tool(exclude_args=[])\ndef f(): ...', 3),
        ('from fastmcp import FastMCP\nmcp = FastMCP("x")\n@mcp.tool(annotations={"icon": "i"})\ndef f(): ...', 3),
        ('from fastmcp import FastMCP\nmcp = FastMCP("x", middleware=[])', 2),
        ('from fastmcp import FastMCP\nproxy = FastMCP.as_proxy("x")', 2),
        ('from mcp.server.fastmcp import FastMCP\nmcp = FastMCP("x")\nmcp.settings.port = 1', 3),
    ],
)
def test_what_cannot_be_rewritten_is_listed_with_its_line(code: str, line: int) -> None:
    adopted = adopt(code)
    assert adopted is not None
    assert [each.line for each in adopted.left] == [line]
    compile(adopted.text, "adopted.py", "exec")


SDK = """
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.prompts import base
from mcp.server.session import ServerSession
from mcp.types import TextContent, ToolAnnotations

mcp = FastMCP(
    "sdk",
    host="0.0.0.0",  # any
    port=9000,
    stateless_http=True,
    json_response=True,
)


@mcp.tool(title="T", annotations=ToolAnnotations(title="Other", readOnlyHint=True), structured_output=False)
def say(text: str, ctx: Context[ServerSession, None]) -> list[TextContent]:
    return [TextContent(type="text", text=text)]


@mcp.prompt("talk")
def talk(topic: str) -> list[base.Message]:
    return [base.UserMessage(topic), base.AssistantMessage("Yes.")]


if __name__ == "__main__":
    mcp.run(transport="streamable-http")
"""


async def test_a_server_of_the_sdk_is_adopted_with_its_messages_and_its_address(tmp_path: Path) -> None:
    adopted = adopt(SDK)
    assert adopted is not None
    assert [each.line for each in adopted.left] == [11, 12]
    assert 'mcp.run(http="0.0.0.0:9000")' in adopted.text
    assert "from mcp.server.session" in adopted.text
    assert "ToolAnnotations" not in adopted.text
    file = tmp_path / "adopted_sdk.py"
    file.write_text(adopted.text, encoding="utf-8")
    async with Client(load_tools(str(file), project=tmp_path)) as client:
        tool = next(each for each in await client.list_tools() if each.name == "say")
        assert (tool.title, tool.annotations["readOnlyHint"]) == ("T", True)
        assert (await client.call_tool("say", {"text": "hello"})).text == "hello"
        assert "assistant" in str(await client.get_prompt("talk", {"topic": "tea"}))


FILES = {
    "shop/__init__.py": "",
    "shop/app.py": 'import fastmcp\n\nmcp = fastmcp.FastMCP("shop")\ninner = fastmcp.FastMCP("inner")\n'
    'mcp.mount(inner, namespace="in")\n',
    "shop/tools.py": """
from .app import inner, mcp


@mcp.tool(annotations={"readOnlyHint": True})
def price(name: str) -> int:
    return 3


@inner.tool
def count() -> int:
    return 4


def register(server):
    @server.tool(annotations={"destructiveHint": False}, output_schema=None)
    def late(name: "str") -> int:
        return 5
""",
    "shop/server.py": "from . import app, tools\n\ntools.register(app.mcp)\nmcp = app.mcp\n",
    "shop/other.py": "import mcp.types as types\n\n\ndef server(server):\n    return server.anything()\n",
    "broken.py": "def (",
}


async def test_a_server_of_several_files_is_adopted_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert main(["adopt", str(tmp_path), "--write"]) == 0
    assert "broken.py: left alone" in capsys.readouterr().err
    assert (tmp_path / "shop/other.py").read_text(encoding="utf-8") == FILES["shop/other.py"]
    monkeypatch.syspath_prepend(str(tmp_path))
    async with Client(load_tools("shop.server", project=tmp_path)) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert {"price", "in_count", "late"} <= set(tools)
        assert tools["price"].annotations["readOnlyHint"] is True
        assert (await client.call_tool("late", {"name": "x"})).data == 5
        assert (await client.call_tool("in_count", {})).data == 4


def test_a_file_without_fastmcp_is_left_alone() -> None:
    assert adopt("class FastMCP: ...\n\nmcp = FastMCP()\nmcp.run()\n") is None


def test_the_command_prints_and_writes_only_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "src" / "server.py"
    file.parent.mkdir()
    file.write_text(SERVER, encoding="utf-8", newline="\n")
    assert main(["adopt", str(tmp_path)]) == 0
    assert "+from trysquare import" in capsys.readouterr().out
    assert file.read_text(encoding="utf-8") == SERVER
    assert main(["adopt", str(tmp_path), "--write"]) == 0
    assert "from trysquare import" in file.read_text(encoding="utf-8")
    capsys.readouterr()
    assert main(["adopt", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "Nothing of FastMCP was found.\n"


def test_a_file_that_is_no_python_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.py").write_text("from fastmcp import (\n", encoding="utf-8")
    assert main(["adopt", str(tmp_path / "broken.py")]) == 2
    assert "broken.py" in capsys.readouterr().err
