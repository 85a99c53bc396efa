"""Http_app, serve_http, HttpOptions, Host/Origin check."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.server import Server

from trysquare.catalog import ProfileChoice, parse_profiles
from trysquare.core.errors import ConfigurationError
from trysquare.core.toolset import Toolset
from trysquare.server._sdk import is_supported
from trysquare.server.caller import PROFILES_IN_SCOPE
from trysquare.server.http.auth import (
    AnyVerifier,
    AuthenticationMiddleware,
    OAuthOptions,
    TokenVerifier,
    is_loopback,
    metadata_path,
    metadata_url,
    protected_resource_metadata,
    send_json,
)
from trysquare.server.http.fast_path import FastPath
from trysquare.server.http.messages import MessageValidationMiddleware
from trysquare.server.notifications import IdleSessions
from trysquare.server.options import ServeOptions
from trysquare.server.server import TrysquareServer, build_server

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_MISDIRECTED = 421
_FORBIDDEN = 403


class OriginCheckMiddleware:
    """The application behind a check of the Host and Origin headers.

    `hosts` None takes any Host, which is safe only where every request needs a token: a page that rebinds a name to
    this server has none.
    """

    def __init__(
        self, app: ASGIApp, *, hosts: Iterable[str] | None, origins: Iterable[str], open_paths: frozenset[str]
    ) -> None:
        self._app = app
        self._hosts = None if hosts is None else tuple(host.lower() for host in hosts)
        self._origins = tuple(origin.lower().rstrip("/") for origin in origins)
        self._open_paths = open_paths
        # The same few come with nearly every request.
        self._takes = lru_cache(maxsize=256)(_matches_any)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http" or scope["path"] in self._open_paths:
            return self._app(scope, receive, send)
        refusal = self._refusal(scope)
        return self._app(scope, receive, send) if refusal is None else send_json(send, *refusal)

    def _refusal(self, scope: Scope) -> tuple[int, dict[str, Any]] | None:
        host, origin = _header(scope, b"host"), _header(scope, b"origin")
        if self._hosts is not None and not self._takes(host, self._hosts):
            text = f"This server does not answer for the host `{host[:100]}`. Add it to `http.allowed_hosts`."
            return _MISDIRECTED, {"error": "invalid_host", "error_description": text}
        if origin and not self._takes(origin, self._origins):
            text = f"Pages of `{origin[:100]}` may not call this server. Add it to `http.allowed_origins`."
            return _FORBIDDEN, {"error": "invalid_origin", "error_description": text}
        return None


def _header(scope: Scope, name: bytes) -> str:
    for given, value in scope["headers"]:
        if given == name:
            return value.decode("latin-1").lower()
    return ""


def _matches_any(given: str, allowed: tuple[str, ...]) -> bool:
    return any(_matches(given, one) for one in allowed)


def _matches(given: str, allowed: str) -> bool:
    """Whether a header is what is allowed: exactly, or with any port where `:*` stands for one."""
    if given == allowed:
        return True
    if not allowed.endswith(":*"):
        return False
    name = allowed.removesuffix(":*")
    return given == name or (given.startswith(f"{name}:") and given[len(name) + 1 :].isdigit())


HEALTH_PATH = "/healthz"
_EVERYWHERE = ("0.0.0.0", "::", "")


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpOptions:
    """Where and for whom to serve over HTTP."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0 takes a free one."""
    path: str = "/mcp"
    verifier: TokenVerifier | None = None
    """Who may call by bearer token; see `serve/auth.py`."""
    oauth: OAuthOptions | None = None
    """Take access tokens of an authorization server, alone or beside `verifier`."""
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

    @property
    def is_authenticated(self) -> bool:
        """Whether nobody gets in without a token."""
        return self.verifier is not None or self.oauth is not None


def http_app(toolset: Toolset, options: ServeOptions | None = None, http: HttpOptions | None = None) -> Starlette:
    """The ASGI application that serves a toolset. It refuses to be open to a network without authentication."""
    known = http or HttpOptions()
    _require_safe_address(known)
    served = _without_rights(options or ServeOptions())
    return _application(build_server(toolset, served), served, known)


def _without_rights(options: ServeOptions) -> ServeOptions:
    """Whoever comes without a token is not the user who started the server, and has none of their rights."""
    return replace(options, principal=replace(options.principal, rights=options.principal.rights or frozenset()))


