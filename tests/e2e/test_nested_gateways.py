"""A gateway behind a gateway, also where the inner one starts so late that it finds both kinds of handshake."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.torture.fronts import NAME, Trysquare, TrysquareFront, own_environment, text_of, write_config
from tests.gateway.torture.lanes import ERAS, Era, Lane

GATEWAY_TESTS = Path(__file__).parents[1] / "gateway"
PROBE_AND_HANDSHAKE = 2
"""What a client has sent when it has waited in vain for the answer to its first message."""


def inner_gateway(folder: Path, era: Era, *, late: bool) -> dict[str, Any]:
    """The entry of a gateway over the toy server."""
    toy = {"command": sys.executable, "args": ["-I", "-S", str(GATEWAY_TESTS / "toy_server.py"), "--era", era]}
    config = write_config({"toy": toy}, folder)
    command = [sys.executable, "-m", "trysquare", "serve", "--gateway", str(config), "--project", str(folder)]
    if late:
        command = [sys.executable, str(GATEWAY_TESTS / "late_process.py"), str(PROBE_AND_HANDSHAKE), *command]
    own = {name: value for name, value in own_environment(folder).items() if name in ("PYTHONPATH", "XDG_STATE_HOME")}
    return {"command": command[0], "args": command[1:], "env": own}


async def said(outer: TrysquareFront, tool: str, text: str) -> str:
    """The text that a tool of the toy server answers with, through both gateways."""
    inputs = {"action": "execute", "tool_name": tool, "tool_inputs": {"text": text}}
    return text_of(await outer.call("inner", "mcp_toy", inputs))


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("client", ERAS)
@pytest.mark.parametrize("era", ERAS)
async def test_calls_and_questions_pass_through_two_gateways(tmp_path: Path, era: Era, client: Era, late: bool) -> None:
    lane = Lane(transport="stdio", era=era, client=client, front="stdio")
    servers = {"inner": inner_gateway(tmp_path / "inner", era, late=late)}
    async with Trysquare().open(servers, lane, tmp_path / "outer") as outer:
        assert "mcp_toy" in await outer.tools("inner")
        assert await said(outer, "echo", "Grüße") == "Grüße"
        assert NAME in await said(outer, "ask", "Who?")
