"""Log lines for the client: the level it set in the handshake era, the level of the request in the new one."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPDeprecationWarning

from tests.server.clients import client_of
from tests.server.sample import declared


class Lines:
    """The log lines that a client gets."""

    def __init__(self) -> None:
        self.texts: list[Any] = []

    async def __call__(self, params: types.LoggingMessageNotificationParams) -> None:
        self.texts.append(params.data)


async def test_a_client_that_set_no_level_gets_every_line() -> None:
    lines = Lines()
    async with client_of(declared.toolset(), "legacy", logging_callback=lines) as client:
        await client.call_tool("chatter", {})
    assert lines.texts == ["a line of debug", "a line of info", "a line of error"]


async def test_a_client_gets_the_lines_of_the_level_it_set() -> None:
    lines = Lines()
    async with client_of(declared.toolset(), "legacy", logging_callback=lines) as client:
        with pytest.warns(MCPDeprecationWarning):
            await client.set_logging_level("warning")  # pyright: ignore[reportDeprecated]
        await client.call_tool("chatter", {})
    assert lines.texts == ["a line of error"]


@pytest.mark.parametrize(
    ("level", "texts"),
    [(None, []), ("error", ["a line of error"]), ("info", ["a line of info", "a line of error"])],
)
async def test_a_request_of_the_new_era_says_which_lines_it_wants(level: str | None, texts: list[str]) -> None:
    lines = Lines()
    async with client_of(declared.toolset(), "auto", logging_callback=lines, log_level=level) as client:
        await client.call_tool("chatter", {})
    assert lines.texts == texts
