"""Prompts and resources of servers that lack a method: what they do have is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.dictating import answered, dictated, entry_of
from tests.gateway.opened import Place, opened
from tests.server.clients import client_of

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
