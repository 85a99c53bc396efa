"""Stage: a temporary project, servers that run in it, and real MCP clients in front of them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TextIO

import anyio
import httpx2
import mcp_types as types
from anyio.abc import Process
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from examples.demo.transcript import Transcript

HANDSHAKE, MODERN = "2025-11-25", "2026-07-28"
ERAS = (MODERN, HANDSHAKE)
START_SECONDS = 30.0
_FOLDERS = {"XDG_STATE_HOME": "state", "XDG_CACHE_HOME": "cache"}
"""What the servers keep, and where in the temporary project."""


@dataclass(kw_only=True)
class Human:
    """The human behind a client: sees each question and answers it."""

    transcript: Transcript
    approve: bool = True
    questions: list[str] = field(default_factory=list[str])

    async def answer(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Read the question and say yes or no."""
        self.questions.append(params.message)
        self.transcript.human(f"{params.message.splitlines()[0]}  {'yes' if self.approve else 'no'}")
        return types.ElicitResult(action="accept", content={"approve": self.approve})


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Where the demo plays: nothing of it is written into the user's folders."""

    LOG: ClassVar = "server.log"

    transcript: Transcript
    project: Path
    log: Path
    """What the servers log."""
    with_examples: bool = True
    """Whether the servers offer the example tools."""

    def environment(self) -> dict[str, str]:
        """The servers' environment, with state that is kept in the temporary project."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("TRYSQUARE_", "MCP_"))}
        folders = {name: str(self.project / place) for name, place in _FOLDERS.items()}
        examples = {"MCP_INCLUDE_EXAMPLE_TOOLS": "true"} if self.with_examples else {}
        return {**kept, **examples, **folders}

    def command(self, *words: str) -> list[str]:
        """A trysquare command for the temporary project."""
        return [sys.executable, "-m", "trysquare", *words, "--project", str(self.project)]

    @asynccontextmanager
    async def stdio(self, era: str, human: Human, *options: str) -> AsyncGenerator[Client]:
        """A client of one era with a server of its own, over stdio."""
        async with self.stdio_client(self.command("serve", *options), human, era) as client:
            yield client

    @asynccontextmanager
    async def stdio_client(self, command: Sequence[str], human: Human, era: str = MODERN) -> AsyncGenerator[Client]:
        """A client of a server that is started with this command."""
        program, *arguments = command
        server = StdioServerParameters(command=program, args=arguments, env=self.environment(), cwd=self.project)
        with self.log.open("a", encoding="utf-8") as log:
            async with Client(
                stdio_client(server, errlog=log), mode=_mode(era), elicitation_callback=human.answer
            ) as client:
                yield client

    @asynccontextmanager
    async def http_server(self, *options: str) -> AsyncGenerator[HttpServer]:
        """A server over HTTP that the demo may kill and start again."""
        with self.log.open("a", encoding="utf-8") as log:
            server = HttpServer(stage=self, log=log, port=await _free_port(), options=options)
            await server.start()
            try:
                yield server
            finally:
                await server.kill()


@dataclass(kw_only=True)
class HttpServer:
    """A server process of the demo's own, at a fixed address."""

    stage: Stage
    log: TextIO
    port: int
    options: tuple[str, ...] = ()
    process: Process | None = None

    @property
    def url(self) -> str:
        """Its MCP endpoint."""
        return f"http://127.0.0.1:{self.port}/mcp"

    async def start(self) -> None:
        """Start the process and wait until it accepts connections."""
        command = self.stage.command("serve", *self.options, "--http", f"127.0.0.1:{self.port}")
        self.process = await anyio.open_process(
            command, env=self.stage.environment(), cwd=self.stage.project, stdin=None, stdout=self.log, stderr=self.log
        )
        with anyio.fail_after(START_SECONDS):
            while not await _accepts(self.port):
                if self.process.returncode is not None:
                    raise RuntimeError(f"the server ended with {self.process.returncode}; see its log")
                await anyio.sleep(0.05)

    async def kill(self) -> None:
        """Kill the process without warning, and wait until it is gone."""
        if self.process is not None:
            if self.process.returncode is None:
                self.process.send_signal(signal.SIGKILL)
            await self.process.wait()
            self.process = None

    @asynccontextmanager
    async def client(self, era: str = MODERN, *, query: str = "", human: Human | None = None) -> AsyncGenerator[Client]:
        """A client of this server; without a human it cannot be asked anything."""
        answer = human.answer if human else None
        # The server is on this machine: a proxy that the user's environment names has nothing to do with it.
        async with httpx2.AsyncClient(trust_env=False, timeout=START_SECONDS) as http:
            transport = streamable_http_client(self.url + query, http_client=http)
            async with Client(transport, mode=_mode(era), elicitation_callback=answer) as client:
                yield client


def _mode(era: str) -> str:
    return "legacy" if era == HANDSHAKE else "auto"


async def _free_port() -> int:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        return int(listener.extra(anyio.abc.SocketAttribute.local_port))


async def _accepts(port: int) -> bool:
    try:
        stream = await anyio.connect_tcp("127.0.0.1", port)
    except OSError:
        return False
    await stream.aclose()
    return True


def text_of(result: types.CallToolResult) -> str:
    """The text of an answer."""
    return "\n".join(part.text for part in result.content if isinstance(part, types.TextContent))


def envelope_of(result: types.CallToolResult) -> dict[str, Any]:
    """All of an answer: the value, the tool's own names, and what it says beside them."""
    about: dict[str, Any] = (result.meta or {}).get("trysquare/result", {})
    structured: dict[str, Any] = result.structured_content or {}
    return {"value": structured.get("result", structured or text_of(result)), **structured, **about}
