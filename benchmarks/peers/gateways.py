"""Other gateways, each in the way its own documents recommend: FastMCP 4's proxy, mcp-proxy and mcp-hub."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx2
from mcp import Client
from mcp.client import sse
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from benchmarks.peers.known import NODE_PROJECT, ROOT, node
from tests.gateway.torture.fronts import (
    Gateway,
    client_of,
    free_port,
    listening,
    own_environment,
    piped,
    text_of,
    write_config,
)
from tests.gateway.torture.lanes import ERAS, UPSTREAMS, Lane

PEERS_FOLDER = ROOT / "benchmarks" / ".peers"
MCP_PROXY = "0.13.0"
MCP_HUB = NODE_PROJECT / "node_modules" / "mcp-hub"


class FlatFront:
    """One list of all tools, with the server's name before each."""

    def __init__(self, client: Client, separator: str) -> None:
        self._client = client
        self._separator = separator

    async def call(self, server: str, tool: str, inputs: dict[str, Any]) -> CallToolResult:
        """Call a tool of a server behind the gateway."""
        return await self._client.call_tool(f"{server}{self._separator}{tool}", inputs)

    async def tools(self, server: str) -> dict[str, str]:
        """The tools of a server, each with all that a model is shown of it."""
        mark = f"{server}{self._separator}"
        every = await every_tool(self._client)
        return {name.removeprefix(mark): shown for name, shown in every.items() if name.startswith(mark)}

    async def tail(self, result: CallToolResult, server: str, length: int) -> tuple[int, str]:
        """The end of a result that came whole."""
        text = text_of(result)
        return len(text), text[-length:]


class SplitFront(FlatFront):
    """Each server at an address of its own."""

    def __init__(self, clients: Mapping[str, Client]) -> None:
        self._clients = clients

    async def call(self, server: str, tool: str, inputs: dict[str, Any]) -> CallToolResult:
        """Call a tool of a server behind the gateway."""
        return await self._clients[server].call_tool(tool, inputs)

    async def tools(self, server: str) -> dict[str, str]:
        """The tools of a server, each with all that a model is shown of it."""
        return await every_tool(self._clients[server])


async def every_tool(client: Client) -> dict[str, str]:
    """All pages of a list."""
    found: dict[str, str] = {}
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        found |= {tool.name: json.dumps(tool.model_dump(mode="json"), ensure_ascii=False) for tool in page.tools}
        cursor = page.next_cursor
        if cursor is None:
            return found


@dataclass(frozen=True, slots=True)
class FastMcpProxy:
    """A proxy for each server, mounted in one: of FastMCP's ways the one that keeps its servers."""

    tells_outcomes: bool = False

    @property
    def title(self) -> str:
        """Its name and version."""
        return f"FastMCP {version('fastmcp')} proxy"

    def lanes(self) -> Sequence[Lane]:
        """Every server, and clients of both eras."""
        return _lanes("http", *ERAS)

    @contextlib.asynccontextmanager
    async def open(self, servers: Mapping[str, dict[str, Any]], lane: Lane, folder: Path) -> AsyncGenerator[FlatFront]:
        """Start it over some servers, and connect."""
        port = free_port()
        command = [*fastmcp_command(write_config(servers, folder)), str(port)]
        async with (
            listening(command, own_environment(folder), folder, port),
            client_of(_http_client(f"http://127.0.0.1:{port}/mcp"), lane.client) as client,
        ):
            yield FlatFront(client, "_")


def fastmcp_command(config: Path) -> list[str]:
    """What starts FastMCP's proxy; the port is to follow."""
    return [sys.executable, "-m", "benchmarks.peers.fastmcp_gateway", str(config)]


@dataclass(frozen=True, slots=True)
class McpProxy:
    """mcp-proxy: named servers that it starts, each at an address; or one remote server, over pipes."""

    tells_outcomes: bool = False
    title: str = f"mcp-proxy {MCP_PROXY}"

    def lanes(self) -> Sequence[Lane]:
        """It speaks 2025-11-25 on both sides; for remote servers its client side speaks pipes."""
        return [
            Lane(transport=transport, era=era, client="legacy", front="http" if transport == "stdio" else "stdio")
            for transport, era in UPSTREAMS
        ]

    @contextlib.asynccontextmanager
    async def open(self, servers: Mapping[str, dict[str, Any]], lane: Lane, folder: Path) -> AsyncGenerator[SplitFront]:
        """Start it over some servers, and connect to each."""
        environment = own_environment(folder)
        here = {name: entry for name, entry in servers.items() if "command" in entry}
        async with contextlib.AsyncExitStack() as stack:
            port = free_port()
            command = mcp_proxy_command(write_config(here, folder), port)
            await stack.enter_async_context(listening(command, environment, folder, port))
            transports: dict[str, Any] = {
                name: _http_client(f"http://127.0.0.1:{port}/servers/{name}/mcp/") for name in here
            }
            for name in set(servers) - set(here):
                kind = "sse" if servers[name]["type"] == "sse" else "streamablehttp"
                words = [str(mcp_proxy()), "--transport", kind, servers[name]["url"]]
                transports[name] = piped(words, environment, _made(folder / name))
            clients = {name: client_of(transport, "legacy") for name, transport in transports.items()}
            yield SplitFront({name: await stack.enter_async_context(one) for name, one in clients.items()})


