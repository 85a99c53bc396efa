"""The options that serve, list, call and check share, and how a command reads its settings."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trysquare.settings.origin import Given, Origin

if TYPE_CHECKING:
    from trysquare.settings.load import Loaded


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """An option of the command line and the setting that it sets."""

    flag: str
    key: str
    help: str
    metavar: str | None = None
    many: bool = False


SOURCES = (
    Option(flag="--tools", key="tools", metavar="MODULE:NAME", many=True, help="tools of a Python module"),
    Option(flag="--bot", key="bot", metavar="FOLDER", many=True, help="a workflow bot"),
    Option(flag="--gateway", key="gateway", metavar="MCP_JSON", many=True, help="MCP servers behind one gateway"),
    Option(flag="--guide", key="guide", metavar="FOLDER", many=True, help="guide content"),
    Option(flag="--workbench", key="workbench", metavar="FOLDER", many=True, help="a folder to work in"),
    Option(flag="--debug", key="debug", help="the debugger's tools"),
    Option(flag="--agents", key="agents", help="agents as tools"),
)
LISTING = (
    Option(
        flag="--profile", key="profile", metavar="[ROOM=]full|levels|gateway|search", many=True, help="what is listed"
    ),
    Option(flag="--prefix", key="prefix", metavar="TEXT", help="put before every tool's name"),
    Option(
        flag="--strict",
        key="strict",
        help="proof at every gate: a literal that a model can type is not enough; warnings of check are errors",
    ),
)
PLACE = (
    Option(flag="--project", key="project", metavar="FOLDER", help="the project (default: the working directory)"),
    Option(flag="--log-level", key="log_level", metavar="LEVEL", help="TRACE, DEBUG, INFO, WARNING or ERROR"),
)
ALL_OPTIONS = (*SOURCES, *LISTING, *PLACE)


def add_shared_options(parser: argparse.ArgumentParser) -> None:
    """Add every option that serve, list, call and check share."""
    _add(parser.add_argument_group("sources of tools (all but --debug and --agents can be repeated)"), SOURCES)
    _add(parser.add_argument_group("listing"), LISTING)
    add_place_options(parser)


def add_guide_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the commands that are about the guide's content alone."""
    _add(parser.add_argument_group("content"), tuple(option for option in SOURCES if option.key == "guide"))
    add_place_options(parser)


def add_gateway_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the commands that are about the servers behind the gateway alone."""
    _add(parser.add_argument_group("servers"), tuple(option for option in SOURCES if option.key == "gateway"))
    add_place_options(parser)


def add_place_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which project and configuration file is meant."""
    group = parser.add_argument_group("configuration")
    _add(group, PLACE)
    group.add_argument("--config", metavar="FILE", type=Path, help="read this file instead of the project's")
    group.add_argument("--debug-traceback", action="store_true", help="show the traceback of an unexpected error")


def _add(group: argparse._ArgumentGroup, options: tuple[Option, ...]) -> None:  # pyright: ignore[reportPrivateUsage]
    for option in options:
        if option.metavar is None:
            group.add_argument(
                option.flag, dest=option.key, help=option.help, action=argparse.BooleanOptionalAction,
                default=argparse.SUPPRESS,
            )  # fmt: skip
        else:
            group.add_argument(
                option.flag, dest=option.key, metavar=option.metavar, help=option.help,
                action="append" if option.many else "store", default=argparse.SUPPRESS,
            )  # fmt: skip


def load(arguments: argparse.Namespace) -> Loaded:
    """The settings of a command: file, environment, and the options that were given."""
    # With it comes what takes most of a start, and whoever only shows help needs none of it.
    from trysquare.settings.load import load_settings

    given = dict(_given(arguments))
    return load_settings(given, os.environ, Path.cwd(), config=getattr(arguments, "config", None))


def _given(arguments: argparse.Namespace) -> Iterator[tuple[str, Given]]:
    values = vars(arguments)
    for option in ALL_OPTIONS:
        if option.key in values:
            yield option.key, _option(option.flag, values[option.key])
    for key, (flag, value) in values.get("extra_settings", {}).items():
        yield key, _option(flag, value)


def _option(flag: str, value: object) -> Given:
    return Given(value=value, origin=Origin(source="option", place=flag))
