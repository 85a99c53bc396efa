"""Tools with pages (MCP Apps): what clients are told, what they read, and what they may not be told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.server.clients import MODES, client_of
from trysquare import AppPage, CallContext, Consent, DeclarationError, Tools

KIND = "text/html;profile=mcp-app"
eras = pytest.mark.parametrize("mode", MODES)


def shop() -> Tools:
    tools = Tools("shop")

    @tools.app(
        AppPage("<!doctype html><p>board</p>", connect=["https://api.example.com"], permissions={"camera"}, border=True)
    )
    def board(day: str) -> str:
        """The board of a day."""
        return day

    @tools.app("<p>only called by the page", audience=["app"])
    def refresh() -> int:
        """Refresh the board."""
        return 1

    @tools.tool(consent=Consent(question="Delete {path}?"))
    def delete(path: str) -> str:
        """Delete a file."""
        return path

    @tools.tool
    def plain(context: CallContext) -> bool:
        """Nothing to show."""
        return context.shows_apps

    return tools


async def page(tools: Tools, uri: str, mode: str = "auto") -> Any:
    async with client_of(tools.toolset(), mode) as client:
        [contents] = (await client.read_resource(uri)).contents
    return contents


@eras
async def test_a_tool_names_its_page_and_who_may_call_it(mode: str) -> None:
    async with client_of(shop().toolset(), mode) as client:
        listed = {tool.name: (tool.meta or {}).get("ui") for tool in (await client.list_tools()).tools}
        answer = await client.call_tool("board", {"day": "Monday"})
    assert listed == {
        "board": {"resourceUri": "ui://shop/board"},
        "refresh": {"resourceUri": "ui://shop/refresh", "visibility": ["app"]},
        "delete": {"resourceUri": "ui://trysquare/approval"},
        "plain": None,
    }
    assert answer.structured_content == {"result": "Monday"}


@eras
async def test_a_page_is_read_with_what_it_may_reach(mode: str) -> None:
    contents = await page(shop(), "ui://shop/board", mode)
    assert (str(contents.uri), contents.mime_type) == ("ui://shop/board", KIND)
    assert contents.meta["ui"] == {
        "csp": {"connectDomains": ["https://api.example.com"]}, "permissions": {"camera": {}}, "prefersBorder": True
    }  # fmt: skip
    assert "<p>board</p>" in contents.text
    assert contents.text.startswith("<!doctype html><script>")


@eras
async def test_every_client_may_read_the_page_of_calls_that_need_consent(mode: str) -> None:
    contents = await page(shop(), "ui://trysquare/approval", mode)
    assert contents.mime_type == KIND


@pytest.mark.parametrize("uri", ["ui://trysquare/approval", "ui://shop/order", "ui://shop/sales"])
async def test_pages_of_ours_load_nothing_from_elsewhere(uri: str) -> None:
    tools = shop()

    @tools.app
    def order(article: str) -> str:
        """Order an article."""
        return article

    @tools.app(AppPage.chart("line", y="sold"))
    def sales() -> list[dict[str, int]]:
        """Sales by month."""
        return [{"sold": 3}]

    contents = await page(tools, uri)
    assert re.findall(r"\b(?:src|href)=|url\(|@import|import\(|innerHTML|\beval\(", contents.text) == []
    assert "csp" not in (contents.meta or {}).get("ui", {})


async def test_values_in_a_page_cannot_end_its_script() -> None:
    tools = Tools("shop")

    @tools.app(title="</script><script>alert(1)</script>")
    def order(article: str = "</script><img src=x onerror=alert(1)>") -> str:
        """Order an article."""
        return article

    contents = await page(tools, "ui://shop/order")
    settings = re.search(r"const settings = (.*);", contents.text)
    assert settings is not None
    assert "<" not in settings[1]
    assert json.loads(settings[1])["title"] == "</script><script>alert(1)</script>"


async def test_a_file_beside_the_module_is_read_each_time(tmp_path: Path) -> None:
    module = tmp_path / "pages_beside.py"
    module.write_text(
        "from trysquare import Tools\n\ntools = Tools('beside')\n\n\n@tools.app('board.html')\n"
        "def board() -> str:\n    'The board.'\n    return 'x'\n",
        encoding="utf-8",
    )
    (tmp_path / "board.html").write_text("<p>first</p>", encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "pages_beside"}
    exec(compile(module.read_text(encoding="utf-8"), str(module), "exec"), namespace)
    assert "<p>first</p>" in (await page(namespace["tools"], "ui://beside/board")).text
    (tmp_path / "board.html").write_text("<p>second</p>", encoding="utf-8")
    assert "<p>second</p>" in (await page(namespace["tools"], "ui://beside/board")).text


async def test_a_page_with_its_own_library_gets_no_script() -> None:
    tools = Tools("shop")

    @tools.app(AppPage("<!doctype html><p>mine</p>", script=False))
    def board() -> str:
        """The board."""
        return "x"

    assert (await page(tools, "ui://shop/board")).text == "<!doctype html><p>mine</p>"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda: AppPage("<p>", connect="https://a.example"), "https://a.example"),
        (lambda: AppPage("<p>", connect=["https://a.example; script-src *"]), "script-src"),
        (lambda: AppPage("<p>", load=["'unsafe-eval'"]), "unsafe-eval"),
        (lambda: AppPage("<p>", load=["http://a.example"]), "http://a.example"),
        (lambda: AppPage("<p>", permissions=["usb"]), "usb"),  # pyright: ignore[reportArgumentType]
        (lambda: AppPage.chart("bars"), "`bar`"),  # pyright: ignore[reportArgumentType]
        (lambda: Tools().app("missing.html")(shop), "missing.html"),
        (lambda: Tools().app(audience=["user"])(shop), "user"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_a_wrong_page_is_refused_when_it_is_declared(given: Any, said: str) -> None:
    with pytest.raises(DeclarationError, match=re.escape(said)):
        given()


@pytest.mark.parametrize(
    ("declared", "shows"),
    [
        ({"io.modelcontextprotocol/ui": {"mimeTypes": [KIND]}}, True),
        ({"io.modelcontextprotocol/ui": {}}, False),
        ({}, False),
    ],
)
def test_a_tool_knows_whether_its_page_is_shown(declared: dict[str, Any], shows: bool) -> None:
    host: Any = SimpleNamespace(client_capabilities={"extensions": declared})
    assert CallContext(caller=host).shows_apps is shows
