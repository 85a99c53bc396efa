"""`trysquare serve`: serve tools to an MCP client over stdio, or over HTTP with --http."""

from __future__ import annotations

import argparse
import asyncio
import inspect
import logging
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from trysquare.app import App, open_app
from trysquare.cli.command import Command, collect_seldom, option
from trysquare.cli.ending import Ending, exit_code
from trysquare.cli.options import add_shared_options
from trysquare.cli.page import PageOptions
from trysquare.cli.source import SOURCE, load_source
from trysquare.cli.terminal import count, safe_streams, say
from trysquare.core.errors import ConfigurationError, TrysquareError
from trysquare.processes.pipes import redirect_stdout, require_open

if TYPE_CHECKING:
    from trysquare.core.declarations import Tools
    from trysquare.core.toolset import Toolset
    from trysquare.server import HttpOptions
    from trysquare.settings.load import Loaded

logger = logging.getLogger("trysquare.server")

_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.%]+\]|[^:\[\]]*):)?(?P<port>\d{1,5})")
_ABOUT_HTTP = "serve over streamable HTTP at /mcp; without HOST:PORT, at the configured address"
_ABOUT_CONSOLE = "with --http: serve the console too, a page at / where a person decides, watches and tries"
RELOAD = option("--reload", action="store_true", help="import the tools again when one of their files changes")
_OPTIONS = (
    SOURCE,
    option("--http", metavar="HOST:PORT", nargs="?", const="", help=_ABOUT_HTTP),
    option("--console", action="store_true", help=_ABOUT_CONSOLE),
    RELOAD,
    add_shared_options,
)


def run(arguments: argparse.Namespace) -> None:
    """Serve until the client goes or the process is stopped."""
    if arguments.http:
        arguments.extra_settings = _address_settings(arguments.http)
    if arguments.console and arguments.http is None:
        raise ConfigurationError(
            "the console needs a server over HTTP.",
            where="--console",
            hint="Add --http, or run `trysquare console`.",
        )
    page = PageOptions() if arguments.console else None
    serve = Serving(over_http=arguments.http is not None, reload=arguments.reload, page=page)
    serve.run(lambda: load_source(arguments, arguments.source))


def serve_tools(tools: Tools, *, http: str | bool = False, reload: bool = False) -> None:
    """Serve tools from their own file, with the settings of the project: what `Tools.run` does.

    A module that is imported only declares: whoever imports it, such as `trysquare serve FILE`, decides what is served.
    """
    if (importing := _importing_module()) is not None:
        logger.warning(
            '%s calls run() while it is imported, which does nothing; put it below `if __name__ == "__main__":`',
            importing,
        )
        return
    if reload:
        _serve_main_module(tools, http)
    with safe_streams():
        try:
            Serving(over_http=http is not False, tools=tools).run(lambda: _load_beside(http))
        except TrysquareError as error:
            raise SystemExit(f"trysquare: {error}") from None
        except KeyboardInterrupt:
            raise SystemExit(128 + signal.SIGINT) from None


def _serve_main_module(tools: Tools, http: str | bool) -> NoReturn:
    """Become the command that serves this file with --reload: the main module itself cannot be imported again."""
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    name = next((name for name, value in vars(main).items() if value is tools), None)
    if file is None or name is None:
        raise SystemExit("trysquare: run(reload=True) needs a file with the tools as a variable of the module.")
    address = ["--http", *([http] if isinstance(http, str) else [])] if http is not False else []
    words = ["serve", f"{os.path.abspath(file)}:{name}", "--reload", *address]
    os.execv(sys.executable, [sys.executable, "-m", "trysquare", *words])


def _importing_module() -> str | None:
    """The file of the module whose import has led here; None in a program's main module and in functions it calls."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return None if frame is None or frame.f_globals.get("__name__") == "__main__" else frame.f_code.co_filename


def _load_beside(http: str | bool) -> Loaded:
    """The settings of the working directory, or else of the main module's, without its sources of tools."""
    from trysquare.app import load_own_settings
    from trysquare.cli.terminal import start_logging
    from trysquare.settings import Origin
    from trysquare.settings.file import find_file
    from trysquare.settings.keys import Given

    main = getattr(sys.modules["__main__"], "__file__", None)
    folder = Path.cwd()
    if main is not None and find_file(folder) is None and find_file(Path(main).resolve().parent) is not None:
        folder = Path(main).resolve().parent
    address = _address_settings(http) if isinstance(http, str) else {}
    given = {
        key: Given(value=value, origin=Origin(source="option", location=flag)) for key, (flag, value) in address.items()
    }
    loaded = load_own_settings(folder, given)
    start_logging(loaded)
    return loaded


