"""`trysquare serve`: serve tools to an MCP client over stdio, or over streamable HTTP."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trysquare.app import App, open_app
from trysquare.cli.logs import start_logging
from trysquare.cli.options import add_shared_options, load
from trysquare.cli.telemetry import tracing
from trysquare.core.errors import ConfigurationError
from trysquare.core.threads import run_in_thread
from trysquare.serve.descriptors import diverted_output, require_open
from trysquare.serve.early import EarlyStart
from trysquare.serve.light_import import light_imports, load_server
from trysquare.settings.load import Loaded
from trysquare.settings.model import OAuthSettings

if TYPE_CHECKING:
    from trysquare.serve.auth import TokenVerifier
    from trysquare.serve.http import HttpOptions
    from trysquare.serve.oauth import OAuthOptions

_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.%]+\]|[^:\[\]]*):)?(?P<port>\d{1,5})")
_COLLECTED_AFTER = (20_000, 20, 50)
"""New objects before a look for garbage: a call leaves hardly any that needs one, and looking was a twentieth of it."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `serve`."""
    parser.add_argument(
        "--http", metavar="HOST:PORT", nargs="?", const="", default=None,
        help="serve over streamable HTTP at /mcp; without HOST:PORT, at the configured address",
    )  # fmt: skip
    add_shared_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serve until the client goes or the process is stopped."""
    if arguments.http:
        host, port = read_address(arguments.http)
        arguments.extra_settings = {"http.host": ("--http", host), "http.port": ("--http", port)}
    if arguments.http is None:
        require_open()
    with _quick_start(), asyncio.Runner(loop_factory=None if arguments.http is None else _quick_loop()) as runner:
        runner.run(_serve(arguments))
    return 0


def _quick_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's where it is installed: a tenth less CPU a call. Not over pipes, where loading it costs a start more."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


@contextmanager
def _quick_start() -> Generator[None]:
    """Look for no garbage until the server is up: what is loaded stays, and looking it over is a sixth of a start."""
    usual = gc.get_threshold()
    gc.disable()
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()
        gc.enable()


def read_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`, `:PORT` or `PORT`; an IPv6 host stands in brackets."""
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ConfigurationError(f"expected HOST:PORT, such as 127.0.0.1:8000; got `{text}`.", where="--http")
    host = (match["host"] or "").strip("[]")
    return host or "127.0.0.1", int(match["port"])


async def _serve(arguments: argparse.Namespace) -> None:
    loaded = load(arguments)
    start_logging(loaded)
    with tracing():
        await (_serve_stdio(loaded, arguments.early) if arguments.http is None else _serve_http(loaded))


async def _serve_stdio(loaded: Loaded, early: EarlyStart | None) -> None:
    # Diverted before the user's modules are imported: whatever they print must not reach the client.
    with diverted_output() as (read_from, write_to):
        if loaded.settings.tools:
            # A module of the user's must not meet packages that are half imported.
            load_server()
        async with open_app(loaded.settings, origins=loaded.origins) as app:
            if early is not None:
                await app.expect(early.called)
            # Beside the loop, since what a call was expected to need may get ready meanwhile.
            await run_in_thread(load_server)
            from trysquare.serve.stdio import serve_descriptors

            _ready(app)
            recorder = None if early is None else early.take_over(loaded.files, keeps=app.is_fixed)
            await serve_descriptors(
                app.toolset, app.serve_options(), read_from=read_from, write_to=write_to, early=recorder
            )


async def _serve_http(loaded: Loaded) -> None:
    with light_imports():
        from trysquare.serve.http import serve_http

    async with open_app(loaded.settings, origins=loaded.origins) as app:
        _ready(app)
        await serve_http(app.toolset, app.serve_options(shared=True), _http_options(app), started=_tell)


def _ready(app: App) -> None:
    """Look for garbage again, but not among what is loaded; and say so if there is nothing to serve."""
    gc.freeze()
    gc.set_threshold(*_COLLECTED_AFTER)
    gc.enable()
    if not app.plain.tools():
        logging.getLogger("trysquare.serve").warning("There are no tools to serve; name some with --tools MODULE:NAME.")


def _http_options(app: App) -> HttpOptions:
    from trysquare.serve.http import HttpOptions

    http = app.settings.http
    return HttpOptions(
        host=http.host,
        port=http.port,
        path=http.path,
        verifier=_verifier(app),
        oauth=_oauth(http.oauth),
        allowed_hosts=http.allowed_hosts,
        allowed_origins=http.allowed_origins,
        stateless=http.stateless,
    )


def _verifier(app: App) -> TokenVerifier | None:
    """Who may call by bearer token: those of the settings, and those of `trysquare token` once there was one."""
    from trysquare.serve.auth import AnyOf, FixedTokens, StoredTokens
    from trysquare.store.tokens import Tokens

    verifiers: list[TokenVerifier] = []
    if app.settings.http.tokens:
        verifiers.append(FixedTokens(token.get_secret_value() for token in app.settings.http.tokens))
    # A revoked token counts: whoever took the last one back did not mean to open the door.
    if app.state.path.exists() and (tokens := Tokens(app.state.database())).all():
        verifiers.append(StoredTokens(tokens.find))
    return AnyOf(verifiers) if verifiers else None


def _oauth(settings: OAuthSettings) -> OAuthOptions | None:
    from trysquare.serve.oauth import OAuthOptions

    if settings.issuer is None:
        return None
    return OAuthOptions(issuer=settings.issuer, resource=settings.audience, jwks=settings.jwks, scopes=settings.scopes)


def _tell(address: str) -> None:
    print(f"Serving at {address}", file=sys.stderr, flush=True)
