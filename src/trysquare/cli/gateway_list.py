"""`trysquare gateway list`: the servers, what is known of them, and what is wrong. Nothing is started."""

from __future__ import annotations

import argparse
from typing import Any

from trysquare.cli.gateway_books import Books, open_books
from trysquare.cli.output import count, print_json, print_table
from trysquare.gateway.server import BrokenServer, ServerEntry


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `list`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Show every server."""
    with open_books(arguments) as books:
        rows = [_row(books, entry) for entry in books.config.servers.values()]
        rows += [{"server": name, "state": "switched off"} for name in books.config.disabled]
    if arguments.json:
        print_json(rows)
        return 0
    table = [(row["server"], row.get("tool", ""), row.get("transport", ""), row["state"]) for row in rows]
    print_table(("SERVER", "TOOL", "TRANSPORT", "STATE"), table)
    print(f"\n{count(len(rows), 'server')}. `trysquare gateway test` starts them and lists their tools.")
    return 0


def _row(books: Books, entry: ServerEntry) -> dict[str, Any]:
    row: dict[str, Any] = {"server": entry.name, "tool": entry.tool_name, "where": str(entry.place)}
    if isinstance(entry, BrokenServer):
        return {**row, "state": f"broken: {entry.reason} ({entry.place})"}
    definitions = books.catalogue.definitions(entry.name)
    tools = None if definitions is None else [one.name for one in definitions if entry.offers(one.name)]
    held = [one.tool for one in books.catalogue.held(entry.name)]
    is_held = books.trust.held(entry) is not None
    states = ["how it is started or reached waits for approval; see `trysquare gateway diff`"] if is_held else []
    states.append("not asked yet" if tools is None else count(len(tools), "tool"))
    left_out = list(books.catalogue.left_out(entry.name))
    states += [f"left out: {reason}" for reason in left_out]
    states += [f"{count(len(held), 'change')} held; see `trysquare gateway diff`"] if held else []
    return {
        **row,
        "transport": entry.transport,
        "reached": entry.shown,
        "state": ", ".join(states),
        "tools": tools,
        "held": held,
        "is_held": is_held,
        "left_out": left_out,
    }
