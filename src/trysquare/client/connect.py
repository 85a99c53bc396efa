"""How a client reaches a server: tools in this process, a Python file, a command or a URL."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from trysquare.core.declarations import Tools
from trysquare.core.tool import Tool
from trysquare.core.toolset import StaticToolset, Toolset
from trysquare.gateway.models import ConfigLocation, ServerConfig
from trysquare.gateway.upstream.transport import (
    OutgoingMessage,
    RequestId,
    Transport,
    TransportListener,
    open_transport,
)
from trysquare.processes.supervisor import supervise

if TYPE_CHECKING:
    from trysquare.server import McpServer
    from trysquare.server.connection import Connection

Server: TypeAlias = Tools | Toolset | Tool | str | Path
"""What a client can be made of: tools, a Python file or source, or a URL."""
_WEB = ("http://", "https://")
_CLOSE_SECONDS = 3.0
_UNLIMITED = 10 * 365 * 24 * 3600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """The server of a client; one of `tools`, `server`, `command` and `url` is set."""

    tools: Toolset | None = None
    server: McpServer | None = None
    """A server that was made already."""
    command: Sequence[str] = ()
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | Path | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    label: str = ""
    """What errors call it, where that is not its command or address."""
    shows_errors: bool = False
    """Whether its stderr is shown: the log of one's own file says what an incident was."""
    project: str | Path | None = None
    """Directory whose settings tools in memory are served with; without it, with the defaults."""

    @property
    def name(self) -> str:
        """What errors call it."""
        if self.label:
            return self.label
        if self.url:
            return urlsplit(self.url).netloc
        return " ".join(self.command) if self.command else "in memory"

    def config(self, *, timeout: float | None, start_timeout: float) -> ServerConfig:
        """The target as the gateway describes servers."""
        program, *arguments = self.command or ("",)
        return ServerConfig(
            name=self.name,
            tool_name="",
            transport="stdio" if self.command else "http",
            location=ConfigLocation(file="the client's arguments"),
            shown=self.url or self.name,
            command=program,
            args=tuple(arguments),
            # It is a program of whoever runs this one, so it gets the whole environment, as in a shell.
            env={**os.environ, **self.env},
            cwd=None if self.cwd is None else str(self.cwd),
            url=self.url,
            headers=dict(self.headers),
            timeout=_UNLIMITED if timeout is None else timeout,
            start_timeout=start_timeout,
            sharing="caller",
            is_attributed=False,
            keeps_progress=True,
            shows_errors=self.shows_errors,
        )


def target_of(
    server: Server,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    headers: Mapping[str, str] | None = None,
    project: str | Path | None = None,
) -> Target:
    """The target that a value names."""
    if isinstance(server, str) and server.lower().startswith(_WEB):
        return Target(url=server, headers=headers or {})
    if isinstance(server, (str, Path)):
        # Served by the command, so that a file needs no `run()` and has every middleware.
        command = (sys.executable, "-m", "trysquare", "serve", str(server), "--log-level", "WARNING")
        return Target(command=command, env=env or {}, cwd=cwd, label=str(server), shows_errors=True)
    if isinstance(server, Tool):
        return Target(tools=StaticToolset([server]), project=project)
    return Target(tools=server.toolset() if isinstance(server, Tools) else server, project=project)


@asynccontextmanager
async def open_target(target: Target, config: ServerConfig) -> AsyncGenerator[Transport]:
    """The transport to a target, not opened yet; its process or server in memory ends with the context."""
    if target.server is not None:
        yield MemoryTransport(target.server)
        return
    if target.tools is not None:
        async with _serve_in_memory(target.tools, target.project) as server:
            yield MemoryTransport(server)
        return
    async with supervise() as supervisor:
        yield open_transport(config, supervisor)


@asynccontextmanager
async def _serve_in_memory(toolset: Toolset, project: str | Path | None) -> AsyncGenerator[McpServer]:
    from trysquare.app import load_own_settings, open_app
    from trysquare.core.approvals import MemoryApprovals
    from trysquare.server import build_server
    from trysquare.settings import Settings

    loaded = None if project is None else load_own_settings(Path(project))
    settings, origins = (Settings(), None) if loaded is None else (loaded.settings, loaded.origins)
    async with open_app(settings, origins=origins, own=toolset, approvals=MemoryApprovals()) as app:
        server = build_server(app.toolset, app.serve_options())
        try:
            yield server
        finally:
            server.hub.close()


class MemoryTransport(Transport):
    """Messages to a server in this process, as bytes in both directions."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._listener: TransportListener | None = None
        self._connection: Connection | None = None

    async def open(self, listener: TransportListener) -> None:
        from trysquare.server.connection import Connection

        self._listener = listener
        self._connection = Connection(self._server, self._deliver)

    def send(self, outgoing: OutgoingMessage) -> None:
        assert self._connection is not None
        # In a turn of its own, as from a pipe: neither side runs inside of the other.
        asyncio.get_running_loop().call_soon(self._connection.receive, outgoing.body)

    def set_version(self, version: str) -> None:
        """Both sides know it."""

    def cancel(self, request_id: RequestId) -> None:
        """The notification of the cancellation says it."""

    async def close(self) -> None:
        self._listener = None
        if self._connection is not None:
            await self._connection.close("the client closed the connection", grace=_CLOSE_SECONDS)

    def _deliver(self, message: bytes) -> None:
        asyncio.get_running_loop().call_soon(self._receive, message)

    def _receive(self, message: bytes) -> None:
        if self._listener is not None:
            self._listener.receive(message)
