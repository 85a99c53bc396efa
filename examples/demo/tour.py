"""The steps of the tour that have no chapter of their own: one file as a server, a gateway, a checklist."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import mcp_types as types

from examples.demo.conversation import Conversation, converse, definition_tokens
from examples.demo.gateway import GatewayTalk
from examples.demo.stage import Human, Stage, envelope_of, text_of

_SERVERS = Path(__file__).parent / "servers"
_BOT = Path(__file__).parents[1] / "bots" / "release"


@asynccontextmanager
async def own_server(stage: Stage) -> AsyncGenerator[Conversation]:
    """A server of one file, as its author wrote it."""
    await asyncio.to_thread(shutil.copy, _SERVERS / "notes.py", stage.project / "server.py")
    async with converse(replace(stage, with_examples=False), "server.py") as talk:
        yield talk


async def call_a_function(talk: Conversation) -> None:
    """Types and the docstring become the schema; any MCP client can call it."""
    source = await asyncio.to_thread((_SERVERS / "notes.py").read_text, "utf-8")
    talk.transcript.code(_function(source, "read_note"))
    tools = {tool.name: tool for tool in (await talk.client.list_tools()).tools}
    talk.transcript.sent("tools/list")
    talk.transcript.received(", ".join(f"{name} ({definition_tokens(tool)} tokens)" for name, tool in tools.items()))
    answer = await talk.call("read_note", {"title": "shopping"})
    talk.transcript.expect(not answer.is_error and "read_note" in tools, "the function's return value")


def _function(source: str, name: str) -> str:
    """A function with its decorator, as it is written."""
    lines = source.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"def {name}("))
    end = next((number for number in range(start, len(lines)) if not lines[number]), len(lines))
    return "\n".join(lines[start - 1 : end])


async def correct_a_mistake(talk: Conversation) -> None:
    """Two wrong arguments. The error contains the corrected call, which is sent as it is."""
    refused = await talk.call("add_note", {"titel": "trains", "text": "Vienna at 20:05", "priority": "hgih"})
    corrected = envelope_of(refused).get("next", {})
    talk.transcript.expect(bool(refused.is_error) and bool(corrected), "nothing ran, and the corrected call is there")
    repaired = await talk.call(corrected["tool"], corrected["arguments"])
    talk.transcript.expect(not repaired.is_error, "the corrected call succeeds unchanged")


@asynccontextmanager
async def gateway_server(stage: Stage) -> AsyncGenerator[GatewayTalk]:
    """A gateway in front of four servers: one made with the MCP SDK, three with Trysquare."""
    file = await asyncio.to_thread(_write_servers, stage.project)
    own = replace(stage, with_examples=False)
    async with converse(own, "--gateway", str(file)) as talk:
        yield GatewayTalk(talk=talk, stage=own)


def _write_servers(project: Path) -> Path:
    serve = ["-m", "trysquare", "serve", "--project", str(project)]
    arguments = {
        "stock": [str(_SERVERS / "stock.py")],
        "notes": [*serve, "notes.py"],
        "debugger": [*serve, "--debugger"],
        "workbench": [*serve, "--workbench", str(project)],
    }
    shutil.copy(_SERVERS / "notes.py", project / "notes.py")
    servers = {name: {"command": sys.executable, "args": words} for name, words in arguments.items()}
    file = project / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}, indent=2), encoding="utf-8")
    return file


async def count_tokens_of_servers(gateway: GatewayTalk) -> None:
    """What a model reads before it does anything: all definitions, or one tool for each server."""
    servers = json.loads(await asyncio.to_thread((gateway.stage.project / "mcp.json").read_text, "utf-8"))["mcpServers"]
    lists = await asyncio.gather(*(_list_alone(gateway, entry) for entry in servers.values()))
    alone = [tool for tools in lists for tool in tools]
    for name, tools in zip(servers, lists, strict=True):
        gateway.talk.transcript.note(f"{name}: {len(tools)} tools, {_sum(tools)} tokens")
    gateway.talk.transcript.sent("tools/list", "of the gateway")
    behind = (await gateway.talk.client.list_tools()).tools
    gateway.talk.transcript.received(", ".join(tool.name for tool in behind))
    talk = f"{len(alone)} tools for {_sum(behind)} tokens instead of {_sum(alone)}; every one can be called"
    gateway.talk.transcript.expect(_sum(behind) < _sum(alone), talk)


async def _list_alone(gateway: GatewayTalk, entry: dict[str, Any]) -> list[types.Tool]:
    """The tools of a server, listed without the gateway."""
    silent = Human(transcript=gateway.talk.transcript)
    async with gateway.stage.stdio_client([entry["command"], *entry["args"]], silent) as client:
        return (await client.list_tools()).tools


def _sum(tools: list[types.Tool]) -> int:
    return sum(definition_tokens(tool) for tool in tools)


async def kill_during_a_call(gateway: GatewayTalk) -> None:
    """The answer says that the call may have run, so that nobody repeats it blindly. Other servers go on."""
    transcript = gateway.talk.transcript

    async def kill(progress: float, total: float | None, message: str | None) -> None:
        transcript.received(f"progress {progress:g} of {total or 0:g}: {message}")
        pid = int((message or "").split()[1])
        transcript.note(f"kill -9 {pid}: the stock server, during this call")
        os.kill(pid, signal.SIGKILL)

    lost = await gateway.execute("stock", "recount", {}, lines=3, on_progress=kill)
    outcome = envelope_of(lost).get("outcome")
    transcript.expect(outcome == "sent_unknown", "the outcome `sent_unknown`, and what to check first")
    other = await gateway.execute("notes", "read_note", {"title": "shopping"}, lines=1)
    transcript.expect("oat milk" in text_of(other), "the other servers did not notice")
    again = await gateway.execute("stock", "count", {"item": "apples"}, lines=1)
    transcript.expect("40" in text_of(again), "the next call started the server again")


@asynccontextmanager
async def release_server(stage: Stage) -> AsyncGenerator[Conversation]:
    """A release checklist of two actions, each of which a human has to close."""
    await asyncio.to_thread(shutil.copytree, _BOT, stage.project / "release")
    async with converse(replace(stage, with_examples=False), "--bot", "release") as talk:
        yield talk


async def pass_a_gate(talk: Conversation) -> None:
    """The model cannot skip ahead, and cannot say yes for you. The record says who approved."""
    talk.transcript.sent("tools/call", "release_tool", {})
    opened = envelope_of(await talk.client.call_tool("release_tool", {}))
    talk.transcript.received(f"the instructions of {opened['behavior']}.{opened['action']}")
    ahead = await talk.call("release_ship_publish", {}, lines=1)
    talk.transcript.expect(bool(ahead.is_error), "publishing is refused before the notes are approved")
    talk.human.approve = False
    refused = await talk.call("release_close_current_action", {}, lines=1)
    talk.transcript.expect(bool(refused.is_error), "nothing is closed while you say no")
    talk.human.approve = True
    closed = envelope_of(await talk.call("release_close_current_action", {}, lines=1))
    talk.transcript.expect(
        closed.get("approval") == "confirmed", f"confirmed: {closed.get('approved_by')}, {closed.get('approved_how')}"
    )
