"""Failures that have no result to carry them are errors of the protocol, and tell nothing of the house."""

from __future__ import annotations

from collections.abc import Sequence

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.server.clients import MODES, client_of, text_of
from trysquare import CallContext, Prompt, Resource, Result, StaticToolset, Tool, tool
from trysquare.core.context import RootsRequest

eras = pytest.mark.parametrize("mode", MODES)


class Broken(StaticToolset):
    """A toolset whose source has gone."""

    def tools(self) -> Sequence[Tool]:
        raise RuntimeError("the secret of the house")

    def prompts(self) -> Sequence[Prompt]:
        raise RuntimeError("the secret of the house")

    def resources(self) -> Sequence[Resource]:
        raise RuntimeError("the secret of the house")


@eras
async def test_a_list_that_crashes_tells_an_incident_only(mode: str) -> None:
    async with client_of(Broken(), mode) as client:
        for ask in (client.list_tools, client.list_prompts, client.list_resources):
            with pytest.raises(MCPError) as caught:
                await ask()
            assert caught.value.code == types.INTERNAL_ERROR
            assert "incident" in caught.value.message
            assert "secret" not in str(caught.value.error)


async def _folders(context: CallContext) -> Result[str]:
    """Ask for the client's folders."""
    await context.request(RootsRequest())
    return Result.ok("asked")


FOLDERS = StaticToolset([tool(_folders, name="folders")])


async def test_a_missing_capability_is_named_by_the_error_of_the_new_era() -> None:
    async with client_of(FOLDERS, "2026-07-28") as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("folders", {})
    assert caught.value.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
    assert caught.value.data["requiredCapabilities"] == {"roots": {}}


async def test_a_missing_capability_is_a_failure_that_the_model_reads_in_the_handshake_era() -> None:
    async with client_of(FOLDERS, "legacy") as client:
        result = await client.call_tool("folders", {})
    assert result.is_error
    assert "`roots`" in text_of(result)
