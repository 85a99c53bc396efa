"""Pages of servers: what is passed on of them, and what hostile ones cannot do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from tests.e2e.servers import served_over_http
from tests.gateway.opened import Place
from tests.server.clients import client_of
from trysquare import AppPage, ToolError, Tools
from trysquare.app import open_app
from trysquare.core.apps import MAX_PAGE
from trysquare.core.json import JsonObject
from trysquare.gateway import ServerConfig
from trysquare.gateway.apps import page_address, page_of_server, read_link, served_page
from trysquare.gateway.models import ConfigLocation, ToolDefinition
from trysquare.settings import Settings

MIME = "text/html;profile=mcp-app"
SERVER = ServerConfig(name="sh op/1", tool_name="mcp_shop", transport="stdio", location=ConfigLocation(file="mcp.json"))
PAGE: JsonObject = {"uri": "ui://x/y", "mimeType": MIME, "text": "<p>"}


def served(**part: Any) -> Any:
    tools = [ToolDefinition(name="refresh"), ToolDefinition(name="a.b")]
    return served_page(SERVER, "ui://x/y", {**PAGE, **part}, tools, "trysquare://other/")


def test_an_address_of_a_page_names_its_server_whatever_the_server_says() -> None:
    address = page_address(SERVER.name, "UI://trysquare/approval")
    assert address == "ui://trysquare/servers/sh%20op%2F1/trysquare/approval"
    assert page_of_server(address) == (SERVER.name, "ui://trysquare/approval")
    assert page_of_server("ui://trysquare/approval") is None


@pytest.mark.parametrize(
    ("meta", "link"),
    [
        ({"ui": {"resourceUri": "ui://a"}}, {"resourceUri": "ui://a"}),
        ({"ui/resourceUri": "ui://a"}, {"resourceUri": "ui://a"}),
        ({"ui": {"resourceUri": "https://evil.example/"}}, {}),
        ({"ui": {"resourceUri": "javascript:alert(1)"}}, {}),
        ({"ui": {"resourceUri": "ui://" + "a" * 5_000}}, {}),
        ({"ui": {"resourceUri": ["ui://a"], "visibility": "app"}}, {}),
        ({"ui": {"visibility": ["app", "root"]}}, {"visibility": ["app"]}),
        ({"ui": {"visibility": ["app", "model"]}}, {}),
        ("text", {}),
        (None, {}),
    ],
)
def test_only_what_is_valid_of_a_link_is_taken(meta: Any, link: JsonObject) -> None:
    assert read_link(meta) == link


def test_a_page_may_reach_public_hosts_only_and_nothing_is_injected_into_its_policy() -> None:
    asked = [
        "https://cdn.example.com", "https://*.example.com:8443", "wss://live.example.com",
        "https://a.example; script-src *", "https://a.example 'unsafe-eval'", "https://a.example\nx", "*", "https:",
        "http://localhost:8080", "https://localhost", "https://127.0.0.1", "https://127.1", "https://[::1]",
        "https://10.0.0.8", "https://nas.local", "https://metadata.google.internal", "https://intranet", 7, None,
    ]  # fmt: skip
    csp = {"connectDomains": asked, "resourceDomains": "https://a.example", "frameDomains": {}, "baseUriDomains": asked}
    about = {"csp": csp, "permissions": {"camera": {}, "usb": {}, "microphone": True}, "domain": "bank.example"}
    meta = served(_meta={"ui": about}).meta["ui"]
    assert meta == {
        "csp": {"connectDomains": asked[:3], "baseUriDomains": asked[:3]},
        "permissions": {"camera": {}},
        "prefersBorder": True,
    }


def test_a_page_is_inside_ours_and_ends_no_script_of_it() -> None:
    hostile = "</script><script>parent.postMessage('x')</script><!-- \u2028 \ud800"
    found = served(text=hostile, title="<script>", name="</title><script>")
    assert found.text is not None
    assert found.text.count("<script>") == found.text.count("</script>") == 1
    assert 'sandbox="allow-scripts allow-forms"' in found.text
    settings = json.loads(found.text.split("const settings = ", 1)[1].split(";\n", 1)[0])
    assert settings["server"] == SERVER.name
    assert settings["tools"] == {"refresh": "shop__refresh", "a.b": "shop__a_b"}
    assert settings["html"].startswith("</script><script>")
    found.text.encode("utf-8")
    assert found.meta["trysquare/origin"] == {"server": SERVER.name}


@pytest.mark.parametrize(
    "part",
    [
        {"mimeType": "text/html"}, {"mimeType": "image/svg+xml"}, {"mimeType": None}, {"text": None, "blob": "PHA+"},
        {"text": "x" * (MAX_PAGE + 1)}, {"text": "\u20ac" * (MAX_PAGE // 2)},
    ],
)  # fmt: skip
def test_what_is_not_a_page_or_too_long_is_refused(part: JsonObject) -> None:
    with pytest.raises(ToolError) as caught:
        served(**part)
    assert caught.value.code == "UPSTREAM_MALFORMED"


async def test_a_model_does_not_see_what_only_pages_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shop = Tools("shop")

    @shop.app("<!doctype html><p>")
    def board() -> str:
        """The board."""
        return "board"

    @shop.app(AppPage.form(), audience=["app"])
    def refresh() -> str:
        """What only the page calls."""
        return "fresh"

    place = Place(folder=tmp_path)
    async with served_over_http(shop.toolset()) as url:
        place.write_config({"shop": {"url": url}})
        settings = Settings(gateway=(place.config,), project=tmp_path, profile=("full",))
        async with open_app(settings) as app, client_of(app.toolset, "2026-07-28", app.serve_options()) as client:
            listing = await client.call_tool("mcp_shop", {"action": "list"})
            names = str(listing.structured_content)
            called = await client.call_tool("mcp_shop", {"action": "execute", "tool_name": "refresh"})
            of_page = await client.call_tool("shop__refresh", {})
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            found = dict(tools["shop__board"].meta or {})["ui"]["resourceUri"]
            page = await client.read_resource(found)
            with pytest.raises(MCPError):
                await client.read_resource("ui://shop/board")
    assert "board" in names
    assert "refresh" not in names
    assert called.is_error
    assert not of_page.is_error
    assert dict(tools["shop__refresh"].meta or {})["ui"]["visibility"] == ["app"]
    assert found == "ui://trysquare/servers/shop/shop/board"
    assert page.contents[0].mime_type == MIME
