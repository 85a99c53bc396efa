"""Serving over streamable HTTP, for many clients at once."""

from __future__ import annotations

from dataclasses import dataclass

import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from trysquare.core.toolset import Toolset
from trysquare.serve.options import ServeOptions
from trysquare.serve.server import build_server

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpOptions:
    """Where and for whom to serve over HTTP."""

    host: str = "127.0.0.1"
    port: int = 8000
    path: str = "/mcp"
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    max_body: int = 16 * 1024 * 1024


def http_app(toolset: Toolset, options: ServeOptions | None = None, http: HttpOptions | None = None) -> Starlette:
    """The ASGI application that serves a toolset."""
    known = http or HttpOptions()
    server = build_server(toolset, options)
    hosts = ["127.0.0.1:*", "localhost:*", "[::1]:*", *known.allowed_hosts]
    origins = ["http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*", *known.allowed_origins]
    manager = StreamableHTTPSessionManager(
        app=server,
        security_settings=TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins),
        max_request_body_size=known.max_body,
    )
    return Starlette(
        routes=[Route(known.path, endpoint=StreamableHTTPASGIApp(manager)), Route("/healthz", endpoint=_health)],
        lifespan=lambda _: manager.run(),
    )


async def serve_http(toolset: Toolset, options: ServeOptions | None = None, http: HttpOptions | None = None) -> None:
    """Serve until the process is told to end."""
    known = http or HttpOptions()
    config = uvicorn.Config(http_app(toolset, options, known), host=known.host, port=known.port, log_level="warning")
    await uvicorn.Server(config).serve()


async def _health(_: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})
