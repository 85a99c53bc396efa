"""`trysquare dev SOURCE`: serve a file over HTTP on this machine, reload it when it changes, and show its calls."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from trysquare.cli.command import Command, option
from trysquare.cli.options import add_shared_options
from trysquare.cli.page import PageOptions
from trysquare.cli.serve import Serving, free_port
from trysquare.cli.source import SOURCE, load_source
from trysquare.cli.terminal import say, styled
from trysquare.core.errors import InputRequired, ToolError
from trysquare.core.untrusted import one_line

if TYPE_CHECKING:
    from trysquare.app import App
    from trysquare.core.context import CallContext
    from trysquare.core.json import JsonObject
    from trysquare.core.result import Result
    from trysquare.core.tool import Tool
    from trysquare.core.toolset import Toolset

_FIRST_PORT = 8000
_LONGEST_ARGUMENTS = 100
_ABOUT_PORT = f"port to listen on; default: {_FIRST_PORT}, or a free one if that is taken"
_OPTIONS = (
    SOURCE,
    option("--port", metavar="PORT", type=int, help=_ABOUT_PORT),
    option("--no-console", action="store_true", help="do not serve the console, a page that tries the tools"),
    option("--no-open", action="store_true", help="do not open a browser"),
    add_shared_options,
)


def run(arguments: argparse.Namespace) -> None:
    """Serve until stopped."""
    # Each call has its line here.
    logging.getLogger("trysquare.tools").setLevel(logging.CRITICAL)
    port = free_port(_FIRST_PORT) if arguments.port is None else arguments.port
    arguments.extra_settings = {"http.host": ("--port", "127.0.0.1"), "http.port": ("--port", port)}
    # Without its extra, the tools are served all the same.
    has_page = not arguments.no_console and find_spec("starlette") is not None and find_spec("jinja2") is not None
    page = PageOptions(path="/tools", opens=not arguments.no_open) if has_page else None
    serving = Serving(over_http=True, reload=True, wrap=_shown_calls, started=_introduce, page=page)
    serving.run(lambda: load_source(arguments, arguments.source))


def _introduce(app: App, address: str) -> None:
    """Say where the server is, what it has, and what to type."""
    tools = app.plain.tools()
    say(f"Serving at {styled(address, 'bold')}, on this machine only. Changed files are reloaded; Ctrl-C stops.\n")
    for tool in tools[:20]:
        say(f"  {tool.name}({', '.join(_parameters(tool))})")
    if len(tools) > 20:
        say(f"  … and {len(tools) - 20} more")
    # Without its extra, the command line does not speak HTTP.
    place = address if find_spec("httpx2") is not None else next(iter(app.settings.tools), "server.py")
    prefix = f"{app.settings.prefix}_" if app.settings.prefix else ""
    say(f"\nTry it in another terminal:\n\n  trysquare list {place}")
    for tool in tools[:2]:
        arguments = " ".join(f"{name}=…" for name in _parameters(tool) if not name.endswith("?"))
        say(f"  trysquare call {place} {prefix}{tool.name} {arguments}".rstrip())
    say(f"\nConnect a client: claude mcp add --transport http dev {address}\n\nCalls:")


def _parameters(tool: Tool) -> Sequence[str]:
    """The names of the arguments, with a question mark for optional ones."""
    required = tool.input_schema.get("required", ())
    return [name if name in required else f"{name}?" for name in tool.input_schema.get("properties", {})]


def _shown_calls(toolset: Toolset) -> Toolset:
    from trysquare.middleware import MiddlewareToolset

    return MiddlewareToolset(toolset, _shown)


def _shown(tool: Tool) -> Tool:
    """The tool with a line on the terminal for each of its calls, without the values of secret arguments."""
    from trysquare.core.redaction import redact_text

    inner = tool.call

    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        began = time.monotonic()
        outcome = styled("crashed", "red")
        try:
            result = await inner(arguments, context)
            outcome = styled("ok", "green") if result.success else styled(str(result.code or "failed"), "red")
            return result
        except ToolError as error:
            outcome = styled(error.code.value, "red")
            raise
        except (InputRequired, asyncio.CancelledError) as error:
            outcome = styled("asks the user" if isinstance(error, InputRequired) else "cancelled", "yellow")
            raise
        finally:
            text = redact_text(json.dumps(arguments, ensure_ascii=False, default=str), arguments, tool.input_schema)
            spent = f"{(time.monotonic() - began) * 1000:.0f} ms"
            say(f"{time.strftime('%H:%M:%S')}  {tool.name} {one_line(text, _LONGEST_ARGUMENTS)}  {outcome}  {spent}")

    return tool.wrapped(call)


COMMAND = Command(run, _OPTIONS, examples=("trysquare dev server.py", "trysquare dev package.module:tools --port 9000"))
