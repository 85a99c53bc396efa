"""`trysquare console`: open a page where a person decides, watches and tries."""

from __future__ import annotations

import argparse

from trysquare.cli.command import Command, option
from trysquare.cli.options import add_shared_options
from trysquare.cli.page import PageOptions
from trysquare.cli.serve import Serving, free_port
from trysquare.cli.source import SOURCE, load_source

_FIRST_PORT = 8710
_ABOUT_PORT = f"port to listen on; default: {_FIRST_PORT}, or a free one if that is taken"
_OPTIONS = (
    SOURCE,
    option("--port", metavar="PORT", type=int, help=_ABOUT_PORT),
    option("--passkey", metavar="NAME", help="print a link by which this approver of the project registers a passkey"),
    option("--no-open", action="store_true", help="print the link and open no browser"),
    add_shared_options,
)


def run(arguments: argparse.Namespace) -> None:
    """Serve the page on this machine until stopped."""
    port = free_port(_FIRST_PORT) if arguments.port is None else arguments.port
    page = PageOptions(opens=not arguments.no_open, alone=port, passkey=arguments.passkey)
    Serving(over_http=True, page=page).run(lambda: load_source(arguments, arguments.source))


COMMAND = Command(
    run,
    _OPTIONS,
    examples=(
        "trysquare console",
        "trysquare console server.py --no-open",
        "trysquare console --passkey ada@example.org",
    ),
)