def mcp_proxy_command(config: Path, port: int) -> list[str]:
    """What starts mcp-proxy over servers of its own."""
    return [str(mcp_proxy()), "--port", str(port), "--named-server-config", str(config), "--log-level", "WARNING"]


@cache
def mcp_proxy() -> Path:
    """The command of mcp-proxy, installed by version and hash into an environment of its own."""
    folder = PEERS_FOLDER / f"mcp-proxy-{MCP_PROXY}"
    command = folder / "bin" / "mcp-proxy"
    if not command.exists():
        print(f"installing mcp-proxy {MCP_PROXY} into {folder.relative_to(ROOT)}", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        pins = str(ROOT / "constraints" / "mcp-proxy.txt")
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = ["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r", pins]
        subprocess.run([str(folder / "bin" / "python"), *install], check=True, cwd=ROOT)
    return command


@dataclass(frozen=True, slots=True)
class McpHub:
    """mcp-hub: all servers behind one stream of events."""

    tells_outcomes: bool = False

    @property
    def title(self) -> str:
        """Its name and version."""
        return f"mcp-hub {json.loads((MCP_HUB / 'package.json').read_text(encoding='utf-8'))['version']}"

    def lanes(self) -> Sequence[Lane]:
        """Every server; its clients are of the earlier era, over events."""
        return _lanes("sse", "legacy")

    @contextlib.asynccontextmanager
    async def open(self, servers: Mapping[str, dict[str, Any]], lane: Lane, folder: Path) -> AsyncGenerator[FlatFront]:
        """Start it over some servers, and connect."""
        port = free_port()
        command = mcp_hub_command(write_config(servers, folder), port)
        url = f"http://127.0.0.1:{port}/mcp"
        async with listening(command, mcp_hub_environment(folder), folder, port):
            await until_ready(url)
            async with client_of(_events_client(url), lane.client) as client:
                yield FlatFront(client, "__")


def mcp_hub_command(config: Path, port: int) -> list[str]:
    """What starts mcp-hub."""
    return [str(node()), str(MCP_HUB / "dist" / "cli.js"), "--port", str(port), "--config", str(config)]


def mcp_hub_environment(folder: Path) -> dict[str, str]:
    """Its log and its state go below a folder too."""
    return {**own_environment(folder), "HOME": str(folder), "PATH": os.environ["PATH"]}


async def until_ready(url: str, seconds: float = 20.0) -> None:
    """Wait until mcp-hub takes clients: it refuses them before all of its servers have started."""
    try:
        async with asyncio.timeout(seconds), httpx2.AsyncClient() as web:
            while not await _streams(web, url):  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise RuntimeError(f"takes no clients within {seconds:g} s") from None


async def _streams(web: httpx2.AsyncClient, url: str) -> bool:
    async with web.stream("GET", url) as response:
        return response.status_code == 200


# A client takes events of up to a megabyte by default. That is no limit of the gateway that is tried.
_http_client = functools.partial(streamable_http_client, max_sse_event_size=None)


@contextlib.asynccontextmanager
async def _events_client(url: str) -> AsyncGenerator[Any]:
    """The SDK's client over events. Its own limit can only be lifted where it opens the stream."""
    opening = functools.partial(vars(sse)["sse_within_origin"], max_event_size=None)
    with patch.object(sse, "sse_within_origin", opening):
        async with sse.sse_client(url) as streams:
            yield streams


def _lanes(front: Any, *clients: Any) -> list[Lane]:
    return [
        Lane(transport=transport, era=era, client=client, front=front)
        for client in clients
        for transport, era in UPSTREAMS
    ]


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


GATEWAYS: tuple[Gateway, ...] = (FastMcpProxy(), McpProxy(), McpHub())
