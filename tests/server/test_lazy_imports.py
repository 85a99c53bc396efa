"""Importing the SDK lightly: less is loaded at the start, and nothing is missing afterwards."""

from __future__ import annotations

import json
import subprocess
import sys

SCRIPT = """
import json, sys
from pydantic import BaseModel
from trysquare.server.lazy_imports import deferred_sdk_imports

with deferred_sdk_imports():
    from trysquare.server.http.app import serve_http
    from trysquare.server.stdio import serve_stdio
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


STDIO_SCRIPT = """
import json, sys
from trysquare.server.lazy_imports import deferred_sdk_imports

with deferred_sdk_imports():
    from trysquare.server.stdio import serve_stdio
heavy = ("starlette.applications", "uvicorn.main", "sse_starlette", "mcp.server.streamable_http",
         "mcp.server.auth.routes", "mcp_types._v2025_11_25", "mcp_types._v2026_07_28")
early = sorted(name for name in heavy if name in sys.modules)

from mcp_types.methods import serialize_server_result, validate_client_request
from mcp.server.lowlevel import Server
from pydantic import TypeAdapter, ValidationError
import mcp_types

def refuses(method, version, params):
    try:
        validate_client_request(method, version, params)
    except ValidationError:
        return True
    return False

listing = {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
asking = {"resultType": "input_required", "requestState": "x", "inputRequests": {}}
old = refuses("tools/call", "2025-11-25", {"name": 1}), refuses("tools/call", "2025-11-25", {"name": "x"})
loaded = sorted(name for name in heavy if name in sys.modules)
app = Server("x").streamable_http_app()

print(json.dumps({
    "early": early,
    "refused": old,
    "loaded": loaded,
    "listed": serialize_server_result("tools/list", "2026-07-28", listing)["resultType"],
    "asked": serialize_server_result("tools/call", "2026-07-28", asking)["resultType"],
    "app": type(app).__module__,
    "params": mcp_types.CallToolRequestParams(name="x").model_dump(exclude_none=True),
    "built": TypeAdapter(int).pydantic_complete,
}))
"""


def test_over_stdio_neither_what_http_takes_nor_the_models_of_an_era_are_loaded_before_they_are_used() -> None:
    done = subprocess.run([sys.executable, "-c", STDIO_SCRIPT], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == ""
    assert json.loads(done.stdout) == {
        "early": [],
        "refused": [True, False],
        "loaded": ["mcp_types._v2025_11_25"],
        "listed": "complete",
        "asked": "input_required",
        "app": "starlette.applications",
        "params": {"name": "x"},
        "built": True,
    }
