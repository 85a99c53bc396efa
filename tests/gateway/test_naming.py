from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from trysquare.gateway import ServerConfig
from trysquare.gateway.models import ConfigLocation, upstream_name


def server(tool_name: str = "mcp_files") -> ServerConfig:
    place = ConfigLocation(file="mcp.json")
    return ServerConfig(name="files", tool_name=tool_name, transport="stdio", location=place)


def test_a_tool_of_a_server_carries_the_servers_name_before_its_own() -> None:
    assert upstream_name(server("mcp_api_ai_mcp"), "search") == "api_ai_mcp__search"


@given(st.text(max_size=200))
def test_every_name_becomes_one_that_clients_take(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", upstream_name(server(), name))


def test_long_names_that_begin_alike_stay_two() -> None:
    first, second = upstream_name(server(), "a" * 100), upstream_name(server(), "a" * 101)
    assert first != second


def test_names_of_other_scripts_stay_two() -> None:
    assert upstream_name(server(), "поиск") != upstream_name(server(), "вывод")
