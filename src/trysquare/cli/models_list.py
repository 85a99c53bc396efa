"""`trysquare models list`: the models that can be installed, and which are."""

from __future__ import annotations

import argparse

from trysquare.cli.output import print_json, print_table
from trysquare.models.installing import is_installed
from trysquare.models.known import KNOWN, KnownModel
from trysquare.models.places import models_folder


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `list`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Show every known model."""
    if arguments.json:
        print_json([_entry(model) for model in KNOWN.values()])
        return 0
    rows = [
        (model.name, "yes" if is_installed(model) else "no", f"{model.size // 1_000_000} MB", model.about)
        for model in KNOWN.values()
    ]
    print_table(("name", "installed", "size", "about"), rows)
    print(f"\nModels lie in {models_folder()}. Use one as local:NAME.")
    return 0


def _entry(model: KnownModel) -> dict[str, object]:
    return {
        "name": model.name,
        "installed": is_installed(model),
        "bytes": model.size,
        "sha256": model.sha256,
        "licence": model.licence,
        "about": model.about,
    }
