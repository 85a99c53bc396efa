"""`trysquare read URI`: read a resource of a server and print it."""

from __future__ import annotations

import argparse

from trysquare.cli.command import Command, option
from trysquare.cli.options import JSON, add_shared_options
from trysquare.cli.source import HEADER, OUT, open_client, print_content, save_content
from trysquare.cli.terminal import print_json

_ABOUT_WORDS = "the resource's address, after a SOURCE if it is not one of the settings: server.py, a URL"
_OPTIONS = (option("words", metavar="URI", nargs="+", help=_ABOUT_WORDS), OUT, JSON, HEADER, add_shared_options)


async def read(arguments: argparse.Namespace) -> None:
    """Print what the resource holds."""
    source, uri = _split(arguments)
    async with open_client(arguments, source) as client:
        found = await client.read_resource(uri)
    if arguments.json:
        print_json(
            [
                {"uri": part.uri, "mime_type": part.mime_type}
                | ({"text": part.text} if part.blob is None else {"blob": part.blob})
                for part in found.contents
            ]
        )
    else:
        print_content(found.contents)
    save_content(found.contents, arguments.out, uri.rpartition("://")[2])


def _split(arguments: argparse.Namespace) -> tuple[str | None, str]:
    """Source and address: an address can be a URL, so only the number of words tells."""
    if len(arguments.words) > 2:
        arguments.parser.error(f"unexpected argument `{arguments.words[2]}`")
    return (arguments.words[0] if len(arguments.words) == 2 else None), arguments.words[-1]


COMMAND = Command(
    read,
    _OPTIONS,
    examples=("trysquare read trysquare://tools", "trysquare read server.py note://today --out notes"),
    takes_command=True,
)
