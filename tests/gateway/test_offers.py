"""Prompts and resources of servers that lack a method: what they do have is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.dictating import answered, dictated, entry_of
from tests.gateway.opened import Place, opened
from tests.server.clients import client_of
from trysquare.catalog import ProfileChoice
from trysquare.core.json import JsonObject
from trysquare.server import ServeOptions

MISSING = b'{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"Method not found"}}'
FAILING = b'{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"Internal error"}}'
PROMPTS = answered('{"prompts":[{"name":"review","description":"Review."}]}')
RESOURCES = answered('{"resources":[{"uri":"memo://insights","name":"insights"}]}')
TEMPLATES = answered('{"resourceTemplates":[{"uriTemplate":"memo://{name}","name":"memo"}]}')


@pytest.mark.parametrize("refusal", [MISSING, FAILING], ids=["missing", "failing"])
@pytest.mark.parametrize("lacking", ["tools/list", "prompts/list", "resources/list", "resources/templates/list"])
async def test_one_list_that_a_server_lacks_hides_no_other(tmp_path: Path, lacking: str, refusal: bytes) -> None:
    answers = {"prompts/list": PROMPTS, "resources/list": RESOURCES, "resources/templates/list": TEMPLATES}
    async with dictated(tmp_path, {**answers, lacking: refusal}, discover=True) as gateway:
        await gateway.toolset.wait_ready()
        for mode in ("legacy", "2026-07-28"):
            async with client_of(gateway.toolset, mode) as client:
                prompts = [one.name for one in (await client.list_prompts()).prompts]
                resources = [str(one.uri) for one in (await client.list_resources()).resources]
                forms = [one.uri_template for one in (await client.list_resource_templates()).resource_templates]
            assert prompts == ([] if lacking == "prompts/list" else ["odd__review"])
            assert resources == ([] if lacking == "resources/list" else ["memo://insights"])
            assert ("memo://{name}" in forms) is (lacking != "resources/templates/list")


async def test_a_later_change_is_shown_although_a_method_is_missing(tmp_path: Path) -> None:
    place = Place(folder=tmp_path)
    async with entry_of(tmp_path, "odd", {"resources/templates/list": MISSING}) as before:
        place.write_config({"odd": before})
        async with opened(place, discover=True) as gateway:
            await gateway.toolset.wait_ready()
            assert not gateway.toolset.prompts()
    answers = {"resources/templates/list": MISSING, "prompts/list": PROMPTS}
    async with entry_of(tmp_path, "odd", answers), opened(place) as gateway:
        with gateway.changes() as told:
            await gateway.call("mcp_odd")
            while not gateway.toolset.prompts():
                await told.get()


PIXEL = "data:image/png;base64,iVBORw0KGgo="
ICON = {"src": "https://icons.example.com/a.png", "mimeType": "image/png", "sizes": ["48x48", "any"]}
REFUSED: list[Any] = [
    {"src": "http://icons.example.com/a.png"},
    {"src": "javascript:alert(1)"},
    {"src": "file:///etc/passwd"},
    {"src": "https://127.0.0.1/a.png"},
    {"src": "https://localhost/a.png"},
    {"src": "https://user:secret@icons.example.com/a.png"},
    {"src": "https://icons.example.com/" + "a" * 3_000},
    {"src": "data:text/html;base64,PGI+"},
    {"src": "data:image/svg+xml;base64,PHN2Zz4="},
    {"src": "data:image/png;base64," + "A" * 9_000},
    {"src": 1},
    "https://icons.example.com/a.png",
]


def shown_offers(icons: list[Any]) -> dict[str, bytes]:
    """Lists with one entry each, which has a title and icons."""

    def answer(key: str, entry: JsonObject) -> bytes:
        return answered(json.dumps({key: [{**entry, "title": "The  title", "icons": icons}]}))

    return {
        "tools/list": answer("tools", {"name": "look", "inputSchema": {"type": "object"}}),
        "prompts/list": answer("prompts", {"name": "review"}),
        "resources/list": answer("resources", {"uri": "memo://insights", "name": "insights"}),
        "resources/templates/list": answer("resourceTemplates", {"uriTemplate": "memo://{name}", "name": "memo"}),
    }


async def listed_icons(place: Place, mode: str) -> list[tuple[str | None, list[JsonObject]]]:
    """Title and icons of everything that the server offers, as a client reads them."""
    options = ServeOptions(profiles=ProfileChoice(default="full"))
    async with opened(place) as gateway:
        await gateway.call("mcp_odd")
        await gateway.toolset.wait_ready()
        async with client_of(gateway.toolset, mode, options) as client:
            tools, prompts = (await client.list_tools()).tools, (await client.list_prompts()).prompts
            resources = (await client.list_resources()).resources
            templates = (await client.list_resource_templates()).resource_templates
    found: list[Any] = [
        *(one for one in tools if one.name == "odd__look"), *prompts, *resources,
        *(one for one in templates if one.name == "memo"),
    ]  # fmt: skip
    return [
        (one.title, [icon.model_dump(by_alias=True, exclude_none=True) for icon in one.icons or ()]) for one in found
    ]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_titles_and_icons_are_relayed_as_far_as_they_are_safe(tmp_path: Path, mode: str) -> None:
    place = Place(folder=tmp_path)
    odd = {"src": PIXEL, "mimeType": "text/html", "sizes": ["huge", 3]}
    async with entry_of(tmp_path, "odd", shown_offers([*REFUSED, ICON, odd])) as entry:
        place.write_config({"odd": entry})
        assert await listed_icons(place, mode) == [("The title", [ICON, {"src": PIXEL}])] * 4
    # Others need no approval, and no more than four are listed.
    later = {"src": "https://icons.example.com/later.png"}
    async with entry_of(tmp_path, "odd", shown_offers([later] * 6)) as entry:
        place.write_config({"odd": entry})
        assert await listed_icons(place, mode) == [("The title", [later] * 4)] * 4
