"""`trysquare gateway diff`: what servers changed, and what waits for a person."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from trysquare.cli.gateway_books import Books, open_books
from trysquare.cli.output import print_json, styled
from trysquare.core.untrusted import one_line
from trysquare.gateway.definitions.catalogue import Held
from trysquare.gateway.server import ServerConfig
from trysquare.gateway.trust import HeldServer


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of `diff`."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="the server; without it, all")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Show what waits; 1 if something does."""
    with open_books(arguments) as books:
        servers = books.usable([arguments.name] if arguments.name else [])
        commands = [held for server in servers if (held := books.trust.held(server)) is not None]
        tools = [held for server in servers for held in books.catalogue.held(server.name)]
    if arguments.json:
        print_json(
            {
                "servers": [_as_json(held) for held in commands],
                "tools": [{**asdict(held), "diff": held.diff} for held in tools],
            }
        )
    else:
        show_held(commands, tools)
        if not commands and not tools:
            print("Nothing waits for approval.")
    return 1 if commands or tools else 0


def held_of(books: Books, server: ServerConfig) -> tuple[list[HeldServer], list[Held]]:
    """What waits of one server: how it is reached, and its tools."""
    held = books.trust.held(server)
    return ([] if held is None else [held]), list(books.catalogue.held(server.name))


def show_held(commands: list[HeldServer], tools: list[Held]) -> None:
    """Print what waits, for a person to read."""
    for command in commands:
        print(f"{styled('held', 'red')}  {command.told()}\n")
    for tool in tools:
        reasons = one_line(" ".join(tool.reasons), 4_000)
        print(f"{styled('held', 'red')}  {one_line(tool.tool)} of {tool.server}: {reasons}\n{tool.diff}\n")


def _as_json(held: HeldServer) -> dict[str, str | None]:
    return {"server": held.server.name, "before": held.before, "after": held.server.shown}
