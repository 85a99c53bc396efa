"""`trysquare models remove NAME`: take a model's weights away."""

from __future__ import annotations

import argparse

from trysquare.models.installing import remove_model
from trysquare.models.known import find_known


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `remove`."""
    parser.add_argument("name", metavar="NAME", help="the model's name")


def run(arguments: argparse.Namespace) -> int:
    """Remove the model."""
    model = find_known(arguments.name)
    print(f"{model.name} is removed." if remove_model(model) else f"{model.name} was not installed.")
    return 0
