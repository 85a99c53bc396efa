"""`trysquare gateway remove NAME`: take a server out of the file, and forget what is known of it."""

from __future__ import annotations

import argparse

from trysquare.cli.gateway_books import open_books
from trysquare.gateway.configuration.editing import remove_server


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `remove`."""
    parser.add_argument("name", metavar="NAME", help="the server's name")


def run(arguments: argparse.Namespace) -> int:
    """Remove the server."""
    with open_books(arguments) as books:
        file = books.config.paths[0]
        if (entry := books.config.servers.get(arguments.name)) is not None:
            file = next(path for path in books.config.paths if str(path.absolute()) == entry.place.file)
        backup = remove_server(file, arguments.name)
        books.catalogue.forget(arguments.name)
    copy = f" The file as it was before is {backup.name}." if backup is not None else ""
    print(f"{arguments.name} is no longer in {file}.{copy}")
    return 0
