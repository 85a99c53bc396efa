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
    ],
)
def test_run_keeps_its_transport(line: str, result: str) -> None:
    adopted = adopt(f'from fastmcp import FastMCP\n\nmcp = FastMCP("x")\n{line}\n')
    assert adopted is not None
    assert adopted.text.splitlines()[-1] == result


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("from fastmcp.server.auth import Anything", 1),
        ('from fastmcp import FastMCP\nmcp = FastMCP("x",\n    auth=None,  # none\n)', 3),
        ('from fastmcp import FastMCP\nmcp = FastMCP("x")\n\n\nmcp.no_such_method()', 5),
        ("from fastmcp import Context\n\ndef f(ctx: Context):\n    return ctx.elicit('?', str)", 4),
        ("import fastmcp", 1),
        ('from fastmcp import FastMCP\nmcp = FastMCP("x")\nmcp.run(transport=chosen)', 3),
        ('from fastmcp import FastMCP\nmcp = FastMCP("x")\n@mcp.tool(auth=guard)\ndef f(): ...', 3),
    ],
)
def test_what_cannot_be_rewritten_is_listed_with_its_line(code: str, line: int) -> None:
    adopted = adopt(code)
    assert adopted is not None
    assert [each.line for each in adopted.left] == [line]
    compile(adopted.text, "adopted.py", "exec")


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
