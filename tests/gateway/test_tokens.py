"""What ten servers with about a hundred tools cost a model, in every profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.opened import Place, opened
from tests.gateway.requests.reading import read_servers
from trysquare import Toolset
from trysquare.catalog import parse_profiles
from trysquare.catalog.descriptions import definition_tokens
from trysquare.catalog.toolset import listed
from trysquare.core.tokens import count_tokens

PURPOSE = "What this server is for, said in one line of about sixty letters"


def _cost(toolset: Toolset, profile: str) -> int:
    return sum(definition_tokens(tool) for tool in listed(toolset, parse_profiles([profile])))


@pytest.mark.parametrize("is_known", [True, False])
async def test_ten_servers_cost_little_in_the_usual_profile_and_less_behind_one_tool(
    tmp_path: Path, is_known: bool
) -> None:
    place, servers = Place(folder=tmp_path), read_servers()
    place.write_config({name: {**place.server(name), "description": PURPOSE} for name in servers})
    async with opened(place) as gateway:
        for name, definitions in servers.items():
            if is_known:
                gateway.toolset.servers.registry.take(name, definitions)
    async with opened(place) as gateway:
        assert len(listed(gateway.toolset, parse_profiles([]))) == 10
        assert _cost(gateway.toolset, "gateway=levels") <= 1_450
        assert _cost(gateway.toolset, "gateway=gateway") <= 270


async def test_the_list_of_a_server_costs_a_fraction_of_its_schemas(tmp_path: Path) -> None:
    place, servers = Place(folder=tmp_path), read_servers()
    place.write_config({name: place.server(name) for name in servers})
    async with opened(place) as gateway:
        brief = plain = whole = 0
        for name, definitions in servers.items():
            gateway.toolset.servers.registry.take(name, definitions)
            server = gateway.toolset.servers.server(name)
            brief += count_tokens((await gateway.call(server.tool_name, detail="signatures")).to_text())
            plain += count_tokens((await gateway.call(server.tool_name)).to_text())
            whole += count_tokens((await gateway.call(server.tool_name, detail="schemas")).to_text())
        assert brief <= 0.5 * whole
        assert plain <= 0.9 * whole
