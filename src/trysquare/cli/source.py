"""The server that a command is about: a Python file or module, a URL, the command after `--`, or the settings."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trysquare.cli.command import Option, option

if TYPE_CHECKING:
    from trysquare.settings.load import Loaded

_ABOUT_SOURCE = "tools of a Python file or module: server.py, server.py:tools, package.module; default: the settings"
SOURCE: Option = option("source", metavar="SOURCE", nargs="?", help=_ABOUT_SOURCE)


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
