"""`trysquare models install NAME`: fetch a model's weights, and check every byte."""

from __future__ import annotations

import argparse

from trysquare.core.errors import ToolError
from trysquare.models.installing import check_weights, install_model, is_installed
from trysquare.models.known import KnownModel, find_known


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `install`."""
    parser.add_argument("name", metavar="NAME", help="the model's name")


def run(arguments: argparse.Namespace) -> int:
    """Install the model, unless it is there and whole."""
    model = find_known(arguments.name)
    if _is_whole(model):
        print(f"{model.name} is installed already.")
        return 0
    path = install_model(model, print)
    print(f"{model.name} lies in {path}. Use it as local:{model.name}.")
    return 0


def _is_whole(model: KnownModel) -> bool:
    if not is_installed(model):
        return False
    try:
        check_weights(model)
    except ToolError as error:
        print(error.message)
        return False
    return True
