"""Handshakes: answered without the SDK's models of the wire, and exactly as with them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.server.sample import declared
from trysquare.server import ServeOptions, _sdk
from trysquare.server.stdio import serve_descriptors

CLIENT = {"name": "test", "version": "1"}
PLAIN: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}


async def _answers(params: Any, ready: dict[str, Any], options: ServeOptions) -> list[Any]:
    """What a server answers to a handshake and to a list, in the order of the requests."""
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/initialized", **ready},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    (read_from, write_in), (read_out, write_to) = os.pipe(), os.pipe()
    os.write(write_in, "".join(json.dumps(one) + "\n" for one in asked).encode())
    os.close(write_in)
    await serve_descriptors(declared.toolset(), options, read_from=read_from, write_to=write_to)
    os.close(write_to)
    os.close(read_from)
    with open(read_out, encoding="utf-8") as answers:  # noqa: ASYNC230 - all of it is there
        return sorted(map(json.loads, answers), key=lambda one: one["id"])


@pytest.mark.parametrize(
    "params",
    [
        PLAIN,
        {**PLAIN, "capabilities": {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {"form": {}}}},
        {**PLAIN, "clientInfo": {**CLIENT, "title": "A test", "websiteUrl": "https://example.org"}},
        {**PLAIN, "_meta": {"progressToken": 7}},
        {**PLAIN, "unknown": 1},
        {**PLAIN, "protocolVersion": "2024-11-05"},
        {**PLAIN, "protocolVersion": "1999-01-01"},
        {**PLAIN, "protocolVersion": 7},
        {**PLAIN, "capabilities": []},
        {**PLAIN, "clientInfo": {"name": "test"}},
        {},
        None,
    ],
)
@pytest.mark.parametrize("ready", [{}, {"params": {}}, {"params": {"_meta": {"a": 1}}}], ids=["bare", "empty", "meta"])
async def test_the_answers_are_the_same_as_those_of_the_sdk(
    params: Any, ready: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ServeOptions(name="mine", title="Mine", instructions="Be kind.", skills=True)
    ours = await _answers(params, ready, options)
    monkeypatch.setattr(_sdk, "TESTED", ((9, 0), (9, 1)))
    assert ours == await _answers(params, ready, options)


def test_a_first_call_loads_no_models_of_the_wire() -> None:
    call = {"name": "greet", "arguments": {"name": "Ada"}}
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": PLAIN},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    code = (
        "import sys, atexit\n"
        "from trysquare.cli.main import main\n"
        "atexit.register(lambda: print([m for m in sys.modules if m.startswith('mcp_types._v')], file=sys.stderr))\n"
        "sys.argv[1:] = ['serve', '--config', '/dev/null', '--tools', 'trysquare.example_tools:tools']\n"
        "sys.exit(main())\n"
    )
    text = "".join(json.dumps(one) + "\n" for one in asked)
    served = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True, timeout=60)
    assert "Ada" in served.stdout, served.stderr
    assert served.stderr.splitlines()[-1] == "[]"
