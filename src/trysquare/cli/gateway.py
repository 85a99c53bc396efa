"""`trysquare gateway`: the servers behind the gateway, looked after by the person at this terminal."""

from __future__ import annotations

import argparse
import importlib
from typing import Protocol, cast

from trysquare.cli.options import add_gateway_options

ACTIONS = {
    "list": "show the servers, what is known of them, and what is wrong; nothing is started",
    "test": "start servers and list their tools",
    "add": "add a server to the file",
    "remove": "take a server out of the file",
    "diff": "show what servers changed and what waits for approval",
    "approve": "agree with what a server changed: its command, or its tools",
    "login": "sign in to a remote server",
    "calls": "show the ledger of calls: what was sent, and what came of it",
    "secret": "keep a secret for the file to name as ${keyring:NAME}",
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
    """Add the actions of `gateway`, each with its options."""
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    for name, about in ACTIONS.items():
        inner = actions.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".", allow_abbrev=False)
        action = cast(Action, importlib.import_module(f"trysquare.cli.gateway_{name}"))
        action.configure(inner)
        inner.set_defaults(action=action)
        add_gateway_options(inner)


def run(arguments: argparse.Namespace) -> int:
    """Do what the action says."""
    return cast(Action, arguments.action).run(arguments)
