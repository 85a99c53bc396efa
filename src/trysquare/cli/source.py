"""The server that a command is about: a Python file or module, a URL, the command after `--`, or the settings."""

from __future__ import annotations

import argparse
import mimetypes
import os
import re
import sys
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trysquare.cli.command import Option, option
from trysquare.cli.terminal import TerminalCaller, block_text, print_lines, say
from trysquare.core.errors import ConfigurationError
from trysquare.settings.model import DOCUMENTS, is_document

if TYPE_CHECKING:
    from trysquare.app import App
    from trysquare.client import Client, LogMessage, Progress
    from trysquare.client.connect import Target
    from trysquare.core.content import Content
    from trysquare.settings.load import Loaded

_ABOUT_SOURCE = "server.py, server.py:tools, package.module, or openapi.json; default: the settings"
SOURCE: Option = option("source", metavar="SOURCE", nargs="?", help=_ABOUT_SOURCE)
_ABOUT_SERVER = "server.py, package.module, openapi.json, a URL, or a command after --; default: the settings"
SERVER: Option = option("source", metavar="SOURCE", nargs="?", help=_ABOUT_SERVER)
_ABOUT_HEADER = 'HTTP header for a URL, "NAME: VALUE"; can be repeated'
HEADER: Option = option("-H", "--header", metavar="HEADER", action="append", default=[], help=_ABOUT_HEADER)
OUT: Option = option("--out", metavar="DIR", type=Path, help="save images, audio and files in this directory")
_WEB = ("http://", "https://")
_MODULE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def is_source(word: str) -> bool:
    """Whether a word that could be the name of a tool is a source: a URL, a Python file, or MODULE:NAME."""
    place = word.rpartition(":")[0] or word
    return is_document(word) or place.endswith(".py") or _MODULE.fullmatch(word) is not None


def take_source(arguments: argparse.Namespace) -> str | None:
    """The source before the name of a tool or a prompt, if there is one; the name is then the word after it."""
    if not is_source(arguments.name):
        return None
    source = arguments.name
    if not arguments.arguments:
        arguments.parser.error(f"a name is missing after `{source}`; `trysquare list {source}` shows them")
    arguments.name, *arguments.arguments = arguments.arguments
    return source


def remote_target(arguments: argparse.Namespace, source: str | None) -> Target | None:
    """The server to reach by a command or a URL; None for one of this process."""
    # An address that ends like a document is one; others are those of MCP servers.
    is_url = source is not None and source.lower().startswith(_WEB) and not source.lower().endswith(DOCUMENTS)
    if arguments.header and not is_url:
        raise ConfigurationError("headers are for a server that has a URL.", where="--header")
    if not arguments.server_command and not is_url:
        return None
    from trysquare.client.connect import Target

    if arguments.server_command:
        if source is not None:
            hint = "Name one of them."
            raise ConfigurationError(f"both `{source}` and a command after `--` are given.", where="SOURCE", hint=hint)
        return Target(command=tuple(arguments.server_command))
    return Target(url=source or "", headers=dict(map(_header, arguments.header)))


def _header(text: str) -> tuple[str, str]:
    name, separator, value = text.partition(":")
    if not separator or not name.strip():
        raise ConfigurationError(f"expected NAME: VALUE; got `{text}`.", where="--header")
    return name.strip(), value.strip()


@asynccontextmanager
async def open_client(arguments: argparse.Namespace, source: str | None) -> AsyncGenerator[Client]:
    """A client of the server, at this terminal: the tools of this process are served in it."""
    target = remote_target(arguments, source)
    if target is not None:
        async with terminal_client(target) as client:
            yield client
        return
    from trysquare.client.connect import Target
    from trysquare.server import build_server

    async with open_printing_to_stderr(load_source(arguments, source)) as app:
        await app.wait_ready()
        target = Target(server=build_server(app.toolset, app.serve_options(shared=True)))
        async with terminal_client(target) as client:
            yield client


@asynccontextmanager
async def open_printing_to_stderr(loaded: Loaded) -> AsyncGenerator[App]:
    """The tools. What their lifespans print stays away from the answer, which another program may read."""
    from trysquare.app import open_app

    async with AsyncExitStack() as stack:
        with redirect_stdout(sys.stderr):
            app = await stack.enter_async_context(open_app(loaded.settings, origins=loaded.origins, prestart=False))
        try:
            yield app
        finally:
            with redirect_stdout(sys.stderr):
                await stack.aclose()


def terminal_client(target: Target) -> Client:
    """A client at this terminal: its user answers questions, and sees log messages."""
    from trysquare.client import Client

    terminal = TerminalCaller()

    async def show_log(message: LogMessage) -> None:
        await terminal.log(message.level, str(message.data))

    asks = terminal.ask if terminal.can_ask() else None
    return Client(target, elicitation_handler=asks, log_handler=show_log, name="trysquare")  # pyright: ignore[reportArgumentType]


async def show_progress(progress: Progress) -> None:
    """Print a progress report of a server."""
    await TerminalCaller().progress(progress.done, progress.total, progress.message)


def print_content(content: Iterable[Content]) -> None:
    """Print content blocks: text as it is, everything else by its kind and size."""
    print_lines(line for block in content for line in block_text(block).splitlines())


def save_content(content: Iterable[Content], folder: Path | None, stem: str) -> None:
    """Save images, audio and files in a directory, numbered, and say where."""
    if folder is None:
        return
    from trysquare.client.results import content_bytes
    from trysquare.core.content import ResourceLink, Text

    folder.mkdir(parents=True, exist_ok=True)
    blocks = [block for block in content if not isinstance(block, (Text, ResourceLink))]
    for number, block in enumerate(blocks, start=1):
        kind = block.mime_type or "text/plain"
        path = folder / f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', stem).strip('_.') or 'file'}-{number}"
        path = path.with_name(path.name + (mimetypes.guess_extension(kind) or ".bin"))
        path.write_bytes(content_bytes(block))
        say(f"Saved {path}")


def load_source(arguments: argparse.Namespace, source: str | None) -> Loaded:
    """The settings with logging started; a source is served in place of those that the settings name."""
    from trysquare.cli.options import given_options, load_and_log

    if source is not None:
        options = dict(given_options(arguments))
        arguments.extra_settings = {
            **getattr(arguments, "extra_settings", {}),
            **_own_project(source, options),
            **_only(source, options),
        }
    return load_and_log(arguments)


def _only(source: str, options: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    from trysquare.app import without_sources

    given = [str(one) for one in options["tools"].value] if "tools" in options else []
    nothing = {key: ("", one.value) for key, one in without_sources(options).items() if key not in options}
    return {**nothing, "tools": ("", [source, *given])}


def _own_project(source: str, options: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    """The directory of a file is its project, if it has settings and the working directory has none."""
    from trysquare.settings.file import find_file
    from trysquare.settings.model import split_source

    place, _, is_file = split_source(source)
    folder = Path(os.path.expanduser(place)).resolve().parent
    if not is_file or "project" in options or os.environ.get("TRYSQUARE_PROJECT") or find_file(Path.cwd()) is not None:
        return {}
    return {"project": ("", str(folder))} if folder.is_dir() and find_file(folder) is not None else {}
