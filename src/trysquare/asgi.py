"""ASGI application of tools with the project's settings: middleware, consent, authentication, lifespan and routes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from trysquare.app import App, load_own_settings, open_app
from trysquare.core.declarations import Tools
from trysquare.core.errors import ConfigurationError, TrysquareError
from trysquare.core.toolset import Toolset
from trysquare.providers import Origins
from trysquare.server import HttpApp, HttpOptions
from trysquare.server import http_app as serve_app
from trysquare.server.http.auth import AnyVerifier, OAuthOptions, StaticTokens, StoredTokens, TokenVerifier
from trysquare.server.http.exchange import Receive, Scope, Send
from trysquare.settings import Settings
from trysquare.settings.model import OAuthSettings

logger = logging.getLogger("trysquare.server")
OpenHttp: TypeAlias = Callable[[], AbstractAsyncContextManager[HttpApp]]


class ToolsApp:
    """ASGI application of tools, to be served by itself or mounted in another one.

    What the tools need is opened by the lifespan: of this application where a server runs it, or of the one around it
    with `lifespan=app.lifespan`. Without either it is opened by the first request, and closed with the event loop.
    """

    def __init__(self, open_http: OpenHttp) -> None:
        self._open_http = open_http
        self._running: _Running | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._serve_lifespan(receive, send)
        elif scope["type"] == "http":
            app = await self._started()
            await app(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncGenerator[None]:
        """The lifespan to give to the application around this one: `FastAPI(lifespan=tools_app.lifespan)`."""
        await self._started()
        try:
            yield
        finally:
            await self._stop()

    async def _started(self) -> HttpApp:
        """The application, opened in this event loop: a test client may use several."""
        running = self._running
        if running is None or running.is_over:
            running = self._running = _Running(self._open_http)
        return await running.ready()

    async def _stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            await running.stop()

    async def _serve_lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            event = await receive()
            if event["type"] == "lifespan.startup":
                try:
                    await self._started()
                except TrysquareError as error:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                await self._stop()
                await send({"type": "lifespan.shutdown.complete"})
                return


class _Running:
    """An opened application. One task opens and closes it, since cancel scopes do not cross tasks."""

    def __init__(self, open_http: OpenHttp) -> None:
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[HttpApp] = self._loop.create_future()
        self._end = asyncio.Event()
        self._owner = self._loop.create_task(self._run(open_http))

    @property
    def is_over(self) -> bool:
        return self._owner.done() or self._loop is not asyncio.get_running_loop()

    async def ready(self) -> HttpApp:
        return await asyncio.shield(self._ready)

    async def stop(self) -> None:
        self._end.set()
        await asyncio.wait((self._owner,))

    async def _run(self, open_http: OpenHttp) -> None:
        try:
            async with open_http() as app:
                self._ready.set_result(app)
                try:
                    await self._end.wait()
                finally:
                    await app.aclose()
        except TrysquareError as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)


def http_app(
    tools: Tools | Toolset,
    *,
    path: str | None = None,
    allowed_hosts: Sequence[str] = (),
    allowed_origins: Sequence[str] = (),
    public: bool = False,
    project: Path | str | None = None,
) -> ToolsApp:
    """The ASGI application that serves tools as `trysquare serve --http` does.

    The settings are those of `project`, by default the working directory: limits, prefix, tokens, OAuth. The MCP
    endpoint is at `path`, by default `/mcp`, below wherever it is mounted. `allowed_hosts` are names by which it is
    reached beside this machine's own. `public` leaves it to the application around it who may call.
    """

    @asynccontextmanager
    async def open_http() -> AsyncGenerator[HttpApp]:
        loaded = load_own_settings(Path.cwd() if project is None else Path(project))
        own = tools.toolset() if isinstance(tools, Tools) else tools
        async with open_app(loaded.settings, origins=loaded.origins, own=own) as app:
            http = http_options(app, loaded.origins)
            mounted = replace(
                http,
                host="127.0.0.1",
                path=path or http.path,
                clients="any" if public else "local",
                allowed_hosts=(*http.allowed_hosts, *allowed_hosts),
                allowed_origins=(*http.allowed_origins, *allowed_origins),
            )
            yield serve_app(app.toolset, app.serve_options(shared=True), mounted, routes=app.routes)

    return ToolsApp(open_http)


def http_options(app: App, origins: Origins) -> HttpOptions:
    """Where and for whom the settings say to serve."""
    _require_shared_state(app.settings)
    http = app.settings.http
    return HttpOptions(
        host=http.host,
        port=http.port,
        path=http.path,
        verifier=_verifier(app, origins),
        oauth=_oauth(http.oauth),
        allowed_hosts=http.allowed_hosts,
        allowed_origins=http.allowed_origins,
        stateless=http.stateless,
    )


def _require_shared_state(settings: Settings) -> None:
    """Refuse to serve where several machines would each keep their own answer to who may do what."""
    if settings.database is None or settings.http.accept_local_state:
        return
    raise ConfigurationError(
        "`database` shares runs and jobs between machines, but tokens, approvals, request keys and the pages of long "
        "answers are kept on each machine: behind a load balancer a revoked token would go on working on another "
        "machine, and the same `request_key` would run once on each.",
        where="http.accept_local_state",
        hint="If one machine serves this project, or these differences are acceptable, set it to true.",
    )


def _verifier(app: App, origins: Origins) -> TokenVerifier | None:
    """Who may call by bearer token: those of the settings, and those of `trysquare token` once there was one.

    An empty list admits nobody where there are tokens by all signs: the setting is given, the database is shared with
    other machines, or the file that held them was damaged.
    """
    from trysquare.store.tokens import Tokens

    verifiers: list[TokenVerifier] = []
    if app.settings.http.tokens:
        verifiers.append(StaticTokens(token.get_secret_value() for token in app.settings.http.tokens))
    tokens = Tokens(app.state.open()) if app.state.path.exists() else None
    # A revoked token counts: whoever revoked the last one did not mean to let everybody in.
    if tokens is not None and tokens.all():
        verifiers.append(StoredTokens(tokens.find))
    if verifiers:
        return AnyVerifier(verifiers)
    reason = _reason_for_tokens(app, origins)
    if reason is None or app.settings.http.oauth.issuer is not None:
        return None
    logger.warning(
        "%s, so every request needs a token, and none exists. Create one: trysquare token create NAME", reason
    )
    return StoredTokens(Tokens(app.state.database()).find)


def _reason_for_tokens(app: App, origins: Origins) -> str | None:
    """Why this server must not serve without a token, although none exists."""
    if "http.tokens" in origins:
        return "`http.tokens` is set and empty"
    if app.settings.database is not None:
        return "`database` is shared with other machines"
    if damaged := sorted(app.state.path.parent.glob(f"{app.state.path.name}.corrupt-*")):
        return f"the state file was damaged and set aside as {damaged[-1].name} (remove that file if it held no tokens)"
    return None


def _oauth(settings: OAuthSettings) -> OAuthOptions | None:
    if settings.issuer is None:
        return None
    return OAuthOptions(issuer=settings.issuer, resource=settings.audience, jwks=settings.jwks, scopes=settings.scopes)
