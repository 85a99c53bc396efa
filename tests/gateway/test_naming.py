from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from trysquare.gateway.models import space_of, upstream_name


def test_a_tool_of_a_server_carries_the_servers_name_before_its_own() -> None:
    assert upstream_name(space_of("mcp_api_ai_mcp"), "search") == "api_ai_mcp__search"


@given(st.text(max_size=200))
def test_every_name_becomes_one_that_clients_take(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", upstream_name("files", name))


def test_long_names_that_begin_alike_stay_two() -> None:
    first, second = upstream_name("files", "a" * 100), upstream_name("files", "a" * 101)
    assert first != second
