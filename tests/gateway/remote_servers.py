"""Remote servers in the test's own event loop: the SDK's over every transport, and one that does what a test says."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.announcing_server import AnnouncingServer
from trysquare.gateway import ServerConfig
from trysquare.gateway.models import ConfigLocation
from trysquare.gateway.upstream.http import StreamableHttpTransport
from trysquare.gateway.upstream.sse import SseTransport
from trysquare.gateway.upstream.transport import Transport as Channel
from trysquare.store import Secrets

Handler = Callable[[Request], Awaitable[Response]]


@contextlib.asynccontextmanager
async def listening(app: ASGIApp, listener: socket.socket | None = None) -> AsyncGenerator[str]:
    """Serve an application until the block ends; yields where it listens, without a path."""
    listener = listener or socket.create_server(("127.0.0.1", 0))
    server = AnnouncingServer(uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=1))
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        await server.listening.wait()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving
        listener.close()


def remote(url: str, transport: str = "http", **fields: Any) -> ServerConfig:
    """An entry that leads to a remote server."""
    place = ConfigLocation(file="mcp.json", line=3)
    return ServerConfig(
        name="far", tool_name="mcp_far", transport=transport, location=place, url=url, shown=url, **fields
    )


def channels(secrets: Secrets) -> Callable[[ServerConfig], Channel]:
    """The channels to remote servers, with secrets of the test's own."""
    return lambda config: (SseTransport if config.transport == "sse" else StreamableHttpTransport)(config, secrets)


class Name(BaseModel):
    name: str


def sdk_server(**options: Any) -> MCPServer[Any]:
    """A server of the SDK with a few tools."""
    server: MCPServer[Any] = MCPServer("far", **options)

    @server.tool()
    def echo(text: str) -> str:
        return text

    @server.tool()
    async def steps(text: str, context: Context[Any, Any]) -> str:
        for step in range(3):
            await context.report_progress(step, 3)
        return text

    @server.tool()
    async def greet(text: str, context: Context[Any, Any]) -> str:
        answer = await context.elicit(text, Name)
        return f"hello {answer.data.name}" if answer.action == "accept" else answer.action

    @server.tool()
    async def grow(text: str, context: Context[Any, Any]) -> str:
        server.add_tool(lambda: text, name=text, description="New.")
        await context.notify_tools_changed()
        await context.session.send_tool_list_changed()
        return text

    return server


def of_the_earlier_era(app: ASGIApp) -> ASGIApp:
    """The same application, without knowledge of the modern era."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await app(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        if b'"server/discover"' in body:
            await JSONResponse({"error": "no such method"}, status_code=400)(scope, receive, send)
            return
        first = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Any:
            return next(first, None) or await receive()

        await app(scope, replay, send)

    return serve


@dataclass
class Scripted:
    """A server whose answers the test writes, and that notes what it is asked."""

    modern: bool = False
    session: str | None = "s1"
    capabilities: dict[str, Any] = field(default_factory=lambda: {"tools": {}})
    seen: list[tuple[str, dict[str, str], Any]] = field(default_factory=list[Any])
    handlers: dict[str, Handler] = field(default_factory=dict[str, Handler])
    """What answers a method of the protocol, or a method of HTTP where there is no body."""

    @property
    def app(self) -> Starlette:
        """The application to serve."""
        return Starlette(routes=[Route("/mcp", self._serve, methods=["GET", "POST", "DELETE"])])

    def of(self, method: str) -> list[tuple[dict[str, str], Any]]:
        """The headers and bodies of all requests of one kind."""
        return [(headers, body) for name, headers, body in self.seen if name == method]

    async def _serve(self, request: Request) -> Response:
        raw = await request.body()
        body: Any = json.loads(raw) if raw else None
        method = request.method if body is None else str(body.get("method", "answer"))
        self.seen.append((method, dict(request.headers), body))
        if method in self.handlers:
            return await self.handlers[method](request)
        return self._usual(method, body)

    def _usual(self, method: str, body: Any) -> Response:
        if method in ("GET", "DELETE"):
            return Response(status_code=405)
        if "id" not in body:
            return Response(status_code=202)
        if method == "server/discover" and not self.modern:
            return Response(status_code=404)
        headers = {"mcp-session-id": self.session} if self.session and method == "initialize" else {}
        return JSONResponse(answer(body["id"], self._result(method)), headers=headers)

    def _result(self, method: str) -> dict[str, Any]:
        match method:
            case "server/discover":
                return {"supportedVersions": ["2026-07-28"], "capabilities": self.capabilities}
            case "initialize":
                info = {"name": "scripted", "version": "1"}
                return {"protocolVersion": "2025-11-25", "capabilities": self.capabilities, "serverInfo": info}
            case "tools/call":
                return text_result("done")
            case _:
                return {"tools": []}


def answer(request_id: Any, result: dict[str, Any]) -> dict[str, Any]:
    """A message with a result."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def text_result(text: str) -> dict[str, Any]:
    """A tool's result with one text."""
    return {"content": [{"type": "text", "text": text}]}