def _address_settings(address: str) -> dict[str, tuple[str, Any]]:
    host, port = read_address(address)
    return {"http.host": ("--http", host), "http.port": ("--http", port)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Serving:
    """How to serve: over which transport, which tools besides those of the settings, and whether they are reloaded."""

    over_http: bool
    reload: bool = False
    tools: Tools | None = None
    wrap: Callable[[Toolset], Toolset] | None = None
    """Over HTTP, a last middleware around all tools."""
    started: Callable[[App, str], None] | None = None
    """Over HTTP, what says where the server is."""
    page: PageOptions | None = None
    """Over HTTP, the console."""

    def run(self, load: Callable[[], Loaded]) -> None:
        """Serve until stopped."""
        if not self.over_http:
            require_open()
        ending = Ending()
        with ending.handled(), asyncio.Runner(loop_factory=_quick_loop()) as runner:
            try:
                runner.run(self._serve(load, ending))
            finally:
                ending.begin(exit_code(sys.exception()))

    async def _serve(self, load: Callable[[], Loaded], ending: Ending) -> None:
        loaded = load()
        own = None if self.tools is None else self.tools.toolset()
        if self.over_http:
            await serve_http(loaded, own, ending, how=self)
        else:
            await serve_stdio(loaded, own, ending, reload=self.reload)


def _quick_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's where it is installed: it takes a start 3 ms of CPU more, and a call over pipes a sixth less."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def free_port(first: int) -> int:
    """A port to listen on: this one, or 0 for any free one where it is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", first))
        except OSError:
            return 0
    return first


def read_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`, `:PORT` or `PORT`; an IPv6 host stands in brackets."""
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ConfigurationError(f"expected HOST:PORT, such as 127.0.0.1:8000; got `{text}`.", where="--http")
    host = (match["host"] or "").strip("[]")
    return host or "127.0.0.1", int(match["port"])


COMMAND = Command(
    run,
    _OPTIONS,
    examples=("trysquare serve server.py", "trysquare serve --gateway mcp.json --http 127.0.0.1:8000"),
)


async def serve_stdio(loaded: Loaded, own: Toolset | None, ending: Ending, *, reload: bool) -> None:
    """Serve the client at the other end of standard input and output, until it goes."""
    # Diverted before the user's modules are imported: whatever they print must not reach the client.
    with redirect_stdout() as (read_from, write_to):
        async with open_served(loaded, own, ending, reload=reload) as app:
            from trysquare.server.stdio import serve_descriptors

            if os.isatty(read_from):
                _print_waiting(app)
            collect_seldom(is_loaded=True)
            await serve_descriptors(app.toolset, app.serve_options(), read_from=read_from, write_to=write_to)


async def serve_http(loaded: Loaded, own: Toolset | None, ending: Ending, *, how: Serving) -> None:
    """Serve over HTTP until the process is stopped."""
    async with AsyncExitStack() as stack:
        is_alone = how.page is not None and how.page.alone is not None
        served = open_served(loaded, own, ending, reload=how.reload, prestart=not is_alone)
        app = await stack.enter_async_context(served)
        from trysquare.asgi import http_options
        from trysquare.server import HttpOptions
        from trysquare.server import serve_http as serve_over_http

        collect_seldom(is_loaded=True)
        if how.page is not None and how.page.alone is not None:
            http = HttpOptions(port=how.page.alone, has_endpoint=False)
        else:
            http = http_options(app, loaded.origins)
        options = app.serve_options(shared=True)
        toolset = app.toolset if how.wrap is None else how.wrap(app.toolset)
        shows: list[Callable[[str], None]] = []
        if not is_alone:
            shows.append(partial(_print_start, app, http) if how.started is None else partial(how.started, app))
        pages = None
        if how.page is not None:
            from trysquare.cli.page import open_page

            pages, show = await stack.enter_async_context(open_page(app, loaded, http, how.page, toolset, options))
            shows.append(show)

        def started(address: str) -> None:
            for show in shows:
                show(address)

        await serve_over_http(toolset, options, http, routes=app.routes, pages=pages, started=started)


@asynccontextmanager
async def open_served(
    loaded: Loaded, own: Toolset | None, ending: Ending, *, reload: bool, prestart: bool = True
) -> AsyncGenerator[App]:
    """The tools to serve, with traces of their calls. What serves them loads while the processes of a gateway start."""
    settings = loaded.settings
    async with AsyncExitStack() as stack:
        with ending.cancels():
            if reload and own is None and settings.tools:
                from trysquare.providers import setting_location
                from trysquare.reload import open_reloading

                logging.getLogger("trysquare.reload").setLevel(logging.INFO)
                where = setting_location("tools", loaded.origins)
                url = settings.openapi_url
                opening = open_reloading(settings.tools, project=settings.project, where=where, openapi_url=url)
                own, settings = await stack.enter_async_context(opening), settings.model_copy(update={"tools": ()})
            app = await stack.enter_async_context(
                open_app(settings, origins=loaded.origins, own=own, prestart=prestart)
            )
            from trysquare.middleware.tracing import tracing

            if not app.plain.tools():
                logger.warning("No tools to serve; name some: trysquare serve server.py")
            with tracing():
                yield app


def _print_waiting(app: App) -> None:
    """Say at a terminal, where no client is, what the server waits for."""
    say(
        f"Waiting for an MCP client on stdin, with {_served(app)} (Ctrl-C stops). "
        "To call one here: trysquare call NAME; to add the server to a client: trysquare install CLIENT"
    )


def _print_start(app: App, http: HttpOptions, address: str) -> None:
    """Say where the server is, what it serves, who may call, and from where."""
    from trysquare.server.http.auth import is_loopback

    who = "OAuth tokens" if http.oauth is not None else "bearer tokens" if http.verifier is not None else ""
    access = f"{who} required" if who else "no authentication"
    everywhere = http.host in ("0.0.0.0", "::", "")
    reach = "all interfaces" if everywhere else "this machine only" if is_loopback(http.host) else f"host {http.host}"
    say(f"Serving at {address} ({_served(app)}, {access}, {reach})")


def _served(app: App) -> str:
    from trysquare.catalog.toolset import listed

    own = [tool for tool in listed(app.toolset, app.profiles) if not tool.reads_pages]
    return count(len(own), "tool")
