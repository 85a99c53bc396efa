"""The console beside a server: how it is served, and what prints its link."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trysquare.cli.terminal import say, styled
from trysquare.core.errors import ErrorCode, require_extra

if TYPE_CHECKING:
    from trysquare.app import App
    from trysquare.console import Console
    from trysquare.core.toolset import Toolset
    from trysquare.server import HttpOptions, ServeOptions
    from trysquare.settings.load import Loaded

_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


@dataclass(frozen=True, kw_only=True, slots=True)
class PageOptions:
    """How to serve the console."""

    path: str = "/"
    """Where the link leads."""
    opens: bool = False
    """Whether to open a browser, where there is one."""
    alone: int | None = None
    """The port on this machine, for the console without an MCP endpoint."""


@asynccontextmanager
async def open_page(
    app: App, loaded: Loaded, http: HttpOptions, page: PageOptions, toolset: Toolset, options: ServeOptions
) -> AsyncGenerator[tuple[Console, Callable[[str], None]]]:
    """The console of an app that is served, and what prints its link once clients can connect."""
    require_extra("console", "starlette", "jinja2", feature="The console", code=ErrorCode.CONFIG_INVALID)
    from trysquare.console import Sessions, open_console
    from trysquare.server.http.app import token_verifier
    from trysquare.server.http.auth import is_loopback

    is_local = is_loopback(http.host)
    sessions = Sessions(has_link=is_local, verifier=token_verifier(http) if http.is_authenticated else None)

    def show(address: str) -> None:
        base = address.removesuffix(http.path)
        if not is_local:
            say(f"Console: {styled(base + '/', 'bold')}, for tokens with the right `console`")
            return

        def show_next(path: str) -> None:
            say(f"Signed in. For another browser: {base}{path}&to={page.path}")

        sessions.on_used = show_next
        link = f"{base}{sessions.link}&to={page.path}"
        say(f"Console: {styled(link, 'bold')}\n  The link works once, on this machine. Ctrl-C stops.")
        if page.opens:
            _open_browser(link)

    async with open_console(app, loaded.origins, sessions, toolset=toolset, options=options) as console:
        yield console, show


def _open_browser(link: str) -> None:
    """Open a browser with windows, where somebody sits at a terminal; a text browser would take the terminal."""
    has_windows = sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in _DISPLAYS)
    if has_windows and sys.stderr.isatty():
        threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()
