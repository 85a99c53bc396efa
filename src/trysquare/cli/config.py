"""`trysquare config`: the effective settings, and where each came from."""

from __future__ import annotations

import argparse
import json

from trysquare.cli.options import add_shared_options, load
from trysquare.cli.output import print_json, print_table
from trysquare.settings.load import Effective, Loaded


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `config`."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_shared_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show the settings. Secrets are masked."""
    loaded = load(arguments)
    if arguments.json:
        print_json(_as_json(loaded))
    else:
        _print(loaded)
    return 0


def _as_json(loaded: Loaded) -> dict[str, object]:
    return {
        "file": str(loaded.file) if loaded.file else None,
        "notes": list(loaded.notes),
        "settings": {one.key.name: _setting_json(one) for one in loaded.effective()},
    }


def _setting_json(one: Effective) -> dict[str, object]:
    return {
        "value": one.shown,
        "source": one.origin.source,
        "place": one.origin.place,
        "variable": one.key.variable,
        "description": one.key.description,
    }


def _print(loaded: Loaded) -> None:
    print(f"Configuration file: {loaded.file or 'none (trysquare.toml, or [tool.trysquare] in pyproject.toml)'}")
    for note in loaded.notes:
        print(f"Note: {note}")
    print()
    rows = [(one.key.name, _text(one), one.origin.place, one.key.description) for one in loaded.effective()]
    print_table(("SETTING", "VALUE", "FROM", "MEANING"), rows)
    print("\nAn option wins over an environment variable (TRYSQUARE_HTTP_PORT for http.port), and that over the file.")


def _text(one: Effective) -> str:
    shown = one.shown
    if shown is None:
        return "-"
    return shown if isinstance(shown, str) and shown else json.dumps(shown, ensure_ascii=False)
