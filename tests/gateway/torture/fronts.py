"""A gateway from its client's side: the SDK's client, in either era, over pipes or HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, cast

import psutil
from mcp import Client, StdioServerParameters
from mcp.client.context import ClientRequestContext
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ElicitResult, TextContent

from tests.gateway.torture.lanes import LANES, NAMES, Era, Lane
from tests.gateway.torture.servers import ROOT
from tests.support import told

NAME: Final = "Ada"
_START_SECONDS = 60.0
_PAUSE = 0.05


class Front(Protocol):
    """What a trial needs of a gateway."""

    async def call(self, server: str, tool: str, inputs: dict[str, Any]) -> CallToolResult:
        """Call a tool of a server behind the gateway."""
        ...

    async def tools(self, server: str) -> dict[str, str]:
        """The tools of a server, each with all that a model is shown of it."""
        ...

    async def tail(self, result: CallToolResult, server: str, length: int) -> tuple[int, str]:
        """How long the text of a large result is, and its end, whichever way the gateway offers it."""
        ...


class Gateway(Protocol):
    """A kind of gateway that can be put to the torture."""

    @property
    def title(self) -> str:
        """Its name and version."""
        ...

    @property
    def tells_outcomes(self) -> bool:
        """Whether a failure says if the call was sent."""
        ...

    def lanes(self) -> Sequence[Lane]:
        """The lanes that it has, by its own account."""
        ...

    def open(
        self, servers: Mapping[str, dict[str, Any]], lane: Lane, folder: Path
    ) -> contextlib.AbstractAsyncContextManager[Front]:
        """Start it over some servers, and connect."""
        ...


async def accept(context: ClientRequestContext, params: Any) -> ElicitResult:
    """A person who answers."""
    return ElicitResult(action="accept", content={"name": NAME})


def client_of(transport: Any, era: Era) -> Client:
    """The SDK's client."""
    mode = "legacy" if era == "legacy" else NAMES[era]
    return Client(transport, mode=mode, elicitation_callback=accept, cache=None)


def text_of(result: CallToolResult) -> str:
    """The text of a result."""
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


def write_config(servers: Mapping[str, dict[str, Any]], folder: Path) -> Path:
    """The servers as a file."""
    folder.mkdir(exist_ok=True)
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return path


def own_environment(folder: Path) -> dict[str, str]:
    """An environment in which everything is kept below a folder."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("TRYSQUARE_", "MCP_", "XDG_"))}
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return {**kept, "XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": paths}


class TrysquareFront:
    """One tool for each server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, server: str, tool: str, inputs: dict[str, Any]) -> CallToolResult:
        """Call a tool of a server behind the gateway."""
        return await self._do(server, action="execute", tool_name=tool, tool_inputs=inputs)

    async def tools(self, server: str) -> dict[str, str]:
        """The tools of a server with their schemas, and whatever the gateway's own list says of the server."""
        listed = await self._do(server, detail="schemas")
        if listed.is_error or listed.structured_content is None:
            raise RuntimeError(text_of(listed))
        shown = (await self._client.list_tools()).model_dump_json()
        found = cast(list[dict[str, Any]], listed.structured_content["result"])
        return {one["name"]: json.dumps(one, ensure_ascii=False) + shown for one in found}

    async def tail(self, result: CallToolResult, server: str, length: int) -> tuple[int, str]:
        """Read the end of a result by its handle."""
        handle = str(told(result)["handle"])
        size = await self._length(server, handle)
        read = await self._do(server, action="read", tool_inputs={"handle": handle, "offset": size - length})
        return size, told(read)["text"]

    async def _length(self, server: str, handle: str) -> int:
        """How long a kept text is: the last place at which there is something to read."""
        least, most = 0, 1 << 31
        while least < most:
            middle = (least + most) // 2
            inputs = {"handle": handle, "offset": middle, "length": 1}
            read = await self._do(server, action="read", tool_inputs=inputs)
            has_text = bool((read.structured_content or {}).get("text"))
            least, most = (middle + 1, most) if has_text else (least, middle)
        return least

    async def _do(self, server: str, **arguments: Any) -> CallToolResult:
        return await self._client.call_tool(f"mcp_{server}", arguments)


@dataclass(frozen=True, slots=True)
class Trysquare:
    """`trysquare serve --gateway`."""

    title: str = "Trysquare"
    tells_outcomes: bool = True

    def lanes(self) -> Sequence[Lane]:
        """All of them."""
        return LANES

    @contextlib.asynccontextmanager
    async def open(
        self, servers: Mapping[str, dict[str, Any]], lane: Lane, folder: Path
    ) -> AsyncGenerator[TrysquareFront]:
        """Start it over some servers, and connect."""
        words = ["-m", "trysquare", "serve", "--gateway", str(write_config(servers, folder)), "--project", str(folder)]
        environment = own_environment(folder)
        async with contextlib.AsyncExitStack() as stack:
            if lane.front == "stdio":
                transport = piped([sys.executable, *words], environment, folder)
            else:
                port = free_port()
                words += ["--http", f"127.0.0.1:{port}"]
                await stack.enter_async_context(listening([sys.executable, *words], environment, folder, port))
                transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp")
            yield TrysquareFront(await stack.enter_async_context(client_of(transport, lane.client)))


@contextlib.asynccontextmanager
async def piped(command: Sequence[str], environment: dict[str, str], folder: Path) -> AsyncGenerator[Any]:
    """A server as a child of the client, with its log in a file."""
    parameters = StdioServerParameters(command=command[0], args=list(command[1:]), env=environment, cwd=folder)
    with (folder / "log").open("w") as log:
        async with stdio_client(parameters, errlog=log) as streams:
            yield streams


@contextlib.asynccontextmanager
async def listening(
    command: Sequence[str], environment: dict[str, str], folder: Path, port: int
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """A server that listens at a port, with its log in a file, ended at the end of the block."""
    with (folder / "log").open("w") as log:
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            await until_open(port, process, folder / "log")
            yield process
        finally:
            await end(process)


async def end(process: asyncio.subprocess.Process) -> None:
    """End a process politely, then not."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), 10)
        except TimeoutError:
            process.kill()
            await process.wait()


async def until_open(port: int, process: asyncio.subprocess.Process, log: Path) -> None:
    """Wait until somebody listens."""
    async with asyncio.timeout(_START_SECONDS):
        while process.returncode is None:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(_PAUSE)
            else:
                writer.close()
                return
    raise RuntimeError(f"the gateway has ended: {_end_of(log)}")


def _end_of(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-1000:]


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def gateway_process(folder: Path) -> psutil.Process:
    """The gateway that was started for a folder."""
    config = str(folder / "mcp.json")
    [found] = [one for one in psutil.Process().children() if config in one.cmdline()]
    return found
