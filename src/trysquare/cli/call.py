"""`trysquare call NAME`: call one tool and print its answer."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from typing import Any, cast

from trysquare.app import open_app
from trysquare.cli.command import Command, option
from trysquare.cli.options import add_shared_options, argument_names, load_and_log, tool_names
from trysquare.cli.terminal import TerminalCaller, print_result
from trysquare.core.call import call_tool, direct_calls
from trysquare.core.context import CallContext
from trysquare.core.errors import ConfigurationError
from trysquare.core.json import JsonObject
from trysquare.core.toolset import Toolset

_ABOUT_ARGUMENTS = "the arguments as one JSON object, as key=value pairs, or - to read JSON from stdin"
_OPTIONS = (
    option("name", metavar="NAME", help="the tool's name, as `trysquare list` shows it", complete=tool_names),
    option("arguments", metavar="ARGUMENT", nargs="*", help=_ABOUT_ARGUMENTS, complete=argument_names),
    option("--json", action="store_true", help="print the whole answer as JSON"),
    add_shared_options,
)


async def call(arguments: argparse.Namespace) -> int:
    """Call the tool; 0 if it succeeded, 1 if it failed."""
    loaded = load_and_log(arguments)
    if not loaded.is_set("log_level"):
        # A log line would only repeat the answer.
        logging.getLogger("trysquare.tools").setLevel(logging.CRITICAL)
    async with open_app(loaded.settings, origins=loaded.origins, prestart=False) as app:
        given = read_arguments(app.toolset, arguments.name, arguments.arguments)
        context = CallContext(
            caller=TerminalCaller(),
            # Shared, so that the next page of a long answer can be asked for in the next command.
            handles=app.handles(shared=True),
            client="trysquare call",
            # A handle would end with this command.
            meta={"trysquare/whole": True},
            direct=direct_calls(app.direct),
        ).for_call(timeout=loaded.settings.limits.timeout)
        result = await call_tool(app.toolset, arguments.name, given, context)
    print_result(result, json=arguments.json)
    return 0 if result.success else 1


def read_arguments(toolset: Toolset, name: str, words: list[str]) -> Any:
    """Arguments of a call, from one JSON text, from stdin, or from `key=value` pairs."""
    if words == ["-"]:
        return _json(_read_stdin(), "stdin")
    if len(words) == 1 and words[0].lstrip().startswith(("{", "[")):
        return _json(words[0], "the arguments")
    return dict(_pair(toolset, name, word) for word in words)


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


def _pair(toolset: Toolset, name: str, word: str) -> tuple[str, Any]:
    key, separator, text = word.partition("=")
    if not separator or not key:
        raise ConfigurationError(
            f"`{word}` is neither JSON nor key=value.",
            where="the arguments",
            hint="Write name=Ada, or one JSON object.",
        )
    return key, _value(_schema_of(toolset, name, key), text)


def _schema_of(toolset: Toolset, name: str, key: str) -> JsonObject:
    tool = toolset.find(name)
    properties: JsonObject = {} if tool is None else tool.input_schema.get("properties", {})
    return cast(JsonObject, properties.get(key, {}))


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
        "trysquare call greet name=Ada --tools my_module:tools",
        'trysquare call add \'{"a": 1, "b": 2}\' --tools my_module:tools --json',
    ),
    option_hint="Write an argument of the tool as {name}=VALUE.",
)
