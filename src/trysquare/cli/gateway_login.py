"""`trysquare gateway login`: sign in to a remote server; the login is kept in the keyring."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import webbrowser
from collections.abc import Callable

from trysquare.cli.gateway_books import config_files
from trysquare.core.errors import ConfigurationError
from trysquare.gateway.config import read_config
from trysquare.gateway.configuration.secrets import SystemSecrets
from trysquare.gateway.server import BrokenServer, ServerConfig, ServerEntry


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `login`."""
    parser.add_argument("name", metavar="NAME", help="the server, as the file names it")
    parser.add_argument("--no-browser", action="store_true", help="print the address and open nothing")
    parser.add_argument("--remove", action="store_true", help="forget the login")


def run(arguments: argparse.Namespace) -> int:
    """Sign in, or forget a login."""
    server = _remote(read_config(*config_files(arguments)).find(arguments.name))
    if arguments.remove:
        return _remove(server)
    # The SDK logs a failed login with its traceback; what a person has to know of it, our own error says.
    logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL)
    return asyncio.run(_sign_in(server, _shown(server, opens=not arguments.no_browser and _has_screen())))


def _remote(entry: ServerEntry) -> ServerConfig:
    if isinstance(entry, BrokenServer):
        raise ConfigurationError(entry.reason, where=str(entry.place))
    if entry.transport == "stdio":
        raise ConfigurationError(
            f"The server `{entry.name}` is started on this machine and knows no login.", where=str(entry.place)
        )
    return entry


def _remove(server: ServerConfig) -> int:
    from trysquare.gateway.upstream.oauth import login_name

    gone = SystemSecrets().remove(login_name(server))
    print(f"Signed out of `{server.name}`." if gone else f"There was no login at `{server.name}`.")
    return 0


async def _sign_in(server: ServerConfig, show: Callable[[str], None]) -> int:
    from trysquare.gateway.upstream.signing_in import sign_in

    signed_in = await sign_in(server, SystemSecrets(), show=show)
    told = "Signed in to" if signed_in else "Nobody needs to sign in to"
    print(f"{told} `{server.name}` ({server.shown}).")
    return 0


def _shown(server: ServerConfig, *, opens: bool) -> Callable[[str], None]:
    def show(address: str) -> None:
        print(f"To sign in to `{server.name}`, open this address in a browser on this machine:\n\n  {address}\n")
        sys.stdout.flush()
        if opens:
            webbrowser.open(address)

    return show


def _has_screen() -> bool:
    """Whether a browser would open in a window; one of text would take the terminal away."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
