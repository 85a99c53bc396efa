"""Lists are made once, and anew after a change."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from mcp.shared.exceptions import MCPError

from tests.server.clients import MODES, client_of
from tests.server.sample import EXTRA, declared
from trysquare import DynamicToolset, Tool
from trysquare.server import ServeOptions

eras = pytest.mark.parametrize("mode", MODES)
NOT_KEPT_BY_THE_CLIENT = ServeOptions(list_ttl_ms=0)


class Counted(DynamicToolset):
    """A toolset that counts how often all of it is asked for."""

    def __init__(self) -> None:
        super().__init__(declared.toolset().tools())
        self.asked = 0

    def tools(self) -> Sequence[Tool]:
        self.asked += 1
        return super().tools()


@eras
async def test_a_list_is_made_once_for_many_requests(mode: str) -> None:
    toolset = Counted()
    async with client_of(toolset, mode, NOT_KEPT_BY_THE_CLIENT) as client:
        first = await client.list_tools()
        asked = toolset.asked
        for _ in range(5):
            assert await client.list_tools() == first
    assert toolset.asked == asked


@eras
async def test_a_call_lists_nothing(mode: str) -> None:
    toolset = Counted()
    async with client_of(toolset, mode, NOT_KEPT_BY_THE_CLIENT) as client:
        await client.list_tools()
        asked = toolset.asked
        for number in range(5):
            await client.call_tool("add", {"a": number, "b": 1})
    assert toolset.asked == asked


@eras
async def test_a_change_makes_the_list_anew(mode: str) -> None:
    toolset = Counted()
    async with client_of(toolset, mode, NOT_KEPT_BY_THE_CLIENT) as client:
        before = await client.list_tools()
        toolset.replace(tools=[*toolset.tools(), EXTRA])
        after = await client.list_tools()
    assert [entry.name for entry in after.tools] == [*(entry.name for entry in before.tools), "extra"]


@eras
async def test_a_wrong_cursor_is_refused_also_when_the_list_is_kept(mode: str) -> None:
    async with client_of(Counted(), mode, NOT_KEPT_BY_THE_CLIENT) as client:
        await client.list_tools()
        with pytest.raises(MCPError, match="cursor"):
            await client.list_tools(cursor="nowhere")