async def serve_http(
    toolset: Toolset,
    options: ServeOptions | None = None,
    http: HttpOptions | None = None,
    *,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve until shutdown. `started` gets the address once clients can connect."""
    known = http or HttpOptions()
    _require_safe_address(known)
    with _bound_socket(known) as listening:
        actual = replace(known, port=listening.getsockname()[1])
        served = _without_rights(options or ServeOptions())
        server = build_server(toolset, served)
        app = _application(server, served, actual)
        config = Config(
            app,
            http="httptools",
            log_config=None,
            access_log=False,
            lifespan="on",
            ws="none",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=max(1, round(known.grace)),
        )
        await _GracefulServer(config, server, lambda: started and started(address_of(actual))).serve([listening])


def address_of(http: HttpOptions) -> str:
    """The address that a client on this machine uses."""
    host = "127.0.0.1" if http.host in ("0.0.0.0", "") else "::1" if http.host == "::" else http.host
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"http://{shown}:{http.port}{http.path}"


class _GracefulServer(Server):
    """Ends the streams of listeners first, since they would hold the server until its patience ends."""

    def __init__(self, config: Config, server: TrysquareServer, started: Callable[[], object]) -> None:
        super().__init__(config)
        self._mcp_server = server
        self._tell_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._tell_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._mcp_server.close_streams()
        await super().shutdown(sockets)


class _ProfileChosen:
    """The application behind the choice of a profile by address: `/mcp?profile=levels`."""

    def __init__(self, app: ASGIApp, options: ServeOptions) -> None:
        self._app = app
        self._options = options

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["query_string"]:
            chosen = parse_qs(scope["query_string"].decode("latin-1")).get("profile", [])
            try:
                scope[PROFILES_IN_SCOPE] = _chosen_profiles(chosen, self._options.profiles)
            except ConfigurationError as error:
                return send_json(send, 400, {"error": "unknown_profile", "error_description": str(error)})
        return self._app(scope, receive, send)


def _chosen_profiles(choices: list[str], own: ProfileChoice) -> ProfileChoice:
    """The profiles of an address over the server's: one for all toolsets replaces them, one for a toolset adds."""
    parsed = parse_profiles(choices)
    if any("=" not in choice for choice in choices):
        return parsed
    return ProfileChoice(default=own.default, toolsets={**own.toolsets, **parsed.toolsets})


def _application(server: TrysquareServer, options: ServeOptions, http: HttpOptions) -> Starlette:
    manager = StreamableHTTPSessionManager(
        app=server,
        stateless=http.stateless,
        # Host and Origin are checked in front of everything, for all paths alike.
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=http.max_body,
        # IdleSessions counts every request, also those that do not pass through the SDK's transport.
        session_idle_timeout=None,
    )
    calls = FastPath(server, stateless=http.stateless) if is_supported() else None
    checked = MessageValidationMiddleware(StreamableHTTPASGIApp(manager), http.max_body, calls)
    endpoint: ASGIApp = _ProfileChosen(IdleSessions(checked, http.session_idle), options)
    routes = [Route(HEALTH_PATH, endpoint=_health_of(options), methods=["GET"])]
    if http.oauth is not None:
        resource = _resource_of(http, http.oauth)
        metadata = _document(protected_resource_metadata(http.oauth, resource, options.name))
        paths = dict.fromkeys((metadata_path(resource), metadata_path("")))
        routes.extend(Route(path, endpoint=metadata, methods=["GET"]) for path in paths)
    if http.is_authenticated:
        endpoint = _authenticated(endpoint, http)
    # Starlette takes an instance for an ASGI application; a function it would call with a request.
    routes.append(Route(http.path, endpoint=endpoint))
    return Starlette(routes=routes, middleware=_middleware(http), lifespan=lambda _: manager.run())


def _middleware(http: HttpOptions) -> list[Middleware]:
    local = is_loopback(http.host)
    own = LOOPBACK_NAMES if local or http.host in _EVERYWHERE else (*LOOPBACK_NAMES, http.host)
    hosts = [f"{name}:*" for name in own] + [*http.allowed_hosts]
    origins = [f"http://{name}:*" for name in own] if local else []
    anything = http.host in _EVERYWHERE and not http.allowed_hosts
    checked = Middleware(
        OriginCheckMiddleware,
        hosts=None if anything else hosts,
        origins=[*origins, *http.allowed_origins],
        open_paths=frozenset({HEALTH_PATH}),
    )
    if not http.allowed_origins:
        return [checked]
    pages = Middleware(
        CORSMiddleware,
        allow_origins=list(http.allowed_origins),
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=["Mcp-Session-Id", "WWW-Authenticate"],
    )
    return [checked, pages]


def _authenticated(app: ASGIApp, http: HttpOptions) -> AuthenticationMiddleware:
    verifiers = [] if http.verifier is None else [http.verifier]
    if http.oauth is None:
        return AuthenticationMiddleware(app, AnyVerifier(verifiers))
    # Imported here, since the libraries that check signatures take more memory than the rest of this package.
    from trysquare.server.http.jwt import OAuthTokens

    resource = _resource_of(http, http.oauth)
    verifiers.append(OAuthTokens(http.oauth, resource))
    return AuthenticationMiddleware(app, AnyVerifier(verifiers), metadata_url=metadata_url(resource))


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


def _health_of(options: ServeOptions) -> Callable[[Request], JSONResponse]:
    def health(_: Request) -> JSONResponse:
        return JSONResponse({"status": "ok", "name": options.name, "version": options.version})

    return health


def _document(document: dict[str, object]) -> Callable[[Request], JSONResponse]:
    def respond(_: Request) -> JSONResponse:
        return JSONResponse(document, headers={"Access-Control-Allow-Origin": "*", "Cache-Control": "max-age=3600"})

    return respond
