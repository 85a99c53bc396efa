"""`trysquare gateway`: the servers behind the gateway, looked after by the person at this terminal."""

from __future__ import annotations

import argparse

from trysquare.cli.actions import add_actions, run_action
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


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions of `gateway`, each with its options."""
    add_actions(parser, "gateway", ACTIONS, shared=add_gateway_options)


def run(arguments: argparse.Namespace) -> int:
    """Do what the action says."""
    return run_action(arguments)
