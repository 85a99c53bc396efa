"""Importing the SDK lightly: less is loaded at the start, and nothing is missing afterwards."""

from __future__ import annotations

import json
import subprocess
import sys

SCRIPT = """
import json, sys
from pydantic import BaseModel
from trysquare.serve.light_import import light_imports

with light_imports():
    from trysquare.serve.http import serve_http
    from trysquare.serve.stdio import serve_stdio
heavy = ("mcp.client.session", "mcp.server.mcpserver", "cryptography", "jwt")
early = sorted(name for name in heavy if name in sys.modules)

class Model(BaseModel):
    count: int

import mcp
from mcp import Client, types
from mcp.server import MCPServer
from mcp.server.lowlevel import Server
import mcp.client.stdio
import uvicorn

print(json.dumps({
    "early": early,
    "deferred": Model.model_config.get("defer_build", False),
    "client": Client.__module__,
    "server": MCPServer.__module__,
    "same": mcp.server.lowlevel.Server is Server and mcp.types is types,
    "tool": types.Tool(name="x", input_schema={}).model_dump(by_alias=True, exclude_none=True),
    "version": mcp.__spec__.name,
    "uvicorn": uvicorn.Server.__module__,
}))
"""


def test_the_client_and_the_friendly_server_are_loaded_when_they_are_asked_for() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == {
        "early": [],
        "deferred": False,
        "client": "mcp.client.client",
        "server": "mcp.server.mcpserver.server",
        "same": True,
        "tool": {"name": "x", "inputSchema": {}},
        "version": "mcp",
        "uvicorn": "uvicorn.server",
    }
