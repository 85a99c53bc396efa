"""Options that commands share, and the settings they give."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trysquare.cli.command import option
from trysquare.settings import Origin
from trysquare.settings.keys import Given, Key, all_keys
from trysquare.settings.model import OptionGroup

if TYPE_CHECKING:
    from trysquare.settings.load import Loaded


def _of_group(group: OptionGroup) -> list[Key]:
    return [key for key in all_keys().values() if key.option is not None and key.option.group == group]


def add_shared_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that opens tools."""
    sources = parser.add_argument_group("sources of tools (all but --debugger and --agents can be repeated)")
    _add(sources.add_argument, _of_group("sources"))
    _add(parser.add_argument_group("listing").add_argument, _of_group("listing"))
    add_place_options(parser)


def _add_source(heading: str, key: str, parser: argparse.ArgumentParser) -> None:
    """Add the option that names one source of tools."""
    _add(parser.add_argument_group(heading).add_argument, [all_keys()[key]])
    add_place_options(parser)


add_guide_options = partial(_add_source, "content", "guide")
add_gateway_options = partial(_add_source, "servers", "gateway")
JSON = option("--json", action="store_true", help="print JSON")


def add_place_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the project and its configuration file."""
    group = parser.add_argument_group("configuration")
    _add(group.add_argument, _of_group("configuration"))
    group.add_argument("--config", metavar="FILE", type=Path, help="read this file instead of the project's")
    group.add_argument("--debug-traceback", action="store_true", help="show the traceback of an unexpected error")


class _FormerSwitch(argparse.BooleanOptionalAction):
    """A switch of an earlier version: it works and names the present one."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        print(f"{parser.prog}: {option_string} is deprecated; use {self.metavar}", file=sys.stderr)
        super().__call__(parser, namespace, values, option_string)


def _add(add: Callable[..., Any], keys: Iterable[Key]) -> None:
    for key in keys:
        about = key.option
        assert about is not None
        common: dict[str, Any] = {"dest": key.name, "default": argparse.SUPPRESS}
        if about.metavar is not None:
            action = "append" if key.is_list else "store"
            add(key.flag, **common, metavar=about.metavar, help=about.help, action=action)
            continue
        add(key.flag, **common, help=about.help, action=argparse.BooleanOptionalAction)
        if about.former_flag is not None:
            add(about.former_flag, **common, help=argparse.SUPPRESS, metavar=key.flag, action=_FormerSwitch)


def positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    """Type of an option: a number above 0."""

    def read(text: str) -> float:
        number = kind(text)
        if not 0 < number < float("inf"):
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return number

    read.__name__ = "number"
    return read


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
    for key, (flag, value) in values.get("extra_settings", {}).items():
        yield key, _option(flag, value)


def _option(flag: str, value: object) -> Given:
    return Given(value=value, origin=Origin(source="option", location=flag))
