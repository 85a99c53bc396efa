"""`trysquare serve`: serve tools to an MCP client over stdio, or over HTTP with --http."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from trysquare.app import App, open_app
from trysquare.cli.command import Command, collect_seldom, option
from trysquare.cli.options import add_shared_options, load_and_log
from trysquare.core.errors import ConfigurationError
from trysquare.processes.pipes import redirect_stdout, require_open
from trysquare.providers import Origins
from trysquare.settings import Settings
from trysquare.settings.load import Loaded
from trysquare.settings.model import OAuthSettings

if TYPE_CHECKING:
    from trysquare.server import HttpOptions
    from trysquare.server.http.auth import OAuthOptions, TokenVerifier


_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.%]+\]|[^:\[\]]*):)?(?P<port>\d{1,5})")
_ENDING_SECONDS = 5.0
"""How long tools may take to end after they were cancelled."""
_ABOUT_HTTP = "serve over streamable HTTP at /mcp; without HOST:PORT, at the configured address"
_OPTIONS = (option("--http", metavar="HOST:PORT", nargs="?", const="", help=_ABOUT_HTTP), add_shared_options)


def run(arguments: argparse.Namespace) -> None:
    """Serve until the client goes or the process is stopped."""
    if arguments.http:
        host, port = read_address(arguments.http)
        arguments.extra_settings = {"http.host": ("--http", host), "http.port": ("--http", port)}
    if arguments.http is None:
        require_open()
    loop_factory = None if arguments.http is None else _quick_loop()
    with _bounded_ending() as begin_ending, asyncio.Runner(loop_factory=loop_factory) as runner:
        try:
            runner.run(_serve(arguments))
        finally:
            begin_ending()


@contextmanager
def _bounded_ending() -> Generator[Callable[[], None]]:
    """End the process some seconds after the yielded function was called, unless this context ends before.

    A tool may go on although it was cancelled, or hang in a thread, and the event loop waits for it for ever.
    """
    timers: list[threading.Timer] = []

    def begin() -> None:
        timer = threading.Timer(_ENDING_SECONDS, _give_up, (_exit_code(sys.exception()),))
        timer.daemon = True
        timer.start()
        timers.append(timer)

    try:
        yield begin
    finally:
        for timer in timers:
            timer.cancel()


def _exit_code(error: BaseException | None) -> int:
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        return error.code
    return 0 if error is None else 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1


def _give_up(code: int) -> None:
    logging.getLogger("trysquare.server").warning(
        "tools are still running %.0f seconds after they were cancelled; exiting without them", _ENDING_SECONDS
    )
    os._exit(code)


def _quick_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's where it is installed: a tenth less CPU a call. Not over pipes, where loading it costs a start more."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def read_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`, `:PORT` or `PORT`; an IPv6 host stands in brackets."""
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ConfigurationError(f"expected HOST:PORT, such as 127.0.0.1:8000; got `{text}`.", where="--http")
    host = (match["host"] or "").strip("[]")
    return host or "127.0.0.1", int(match["port"])


async def _serve(arguments: argparse.Namespace) -> None:
    loaded = load_and_log(arguments)
    await (serve_stdio if arguments.http is None else serve_http)(loaded)


COMMAND = Command(
    run,
    _OPTIONS,
    examples=("trysquare serve --tools my_module:tools", "trysquare serve --gateway mcp.json --http 127.0.0.1:8000"),
)


async def serve_stdio(loaded: Loaded) -> None:
    """Serve the client at the other end of standard input and output, until it goes."""
    # Diverted before the user's modules are imported: whatever they print must not reach the client.
    with redirect_stdout() as (read_from, write_to):
        async with _opened(loaded) as app:
            from trysquare.server.stdio import serve_descriptors

            collect_seldom(is_loaded=True)
            await serve_descriptors(app.toolset, app.serve_options(), read_from=read_from, write_to=write_to)


async def serve_http(loaded: Loaded) -> None:
    """Serve over HTTP until the process is stopped."""
    _require_shared_state(loaded.settings)
    async with _opened(loaded) as app:
        from trysquare.server import serve_http as serve_over_http

        collect_seldom(is_loaded=True)
        http = _http_options(app, _verifier(app, loaded.origins))
        await serve_over_http(app.toolset, app.serve_options(shared=True), http, started=_print_address)


@asynccontextmanager
async def _opened(loaded: Loaded) -> AsyncGenerator[App]:
    """The tools to serve, with traces of their calls. What serves them loads while the processes of a gateway start."""
    async with open_app(loaded.settings, origins=loaded.origins) as app:
        from trysquare.middleware.tracing import tracing

        if not app.plain.tools():
            logging.getLogger("trysquare.server").warning("No tools to serve; name some with --tools MODULE:NAME.")
        with tracing():
            yield app


def _http_options(app: App, verifier: TokenVerifier | None) -> HttpOptions:
    from trysquare.server import HttpOptions

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
    from trysquare.server.http.auth import AnyVerifier, StaticTokens, StoredTokens
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
    logging.getLogger("trysquare.server").warning(
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
    from trysquare.server.http.auth import OAuthOptions

    if settings.issuer is None:
        return None
    return OAuthOptions(issuer=settings.issuer, resource=settings.audience, jwks=settings.jwks, scopes=settings.scopes)


def _print_address(address: str) -> None:
    print(f"Serving at {address}", file=sys.stderr, flush=True)
