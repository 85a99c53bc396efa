"""Actions: what a command such as `trysquare gateway` can be asked to do, each in a file of its own."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Mapping
from typing import Protocol, cast


class Command(Protocol):
    """What the file of a command, or of one of its actions, offers."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add its options."""
        ...

    def run(self, arguments: argparse.Namespace) -> int:
        """Do it, and return the exit code."""
        ...


def add_actions(
    parser: argparse.ArgumentParser,
    command: str,
    actions: Mapping[str, str],
    *,
    shared: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
) -> None:
    """Add actions with what each is for. The file of `gateway list` is `gateway_list`; `shared` adds common options."""
    choices = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    for name, about in actions.items():
        inner = choices.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".", allow_abbrev=False)
        action = cast(Command, importlib.import_module(f"trysquare.cli.{command}_{name}"))
        action.configure(inner)
        inner.set_defaults(action=action)
        shared(inner)


def run_action(arguments: argparse.Namespace) -> int:
    """Do what the chosen action says."""
    return cast(Command, arguments.action).run(arguments)
