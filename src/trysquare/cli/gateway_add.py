"""`trysquare gateway add NAME -- COMMAND`: write a server into the file, as it is to be started or reached."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from trysquare.cli.gateway_books import config_files, open_books
from trysquare.core.errors import ConfigurationError
from trysquare.gateway.configuration.editing import add_server
from trysquare.gateway.server import BrokenServer


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of `add`."""
    parser.usage = "trysquare gateway add [options] NAME (--url URL | -- COMMAND [ARGUMENT ...])"
    parser.add_argument("words", metavar="NAME", nargs="+", help="the server's name, and after -- the command")
    parser.add_argument("--url", help="the address of a remote server, instead of a command")
    parser.add_argument("--sse", action="store_true", help="the address speaks the older transport with events")
    parser.add_argument(
        "--env", metavar="NAME=VALUE", action="append", default=[], help="for the command; ${VARIABLES} stay as written"
    )
    parser.add_argument("--header", metavar="NAME=VALUE", action="append", default=[], help="for the address")
    parser.add_argument("--description", metavar="TEXT", help="what the server is for, in a line")


def run(arguments: argparse.Namespace) -> int:
    """Add the server, and show how it will be started or reached."""
    name, *command = arguments.words
    file = config_files(arguments)[0]
    backup = add_server(file, name, _entry(arguments, command))
    print(f"{name} is in {file}." + (f" The file as it was before is {backup.name}." if backup is not None else ""))
    return _show(arguments, name, file)


def _show(arguments: argparse.Namespace, name: str, file: Path) -> int:
    with open_books(arguments) as books:
        entry = books.config.find(name)
        if isinstance(entry, BrokenServer):
            print(f"It cannot be used yet: {entry.reason} ({entry.place})")
            return 1
        # Whoever types the command has seen it.
        books.trust.approve(entry)
        print(f"It is reached as: {entry.shown}\nTry it with: trysquare gateway test {name} --gateway {file}")
    return 0


def _entry(arguments: argparse.Namespace, command: list[str]) -> dict[str, Any]:
    if bool(arguments.url) == bool(command):
        raise ConfigurationError(
            "a server has either a command or an address.",
            where="gateway add",
            hint="Write `trysquare gateway add NAME -- COMMAND ARGUMENT…` or `… NAME --url URL`.",
        )
    entry: dict[str, Any] = _remote(arguments) if arguments.url else _process(arguments, command)
    return {**entry, "description": arguments.description} if arguments.description else entry


def _remote(arguments: argparse.Namespace) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "sse" if arguments.sse else "http", "url": arguments.url}
    return {**entry, "headers": dict(map(_pair, arguments.header))} if arguments.header else entry


def _process(arguments: argparse.Namespace, command: list[str]) -> dict[str, Any]:
    entry: dict[str, Any] = {"command": command[0], "args": command[1:]}
    return {**entry, "env": dict(map(_pair, arguments.env))} if arguments.env else entry


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise ConfigurationError(f"`{name}` is not of the form NAME=VALUE.", where="gateway add")
    return name, value
