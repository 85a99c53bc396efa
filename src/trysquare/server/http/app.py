"""Streamable HTTP: the ASGI application of a toolset, and a server that serves it."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from types import FrameType
from typing import Literal, Protocol, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import Server

from trysquare.core.errors import ConfigurationError, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.toolset import HttpRoute, Toolset, lifespans_of, open_lifespans
from trysquare.server.http.auth import (
    AnyVerifier,
    AuthenticationMiddleware,
    OAuthOptions,
    TokenVerifier,
    is_loopback,
    metadata_path,
    metadata_url,
    protected_resource_metadata,
)
from trysquare.server.http.endpoint import McpEndpoint
from trysquare.server.http.exchange import AsgiApp, Headers, Receive, Scope, Send, path_of, send_json
from trysquare.server.http.limits import ConnectionGuard, ConnectionLimits
from trysquare.server.http.routes import custom_routes
from trysquare.server.http.security import CorsMiddleware, OriginCheckMiddleware
from trysquare.server.options import ServeOptions
from trysquare.server.server import build_server

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
HEALTH_PATH = "/healthz"
_EVERYWHERE = ("0.0.0.0", "::", "")
_NOT_LOCAL = (
    "Callers on other machines need a token, and this server has none. Create one with `trysquare token create NAME`, "
    "or pass `public=True` to `http_app` if the application around it decides who may call."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpOptions:
    """Where and for whom to serve over HTTP."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0 takes a free one."""
    path: str = "/mcp"
    verifier: TokenVerifier | None = None
    """Who may call by bearer token."""
    oauth: OAuthOptions | None = None
    """Take access tokens of an authorization server, alone or beside `verifier`."""
    clients: Literal["address", "local", "any"] = "address"
    """Whom to answer without a token: by the address to listen on, only this machine, or, for an application that
    decides that itself, everybody."""
    allowed_hosts: tuple[str, ...] = ()
    """Host headers to take beside those of the address itself: `mcp.example.com`, or `mcp.example.com:*`."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of web pages that may call: `https://app.example.com`."""
    max_body: int = 16 * 1024 * 1024
    stateless: bool = False
    """Keep no session for clients of protocol 2025-11-25, so that any of several workers can answer them."""
    session_idle: float = 1800.0
    """Seconds without a request under way after which a session ends."""
    grace: float = 5.0
    """Seconds that open calls have to finish at shutdown."""
    has_endpoint: bool = True
    """Whether MCP clients are served; without, only the pages."""
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    """What a client may take before it has proved anything. Only `serve_http` applies them."""

    @property
    def is_authenticated(self) -> bool:
        """Whether nobody gets in without a token."""
        return self.verifier is not None or self.oauth is not None


