"""What `trysquare serve` does once it knows how: opens the app, and serves it over stdio or streamable HTTP."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from trysquare.app import App, Origins, open_app
from trysquare.core.errors import ConfigurationError
from trysquare.core.threads import run_in_thread
from trysquare.serve.ahead import Ahead
from trysquare.serve.descriptors import diverted_output
from trysquare.serve.early import EarlyStart
from trysquare.serve.light_import import light_imports, load_server
from trysquare.settings.load import Loaded
from trysquare.settings.model import OAuthSettings, Settings

if TYPE_CHECKING:
    from trysquare.gateway.door import OpenServers
    from trysquare.serve.auth import TokenVerifier
    from trysquare.serve.early_calls import EarlyCalls
    from trysquare.serve.http import HttpOptions
    from trysquare.serve.oauth import OAuthOptions
    from trysquare.serve.options import ServeOptions

_COLLECTED_AFTER = (20_000, 20, 50)
"""New objects before a look for garbage: a call leaves hardly any that needs one, and looking was a twentieth of it."""


async def serve_stdio(loaded: Loaded, early: EarlyStart | None, servers: OpenServers | None) -> None:
    """Serve the client at the other end of standard input and output, until it goes."""
    # Diverted before the user's modules are imported: whatever they print must not reach the client.
    with diverted_output() as (read_from, write_to):
        if loaded.settings.tools:
            # A module of the user's must not meet packages that are half imported.
            load_server()
        ahead = None if early is None else Ahead(called=early.called, servers=servers)
        async with AsyncExitStack() as stack:
            app = await stack.enter_async_context(open_app(loaded.settings, origins=loaded.origins, ahead=ahead))
            options = app.serve_options()
            begun = None if early is None else await stack.enter_async_context(_begun(early, app, options))
            # Beside the loop, since what a call was expected to need may get ready meanwhile.
            await run_in_thread(load_server)
            from trysquare.serve.stdio import serve_descriptors

            _ready(app)
            done = () if begun is None else begun.done
            recorder = None if early is None else early.take_over(loaded.files, keeps=app.is_fixed, done=done)
            await serve_descriptors(
                app.toolset, options, read_from=read_from, write_to=write_to, early=recorder, begun=begun
            )


@asynccontextmanager
async def _begun(early: EarlyStart, app: App, options: ServeOptions) -> AsyncGenerator[EarlyCalls | None]:
    """The calls of a client that was greeted before it could be served; None where it was not."""
    if not early.front.client:
        yield None
        return
    from trysquare.serve.early_calls import early_calls

    async with early_calls(early.front, app.toolset, options) as calls:
        yield calls


async def serve_http(loaded: Loaded) -> None:
    """Serve over HTTP until the process is stopped."""
    with light_imports():
        from trysquare.serve.http import serve_http as serve_over_http

    _require_shared_state(loaded.settings)
    async with open_app(loaded.settings, origins=loaded.origins) as app:
        _ready(app)
        http = _http_options(app, _verifier(app, loaded.origins))
        await serve_over_http(app.toolset, app.serve_options(shared=True), http, started=_tell)


def _ready(app: App) -> None:
    """Look for garbage again, but not among what is loaded; and say so if there is nothing to serve."""
    gc.freeze()
    gc.set_threshold(*_COLLECTED_AFTER)
    gc.enable()
    if not app.plain.tools():
        logging.getLogger("trysquare.serve").warning("There are no tools to serve; name some with --tools MODULE:NAME.")


def _http_options(app: App, verifier: TokenVerifier | None) -> HttpOptions:
    from trysquare.serve.http import HttpOptions

    http = app.settings.http
    return HttpOptions(
        host=http.host,
        port=http.port,
        path=http.path,
        verifier=verifier,
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
    from trysquare.serve.auth import AnyOf, FixedTokens, StoredTokens
    from trysquare.store.tokens import Tokens

    verifiers: list[TokenVerifier] = []
    if app.settings.http.tokens:
        verifiers.append(FixedTokens(token.get_secret_value() for token in app.settings.http.tokens))
    tokens = Tokens(app.state.database()) if app.state.path.exists() else None
    # A revoked token counts: whoever revoked the last one did not mean to let everybody in.
    if tokens is not None and tokens.all():
        verifiers.append(StoredTokens(tokens.find))
    if verifiers:
        return AnyOf(verifiers)
    reason = _reason_for_tokens(app, origins)
    if reason is None or app.settings.http.oauth.issuer is not None:
        return None
    logging.getLogger("trysquare.serve").warning(
        "%s, so every request needs a token, and there is none. To make one, run: trysquare token create NAME", reason
    )
    return StoredTokens(Tokens(app.state.needed_database()).find)


def _reason_for_tokens(app: App, origins: Origins) -> str | None:
    """Why this server must not serve without a token, although it knows of none."""
    if "http.tokens" in origins:
        return "`http.tokens` is set and empty"
    if app.settings.database is not None:
        return "`database` is shared with other machines"
    if damaged := sorted(app.state.path.parent.glob(f"{app.state.path.name}.corrupt-*")):
        return f"the state file was damaged and set aside as {damaged[-1].name} (remove that file if it held no tokens)"
    return None


def _oauth(settings: OAuthSettings) -> OAuthOptions | None:
    from trysquare.serve.oauth import OAuthOptions

    if settings.issuer is None:
        return None
    return OAuthOptions(issuer=settings.issuer, resource=settings.audience, jwks=settings.jwks, scopes=settings.scopes)


def _tell(address: str) -> None:
    print(f"Serving at {address}", file=sys.stderr, flush=True)
