"""`trysquare models check [NAME]`: whether installed weights are as pinned."""

from __future__ import annotations

import argparse

from trysquare.core.errors import ToolError
from trysquare.models.installing import check_weights, is_installed
from trysquare.models.known import KNOWN, KnownModel, find_known
from trysquare.models.places import weights_file


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `check`."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="the model's name (default: every installed model)")


def run(arguments: argparse.Namespace) -> int:
    """Check one model, or all that are there."""
    models = [find_known(arguments.name)] if arguments.name else [each for each in KNOWN.values() if _there(each)]
    if not models:
        print("No model is installed.")
    return max((_check(model) for model in models), default=0)


def _there(model: KnownModel) -> bool:
    return is_installed(model) or weights_file(model.name).exists()


def _check(model: KnownModel) -> int:
    try:
        path = check_weights(model)
    except ToolError as error:
        print(f"{model.name}: {error.message} {error.instruction}")
        return 1
    print(f"{model.name}: {path} is as pinned.")
    return 0
