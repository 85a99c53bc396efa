"""A gateway over the servers that Elysia's trees and the adapter's tests use, as a process of its own."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

from tests.gateway.opened import Place
from tests.gateway.real_servers import REPOSITORY, SERVERS, command, environment, node

ADAPTER = REPOSITORY / "src" / "trysquare" / "integrations" / "elysia.py"
TOY = REPOSITORY / "tests" / "gateway" / "toy_server.py"


def scripted_tool(name: str, properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """A tool that answers with what it was given."""
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return {"name": name, "description": f"The tool {name}.", "inputSchema": schema}


def toy(*options: str) -> list[str]:
    """The command of the toy server."""
    return [sys.executable, "-I", "-S", str(TOY), *options]


def write_servers(folder: Path, *, with_npm: bool) -> Path:
    """Write the configuration: a scripted server, a toy, one that leaves, a broken one, and perhaps some from npm."""
    place = Place(folder=folder)
    started, *arguments = toy()
    servers: dict[str, Any] = {
        "scripted": place.server(
            "scripted",
            scripted_tool("set", {"value": {"type": "integer"}}, "value"),
            scripted_tool("put", {"key": {"type": "string"}, "value": {"type": "integer"}}, "key", "value"),
            scripted_tool("rows", {"count": {"type": "integer"}}, "count"),
        ),
        "toy": {"command": started, "args": arguments},
        "leaving": {"command": started, "args": arguments},
        "broken": {},
    }
    if with_npm:
        memory = {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}
        servers["memory"] = {"command": node(), "args": [_npm("server-memory")], "env": memory}
        servers["everything"] = {"command": node(), "args": [_npm("server-everything"), "stdio"]}
    place.write_config(servers)
    return place.config


def _npm(package: str) -> str:
    return str(SERVERS / package / "dist" / "index.js")


def serving(config: Path) -> dict[str, Any]:
    """How the adapter starts the gateway."""
    kept = environment(config.parent) if SERVERS.is_dir() else {}
    env = {"PYTHONPATH": str(REPOSITORY / "src"), "XDG_STATE_HOME": str(config.parent / "state")}
    return {"command": command("serve", "--gateway", str(config)), "env": {**kept, **env}}


@contextlib.contextmanager
def served_over_http(config: Path, **more: str) -> Generator[str]:
    """A gateway at an address of this machine."""
    started, env = [*serving(config)["command"], "--http", "127.0.0.1:0"], {**serving(config)["env"], **more}
    with subprocess.Popen(started, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if line.startswith("Serving at "))
            yield line.split()[2]
        finally:
            process.terminate()


def write_setting(folder: Path, config: Path, url: str) -> Path:
    """What the program in Elysia's environment has to know."""
    path = folder / "setting.json"
    path.write_text(json.dumps({**serving(config), "url": url, "config": str(config)}), encoding="utf-8")
    return path
