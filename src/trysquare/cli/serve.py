"""`trysquare serve`: serve tools to an MCP client over stdio, or over streamable HTTP."""

from __future__ import annotations

import argparse
import asyncio
import gc
import re
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from trysquare.cli.kept_logs import kept_records
from trysquare.cli.options import add_shared_options, load
from trysquare.core.errors import ConfigurationError
from trysquare.serve.descriptors import require_open
from trysquare.serve.early import EarlyStart

if TYPE_CHECKING:
    from trysquare.gateway.door import OpenServers

_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.%]+\]|[^:\[\]]*):)?(?P<port>\d{1,5})")


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
    async with _vanguard(arguments) as servers:
        # Only now: with the settings comes what takes most of a start.
        from trysquare.cli.logs import start_logging
        from trysquare.cli.serving import serve_http, serve_stdio
        from trysquare.cli.telemetry import tracing

        loaded = load(arguments)
        start_logging(loaded)
        with tracing():
            if arguments.http is None:
                await serve_stdio(loaded, arguments.early, servers)
            else:
                await serve_http(loaded)


@asynccontextmanager
async def _vanguard(arguments: argparse.Namespace) -> AsyncGenerator[OpenServers | None]:
    """Start the servers that the client's first calls need before anything else, where it has called already."""
    early: EarlyStart | None = arguments.early
    called = () if early is None else early.called()
    paths = _gateway_files(arguments)
    # Where the extra is missing, the gateway's door says so.
    if not called or not paths or find_spec("msgspec") is None:
        yield None
        return
    from trysquare.gateway.vanguard import open_vanguard

    with kept_records():
        async with open_vanguard(paths, called) as servers:
            yield servers


def _gateway_files(arguments: argparse.Namespace) -> list[Path]:
    """The files of servers that the command line names, as the settings will read them."""
    return [Path.cwd() / Path(path).expanduser() for path in getattr(arguments, "gateway", ())]
