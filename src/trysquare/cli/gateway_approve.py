"""`trysquare gateway approve NAME [TOOL]`: a person agrees with what a server changed."""

from __future__ import annotations

import argparse

from trysquare.cli.gateway_books import open_books, require_person
from trysquare.cli.gateway_diff import held_of, show_held
from trysquare.cli.terminal import ask_yes_or_no
from trysquare.core.errors import ConfigurationError
from trysquare.core.untrusted import one_line
from trysquare.gateway.server import BrokenServer


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `approve`."""
    parser.add_argument("name", metavar="NAME", help="the server")
    parser.add_argument("tool", metavar="TOOL", nargs="?", help="one of its tools; without it, all that waits")


def run(arguments: argparse.Namespace) -> int:
    """Show what waits, ask, and let it be used from now on."""
    with open_books(arguments) as books:
        server = books.config.find(arguments.name)
        if isinstance(server, BrokenServer):
            raise ConfigurationError(server.reason, where=str(server.place))
        commands, tools = held_of(books, server)
        if arguments.tool is not None:
            commands, tools = [], [held for held in tools if held.tool == arguments.tool]
        if not commands and not tools:
            print(f"Nothing of {arguments.tool or server.name} waits for approval.")
            return 0
        show_held(commands, tools)
        require_person("gateway approve")
        if not ask_yes_or_no("Agree to all of this?"):
            print("Not approved; it stays held.")
            return 1
        for held in commands:
            books.trust.approve(held.server)
        left = books.catalogue.approve(tools) if tools else ()
    if left:
        print(f"Changed once more meanwhile, and still held: {', '.join(one_line(held.tool) for held in left)}")
        return 1
    print("Approved. A gateway that runs takes it up within a second.")
    return 0
