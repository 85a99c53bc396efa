"""`trysquare call NAME`: call one tool and print its answer."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from typing import TYPE_CHECKING, Any

from trysquare.cli.command import Command, option
from trysquare.cli.options import add_shared_options, argument_names, tool_names
from trysquare.cli.source import (
    HEADER,
    OUT,
    load_source,
    open_printing_to_stderr,
    print_content,
    remote_target,
    save_content,
    show_progress,
    take_source,
    terminal_client,
)
from trysquare.cli.terminal import TerminalCaller, as_json, block_text, print_json, print_result
from trysquare.core.call import call_tool, direct_calls
from trysquare.core.content import Text
from trysquare.core.context import CallContext
from trysquare.core.errors import ConfigurationError
from trysquare.core.json import JsonObject, as_object

if TYPE_CHECKING:
    from trysquare.client import ToolResult
    from trysquare.client.connect import Target

_ABOUT_ARGUMENTS = "the arguments as one JSON object, as key=value pairs, or - to read JSON from stdin"
_ABOUT_NAME = "the tool's name, after a SOURCE if it is not one of the settings: server.py, a URL"
_OPTIONS = (
    option("name", metavar="NAME", help=_ABOUT_NAME, complete=tool_names),
    option("arguments", metavar="ARGUMENT", nargs="*", help=_ABOUT_ARGUMENTS, complete=argument_names),
    option("--json", action="store_true", help="print the whole answer as JSON"),
    OUT,
    HEADER,
    add_shared_options,
)


async def call(arguments: argparse.Namespace) -> int:
    """Call the tool; 0 if it succeeded, 1 if it failed."""
    source = take_source(arguments)
    target = remote_target(arguments, source)
    if target is not None:
        return await _call_remote(arguments, target)
    loaded = load_source(arguments, source)
    async with open_printing_to_stderr(loaded) as app:
        tool = app.toolset.find(arguments.name)
        given = read_arguments({} if tool is None else tool.input_schema, arguments.arguments)
        context = CallContext(
            caller=TerminalCaller(),
            # Shared, so that the next page of a long answer can be asked for in the next command.
            handles=app.handles(shared=True),
            client="trysquare call",
            # A handle would end with this command.
            meta={"trysquare/whole": True},
            direct=direct_calls(app.direct),
        ).for_call(timeout=loaded.settings.limits.timeout)
        with contextlib.redirect_stdout(sys.stderr):
            result = await call_tool(app.toolset, arguments.name, given, context)
    print_result(result, json=arguments.json)
    if arguments.out is not None:
        from trysquare.client.results import tool_result
        from trysquare.server.convert import result_to_wire

        save_content(tool_result(result_to_wire(result)).content, arguments.out, arguments.name)
    return 0 if result.success else 1


async def _call_remote(arguments: argparse.Namespace, target: Target) -> int:
    """Call a tool of another program, which knows nothing of this project."""
    async with terminal_client(target) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        schema = tools[arguments.name].input_schema if arguments.name in tools else {}
        given = read_arguments(schema, arguments.arguments)
        result = await client.call_tool(arguments.name, given, progress_handler=show_progress, raise_on_error=False)
    if arguments.json:
        print_json(_envelope(result))
    elif result.content:
        print_content(result.content)
    else:
        print_content([Text(text=as_json(result.data) if result.data is not None else "Done.")])
    save_content(result.content, arguments.out, arguments.name)
    return 1 if result.is_error else 0


def _envelope(result: ToolResult) -> JsonObject:
    """The result as one JSON object: its value, or else its text, and what the server says besides."""
    about = {"code": result.code, "instruction": result.instruction, "next": result.next, "warnings": result.warnings}
    value = result.text if result.data is None else result.data
    files = [block_text(block) for block in result.content if not isinstance(block, Text)]
    known = {**about, "content": files}
    return {"success": not result.is_error, "value": value} | {name: part for name, part in known.items() if part}


def read_arguments(schema: JsonObject, words: list[str]) -> Any:
    """Arguments of a call, from one JSON text, from stdin, or from `key=value` pairs typed by the tool's schema."""
    if words == ["-"]:
        return _json(_read_stdin(), "stdin")
    if len(words) == 1 and words[0].lstrip().startswith(("{", "[")):
        return _json(words[0], "the arguments")
    return dict(_pair(schema, word) for word in words)


def _read_stdin() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"not UTF-8 (byte {error.start}).", where="stdin") from None


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text or "{}")
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ConfigurationError(
            f"invalid JSON at {place}: {error.msg}.", where=where, hint='Write one object: \'{"name": "Ada"}\'.'
        ) from None
    except RecursionError:
        raise ConfigurationError("invalid JSON: nested too deeply.", where=where) from None
    except ValueError:
        # Python refuses to read an integer of more than 4300 digits.
        raise ConfigurationError("a number in it is too long.", where=where) from None


def _pair(schema: JsonObject, word: str) -> tuple[str, Any]:
    key, separator, text = word.partition("=")
    if not separator or not key:
        raise ConfigurationError(
            f"`{word}` is neither JSON nor key=value.",
            where="the arguments",
            hint="Write name=Ada, or one JSON object.",
        )
    return key, _value(as_object(as_object(schema.get("properties")).get(key)), text)


def _value(schema: JsonObject, text: str) -> Any:
    """The text itself for a string argument, otherwise its value as JSON: `count=3` is a number."""
    if schema.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


COMMAND = Command(
    call,
    _OPTIONS,
    examples=(
        "trysquare call server.py greet name=Ada",
        "trysquare call get_current_time timezone=UTC -- uvx mcp-server-time",
    ),
    option_hint="Write an argument of the tool as {name}=VALUE.",
    takes_command=True,
)
