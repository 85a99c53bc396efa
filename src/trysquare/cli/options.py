"""Options that commands share, and the settings they give."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from trysquare.settings import Origin
from trysquare.settings.keys import Given, Key, all_keys
from trysquare.settings.model import OptionGroup

if TYPE_CHECKING:
    from trysquare.settings.load import Loaded


class SupportsOptions(Protocol):
    """A parser, or a group of its options."""

    def add_argument(self, *flags: str, **settings: Any) -> Any:
        """Add an option."""
        ...


def _of_group(group: OptionGroup) -> list[Key]:
    return [key for key in all_keys().values() if key.option is not None and key.option.group == group]


def add_shared_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that opens tools."""
    sources = parser.add_argument_group("sources of tools (all but --debugger and --agents can be repeated)")
    _add(sources, _of_group("sources"))
    _add(parser.add_argument_group("listing"), _of_group("listing"))
    add_place_options(parser)


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """Add `--json` and the options of every command that opens tools."""
    add_json_option(parser)
    add_shared_options(parser)


def add_guide_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the commands for the guide's content."""
    _add(parser.add_argument_group("content"), [all_keys()["guide"]])
    add_place_options(parser)


def add_gateway_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the commands for the servers behind the gateway."""
    _add(parser.add_argument_group("servers"), [all_keys()["gateway"]])
    add_place_options(parser)


def add_place_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the project and its configuration file."""
    group = parser.add_argument_group("configuration")
    _add(group, _of_group("configuration"))
    group.add_argument("--config", metavar="FILE", type=Path, help="read this file instead of the project's")
    group.add_argument("--debug-traceback", action="store_true", help="show the traceback of an unexpected error")


class _FormerSwitch(argparse.BooleanOptionalAction):
    """A switch of an earlier version: it works and names the present one."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        print(f"{parser.prog}: {option_string} is deprecated; use {self.metavar}", file=sys.stderr)
        super().__call__(parser, namespace, values, option_string)


def _add(group: SupportsOptions, keys: Iterable[Key]) -> None:
    for key in keys:
        option = key.option
        if option is None:
            continue
        if option.metavar is None:
            group.add_argument(
                key.flag, dest=key.name, help=option.help, action=argparse.BooleanOptionalAction,
                default=argparse.SUPPRESS,
            )  # fmt: skip
            if option.former_flag is not None:
                group.add_argument(
                    option.former_flag, dest=key.name, action=_FormerSwitch, default=argparse.SUPPRESS,
                    help=argparse.SUPPRESS, metavar=key.flag,
                )  # fmt: skip
        else:
            group.add_argument(
                key.flag, dest=key.name, metavar=option.metavar, help=option.help,
                action="append" if key.is_list else "store", default=argparse.SUPPRESS,
            )  # fmt: skip


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

    given = dict(_given(arguments))
    return load_settings(given, os.environ, Path.cwd(), config=getattr(arguments, "config", None))


def load_and_log(arguments: argparse.Namespace) -> Loaded:
    """Settings as of `load`, with logging started at their level."""
    from trysquare.cli.terminal import start_logging

    loaded = load(arguments)
    start_logging(loaded)
    return loaded


def _given(arguments: argparse.Namespace) -> Iterator[tuple[str, Given]]:
    values = vars(arguments)
    for key in all_keys().values():
        if key.option is not None and key.name in values:
            yield key.name, _option(key.flag, values[key.name])
    for key, (flag, value) in values.get("extra_settings", {}).items():
        yield key, _option(flag, value)


def _option(flag: str, value: object) -> Given:
    return Given(value=value, origin=Origin(source="option", location=flag))
