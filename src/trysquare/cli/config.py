"""`trysquare config`: show the effective settings and the origin of each."""

from __future__ import annotations

import argparse
import json

from trysquare.cli.command import Command
from trysquare.cli.options import JSON, add_shared_options, load
from trysquare.cli.terminal import print_report, print_table, wrapped
from trysquare.settings.load import Effective, Loaded


def show_settings(arguments: argparse.Namespace) -> None:
    """Print the settings. Secrets are masked."""
    loaded = load(arguments)
    print_report(_as_json(loaded), lambda: _print(loaded), json=arguments.json)


def _as_json(loaded: Loaded) -> dict[str, object]:
    return {
        "file": str(loaded.file) if loaded.file else None,
        "notes": list(loaded.notes),
        "settings": {
            one.key.name: {
                "value": one.shown,
                "source": one.origin.source,
                "place": one.origin.location,
                "variable": one.key.variable,
                "description": one.key.description,
            }
            for one in loaded.effective()
        },
    }


def _print(loaded: Loaded) -> None:
    file = loaded.file or "none (trysquare.toml, or [tool.trysquare] in pyproject.toml)"
    print("\n".join(wrapped(f"Configuration file: {file}", 0)))
    for note in loaded.notes:
        print(f"Note: {note}")
    print()
    rows = [(one.key.name, _text(one), one.origin.location, one.key.description) for one in loaded.effective()]
    print_table(("SETTING", "VALUE", "FROM", "MEANING"), rows)
    order = "An option wins over an environment variable (TRYSQUARE_HTTP_PORT for http.port), and that over the file."
    print("\n".join(["", *wrapped(order, 0)]))


def _text(one: Effective) -> str:
    shown = one.shown
    if shown is None:
        return "-"
    return shown if isinstance(shown, str) and shown else json.dumps(shown, ensure_ascii=False)


COMMAND = Command(
    show_settings,
    (JSON, add_shared_options),
    examples=("trysquare config", "trysquare config --project ../other --json"),
)
