"""Options that commands share, and the settings they give."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trysquare.cli.command import Parser, option
from trysquare.core.json import JsonObject
from trysquare.settings import Origin
from trysquare.settings.keys import Given, Key, all_keys
from trysquare.settings.model import OptionGroup

if TYPE_CHECKING:
    from trysquare.settings.load import Loaded


def _of_group(group: OptionGroup) -> list[Key]:
    return [key for key in all_keys().values() if key.option is not None and key.option.group == group]


def add_shared_options(parser: Parser) -> None:
    """Add the options of every command that opens tools."""
    _add(parser.add_group("Sources of tools", folded=True), _of_group("sources"))
    _add(parser.add_group("Listing", folded=True), _of_group("listing"))
    add_place_options(parser)


def _add_source(heading: str, key: str, parser: Parser) -> None:
    """Add the option that names one source of tools."""
    _add(parser.add_group(heading), [all_keys()[key]])
    add_place_options(parser)


add_guide_options = partial(_add_source, "Content", "guide")
add_gateway_options = partial(_add_source, "Servers", "gateway")
JSON = option("--json", action="store_true", help="print JSON")


def add_place_options(parser: Parser) -> None:
    """Add the options for the project, its configuration file, and the log."""
    add = parser.add_group("Configuration", folded=True)
    _add(add, _of_group("configuration"))
    add("--config", metavar="FILE", type=Path, help="read this file instead of the project's")
    add("-v", "--verbose", action="count", default=0, help="log at level INFO; -vv at level DEBUG")
    add("--debug", dest="verbose", nargs=0, default=0, action=_Debug, help="the same as -vv")
    add("--debug-traceback", action="store_true", help="show the traceback of an unexpected error")


class _Debug(argparse.Action):
    """`--debug`, which served the debugger's tools in an earlier version."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        namespace.verbose = 2
        if any("--debugger" in each.flags for each in parser.all_options()):
            print(f"{parser.prog}: --debug sets the log level; --debugger adds the debugger's tools", file=sys.stderr)


def _add(add: Callable[..., Any], keys: Iterable[Key]) -> None:
    for key in keys:
        about = key.option
        assert about is not None
        common: dict[str, Any] = {"dest": key.name, "default": argparse.SUPPRESS, "help": about.help}
        if about.metavar is not None:
            add(key.flag, **common, metavar=about.metavar, action="append" if key.is_list else "store")
        else:
            add(key.flag, **common, action=argparse.BooleanOptionalAction)


def positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    """Type of an option: a number above 0."""

    def read(text: str) -> float:
        number = kind(text)
        if not 0 < number < float("inf"):
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return number

    read.__name__ = "number"
    return read


def tool_names(arguments: argparse.Namespace) -> list[str]:
    """The tools of the sources on the command line and in the configuration, for shell completion."""
    return list(_schemas(arguments))


def argument_names(arguments: argparse.Namespace) -> list[str]:
    """The arguments of the tool that is being called, as `name=`."""
    schema = _schemas(arguments).get(arguments.name, {})
    return [f"{name}=" for name in schema.get("properties", {})]


def _schemas(arguments: argparse.Namespace) -> dict[str, JsonObject]:
    import asyncio

    from trysquare.app import open_app

    async def read() -> dict[str, JsonObject]:
        loaded = load(arguments)
        async with open_app(loaded.settings, origins=loaded.origins, prestart=False, lifespans=False) as app:
            return {tool.name: tool.input_schema for tool in app.toolset.tools()}

    return asyncio.run(read())


def load(arguments: argparse.Namespace) -> Loaded:
    """Settings from the file, the environment and the given options."""
    # Slow to import, and not needed for help.
    from trysquare.settings import load_settings

    return load_settings(
        dict(given_options(arguments)), os.environ, Path.cwd(), config=getattr(arguments, "config", None)
    )


def load_and_log(arguments: argparse.Namespace) -> Loaded:
    """Settings as of `load`, with logging started at their level."""
    from trysquare.cli.terminal import start_logging

    loaded = load(arguments)
    start_logging(loaded)
    return loaded


def given_options(arguments: argparse.Namespace) -> Iterator[tuple[str, Given]]:
    """The settings that the command line gives."""
    values = vars(arguments)
    for key in all_keys().values():
        if key.option is not None and key.name in values:
            yield key.name, _option(key.flag, values[key.name])
    if values.get("verbose") and "log_level" not in values:
        yield "log_level", _option("-v", "INFO" if values["verbose"] == 1 else "DEBUG")
    for key, (flag, value) in values.get("extra_settings", {}).items():
        yield key, _option(flag, value)


def _option(flag: str, value: object) -> Given:
    return Given(value=value, origin=Origin(source="option", location=flag))