class Pages(Protocol):
    """An application for every path that is not the server's own."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def close(self) -> None:
        """End all streams."""


class HttpApp:
    """An ASGI application: the MCP endpoint at its path, with health and OAuth metadata beside it.

    It can be mounted in another application. A lifespan is served, and not needed: without one, what the tools open is
    opened by the first request, and closed when the event loop ends.
    """

    def __init__(
        self,
        toolset: Toolset,
        options: ServeOptions,
        http: HttpOptions,
        routes: Iterable[HttpRoute] = (),
        pages: Pages | None = None,
    ) -> None:
        self._is_local = http.clients == "local" and not http.is_authenticated
        self._path = http.path
        self._pages = pages
        server = self._server = build_server(toolset, options)
        self._opens, self._open_on = bool(lifespans_of(toolset)), cast(asyncio.AbstractEventLoop | None, None)
        self._opened, self._opening = AsyncExitStack(), asyncio.Lock()
        self._endpoint = McpEndpoint(
            server,
            stateless=http.stateless,
            max_body=http.max_body,
            session_idle=http.session_idle,
        )
        endpoint: AsgiApp = self._endpoint
        if http.is_authenticated:
            endpoint = _authenticated(endpoint, http)
        health = {"status": "ok", "name": server.info["name"], "version": server.info["version"]}
        self._routes: dict[str, AsgiApp] = {HEALTH_PATH: _document(health)}
        if http.has_endpoint:
            self._routes[http.path] = endpoint
        if http.oauth is not None:
            resource = _resource_of(http, http.oauth)
            metadata = protected_resource_metadata(http.oauth, resource, server.info["name"])
            cached = [(b"access-control-allow-origin", b"*"), (b"cache-control", b"max-age=3600")]
            for path in (metadata_path(resource), metadata_path("")):
                self._routes[path] = _document(metadata, cached)
        self._routes = {**custom_routes(routes), **self._routes}
        self._app = _with_middleware(self._route, http)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            if self._is_local and not _comes_from_here(scope):
                await send_json(send, 403, {"error": "not_authenticated", "error_description": _NOT_LOCAL})
                return
            if self._opens and self._open_on is not asyncio.get_running_loop():
                await self._open()
            await self._app(scope, receive, send)

    def close(self) -> None:
        """End all sessions and streams."""
        self._endpoint.close()
        if self._pages is not None:
            self._pages.close()

    async def aclose(self) -> None:
        """End all sessions and streams, and close what the tools opened for requests."""
        self.close()
        self._open_on = None
        await self._opened.aclose()

    def _route(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        path = path_of(scope)
        app = self._routes.get(path) or self._routes.get(path.rstrip("/") or "/")
        if app is not None:
            return app(scope, receive, send)
        if self._pages is not None:
            return self._pages(scope, receive, send)
        text = f"There is nothing at this path. The MCP endpoint is at {scope.get('root_path', '')}{self._path}."
        return send_json(send, 404, {"error": "not_found", "error_description": text})

    async def _open(self) -> None:
        async with self._opening:
            loop = asyncio.get_running_loop()
            if self._open_on is not loop:
                self._opened = AsyncExitStack()
                await self._opened.enter_async_context(self._server.open())
                self._open_on = loop

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            event = await receive()
            try:
                if event["type"] == "lifespan.shutdown":
                    await self.aclose()
                else:
                    await self._open()
            except ToolError as error:
                await send({"type": f"{event['type']}.failed", "message": str(error)})
                return
            await send({"type": f"{event['type']}.complete"})
            if event["type"] == "lifespan.shutdown":
                return


def http_app(
    toolset: Toolset,
    options: ServeOptions | None = None,
    http: HttpOptions | None = None,
    *,
    routes: Iterable[HttpRoute] = (),
    pages: Pages | None = None,
) -> HttpApp:
    """The ASGI application that serves a toolset, with the pages of `routes` beside it, and `pages` elsewhere.

    It refuses to be open to a network without authentication.
    """
    known = http or HttpOptions()
    _require_safe_address(known)
    return HttpApp(toolset, _without_rights(options or ServeOptions()), known, routes, pages)


def _comes_from_here(scope: Scope) -> bool:
    """Whether a request comes from this machine, or through no network at all, as from a test."""
    client = scope.get("client")
    try:
        return not client or ip_address(str(client[0])).is_loopback
    except ValueError:
        return True


def _without_rights(options: ServeOptions) -> ServeOptions:
    """Whoever comes without a token is not the user who started the server, and has none of their rights."""
    return replace(options, principal=replace(options.principal, rights=options.principal.rights or frozenset()))


async def serve_http(
    toolset: Toolset,
    options: ServeOptions | None = None,
    http: HttpOptions | None = None,
    *,
    routes: Iterable[HttpRoute] = (),
    pages: Pages | None = None,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve until shutdown. `started` gets the address once clients can connect."""
    known = http or HttpOptions()
    _require_safe_address(known)
    with _bound_socket(known) as listening:
        actual = replace(known, port=listening.getsockname()[1])
        app = http_app(toolset, options, actual, routes=routes, pages=pages)
        server = _GracefulServer(guarded_config(app, actual), app, lambda: started and started(address_of(actual)))
        # Opened here as well as by the application: what fails is raised, and not only logged by uvicorn.
        async with open_lifespans(toolset):
            await server.serve([listening])


def address_of(http: HttpOptions) -> str:
    """The address that a client on this machine uses."""
    host = "127.0.0.1" if http.host in ("0.0.0.0", "") else "::1" if http.host == "::" else http.host
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"http://{shown}:{http.port}{http.path}"


