"""The console beside a server: how it is served, and what prints its link."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
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
    passkey: str | None = None
    """The approver whose passkey may be registered, by a link of its own."""


@asynccontextmanager
async def open_page(
    app: App, loaded: Loaded, http: HttpOptions, page: PageOptions, toolset: Toolset, options: ServeOptions
) -> AsyncGenerator[tuple[Console, Callable[[str], None]]]:
    """The console of an app that is served, and what prints its link once clients can connect."""
    require_extra("console", "starlette", "jinja2", feature="The console", code=ErrorCode.CONFIG_INVALID)
    from trysquare.console import Sessions, open_console
    from trysquare.console.passkeys import open_registration
    from trysquare.server.http.app import token_verifier
    from trysquare.server.http.auth import is_loopback

    is_local = is_loopback(http.host)
    sessions = Sessions(has_link=is_local, verifier=token_verifier(http) if http.is_authenticated else None)

    registration = None if page.passkey is None else open_registration(page.passkey, _passkeys_file(app, loaded))

    def show(address: str) -> None:
        # Browsers have no passkeys for addresses in numbers.
        base = address.removesuffix(http.path).replace("://127.0.0.1:", "://localhost:")
        if not is_local:
            say(f"Console: {styled(base + '/', 'bold')}, for tokens with the right `console`")
            return

        def show_next(path: str) -> None:
            say(f"Signed in. For another browser: {base}{path}&to={page.path}")

        sessions.on_used = show_next
        if registration is not None:
            say(f"Passkey of {registration.approver}: {styled(f'{base}{registration.link}', 'bold')}")
            registration.on_registered = lambda made: say(f"Registered a passkey of {made.approver}.")
        link = f"{base}{sessions.link}&to={page.path}"
        say(f"Console: {styled(link, 'bold')}\n  The link works once, on this machine. Ctrl-C stops.")
        if page.opens:
            _open_browser(link)

    opened = open_console(app, loaded.origins, sessions, toolset=toolset, options=options, registration=registration)
    async with opened as console:
        yield console, show


def _passkeys_file(app: App, loaded: Loaded) -> Path:
    from trysquare.providers import project_approvers

    return project_approvers(app.settings, loaded.origins).passkeys_file


def _open_browser(link: str) -> None:
    """Open a browser with windows, where somebody sits at a terminal; a text browser would take the terminal."""
    has_windows = sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in _DISPLAYS)
    if has_windows and sys.stderr.isatty():
        threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()