class _GracefulServer(Server):
    """Ends sessions and subscriptions first, since they would hold the server until its patience ends."""

    def __init__(self, config: Config, app: HttpApp, started: Callable[[], object]) -> None:
        super().__init__(config)
        self._http_app = app
        self._on_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_started()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().serve(sockets)
        except asyncio.CancelledError:
            # uvicorn would leave every connection open.
            if self.started:
                await self.shutdown(sockets)
            raise

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._http_app.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """End in order on SIGINT and SIGTERM, and then raise what closes what tools opened.

        uvicorn would raise the signal again, which ends the process at once or cancels that clean-up.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        received: list[int] = []

        def stop(number: int, frame: FrameType | None) -> None:
            received.append(number)
            self.handle_exit(number, frame)

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if received:
            raise KeyboardInterrupt if received[0] == signal.SIGINT else SystemExit(128 + received[0])


def guarded_config(app: HttpApp, http: HttpOptions) -> Config:
    """The configuration of a server for the application, with limits of connections."""
    guard = ConnectionGuard(http.limits, HttpToolsProtocol, max_body=http.max_body)
    return Config(
        guard.middleware(app),
        http=guard.protocol,  # pyright: ignore[reportArgumentType] - any callable that makes a protocol works
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, round(http.grace)),
    )


def _with_middleware(app: AsgiApp, http: HttpOptions) -> AsgiApp:
    local = is_loopback(http.host)
    own = LOOPBACK_NAMES if local or http.host in _EVERYWHERE else (*LOOPBACK_NAMES, http.host)
    hosts = [f"{name}:*" for name in own] + [*http.allowed_hosts]
    origins = [f"http://{name}:*" for name in own] if local else []
    anything = http.clients == "any" or (http.host in _EVERYWHERE and not http.allowed_hosts)
    return OriginCheckMiddleware(
        CorsMiddleware(app, origins=http.allowed_origins) if http.allowed_origins else app,
        hosts=None if anything else hosts,
        origins=[*origins, *http.allowed_origins],
        open_paths=frozenset({HEALTH_PATH}),
    )


def _authenticated(app: AsgiApp, http: HttpOptions) -> AuthenticationMiddleware:
    metadata = None if http.oauth is None else metadata_url(_resource_of(http, http.oauth))
    return AuthenticationMiddleware(app, token_verifier(http), metadata_url=metadata)


def token_verifier(http: HttpOptions) -> TokenVerifier:
    """Who may call by any of the tokens that these options take."""
    verifiers = [] if http.verifier is None else [http.verifier]
    if http.oauth is not None:
        # Imported here, since the libraries that check signatures take more memory than the rest of this package.
        from trysquare.server.http.jwt import OAuthTokens

        verifiers.append(OAuthTokens(http.oauth, _resource_of(http, http.oauth)))
    return AnyVerifier(verifiers)


def _resource_of(http: HttpOptions, oauth: OAuthOptions) -> str:
    if oauth.resource is not None:
        return oauth.resource
    if is_loopback(http.host):
        return address_of(http)
    raise ConfigurationError(
        "OAuth needs to know what tokens are issued for.",
        where="http.oauth.audience",
        hint="Set it to the address that clients use, such as https://mcp.example.com/mcp.",
    )


def _require_safe_address(http: HttpOptions) -> None:
    if is_loopback(http.host) or http.is_authenticated:
        return
    raise ConfigurationError(
        f"Serving on `{http.host or 'all addresses'}` would let anybody on the network call the tools.",
        where="http.host",
        hint="Add a bearer token (`trysquare token create NAME`), set `http.oauth.issuer`, or serve on 127.0.0.1.",
    )


def _bound_socket(http: HttpOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in http.host else socket.AF_INET
    try:
        listening = socket.create_server((http.host.strip("[]"), http.port), family=family, backlog=2048)
        # Accepted connections inherit it. asyncio sets it by itself only on sockets that it opened: without it, every
        # answer on a kept connection waits for the client's delayed acknowledgement.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        raise ConfigurationError(
            f"Cannot listen on {http.host}:{http.port}: {error.strerror or error}.",
            where="http",
            hint="Choose another port, or 0 for a free one.",
        ) from None
    return listening


def _document(document: JsonObject, headers: Headers | None = None) -> AsgiApp:
    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in ("GET", "HEAD"):
            await send_json(send, 200, document, headers or ())
        else:
            await send_json(send, 405, {"error": "method_not_allowed"}, [(b"allow", b"GET, HEAD")])

    return respond
