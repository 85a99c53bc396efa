"""`trysquare gateway add NAME -- COMMAND`: write a server into the file, exactly as it was given, or refuse."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path
from typing import Any

from trysquare.cli.gateway_books import config_files, open_books
from trysquare.cli.options import add_gateway_options
from trysquare.core.errors import ConfigurationError
from trysquare.gateway.configuration.editing import add_server
from trysquare.gateway.server import BrokenServer

_USAGE = "trysquare gateway add [options] NAME (--url URL | -- COMMAND [ARGUMENT ...])"
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of `add`."""
    parser.usage = _USAGE
    # Everything from the name on, so that no option of the server's command is taken for one of ours.
    parser.add_argument(
        "words", metavar="NAME", nargs=argparse.REMAINDER, help="the server's name, and after -- the command"
    )
    _add_options(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", help="the address of a remote server, instead of a command")
    parser.add_argument("--sse", action="store_true", help="the address speaks the older transport with events")
    parser.add_argument(
        "--env", metavar="NAME=VALUE", action="append", default=[], help="for the command; ${VARIABLES} stay as written"
    )
    parser.add_argument("--header", metavar="NAME=VALUE", action="append", default=[], help="for the address")
    parser.add_argument("--description", metavar="TEXT", help="what the server is for, in a line")


def run(arguments: argparse.Namespace) -> int:
    """Add the server, and show how it will be started or reached."""
    name, command = _read_words(arguments)
    entry = _entry(arguments, command)
    file = config_files(arguments)[0]
    backup = add_server(file, name, entry)
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


def _read_words(arguments: argparse.Namespace) -> tuple[str, list[str]]:
    """The server's name and its command. Options between them are read into `arguments`."""
    words: list[str] = arguments.words
    has_mark = "--" in words
    mark = words.index("--") if has_mark else len(words)
    ours, command = words[:mark], words[mark + 1 :]
    parser = argparse.ArgumentParser(prog="trysquare gateway add", usage=_USAGE, allow_abbrev=False)
    _add_options(parser)
    add_gateway_options(parser)
    parser.add_argument("given", metavar="NAME", nargs="*", help="the server's name, and after -- the command")
    given, unknown = _parsed(parser, ours, arguments)
    if not given:
        raise _refused("the server's name is missing.", f"Write `{_USAGE}`.")
    name, *rest = given
    if has_mark:
        if rest or unknown:
            extra = (rest or unknown)[0]
            raise _refused(f"unexpected argument `{extra}` before `--`.", "The command stands behind `--`.")
        return name, command
    if unknown or (rest and any(word.startswith("-") for word in ours[ours.index(rest[0]) :])):
        line = shlex.join(["trysquare", "gateway", "add", name, "--", *ours[1:]])
        raise _refused("cannot tell options of the command from options of `gateway add`.", f"Write: {line}")
    if rest and _ADDRESS.match(rest[0]) and arguments.url is None:
        arguments.url, *rest = rest
    return name, rest


def _parsed(parser: argparse.ArgumentParser, words: list[str], into: argparse.Namespace) -> tuple[list[str], list[str]]:
    _, unknown = parser.parse_known_intermixed_args(words, into)
    given: list[str] = into.given
    return [word for word in given if word not in unknown], unknown


def _entry(arguments: argparse.Namespace, command: list[str]) -> dict[str, Any]:
    if (arguments.url is not None) == bool(command):
        raise _refused(
            "a server has either a command or an address.",
            "Write `trysquare gateway add NAME -- COMMAND ARGUMENT…` or `… NAME --url URL`.",
        )
    entry: dict[str, Any] = _remote(arguments) if arguments.url is not None else _process(arguments, command)
    return {**entry, "description": arguments.description} if arguments.description else entry


def _remote(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.env:
        raise _refused("`--env` is for a command, and this server has an address.", "Use `--header NAME=VALUE`.")
    entry: dict[str, Any] = {"type": "sse" if arguments.sse else "http", "url": arguments.url}
    return {**entry, "headers": dict(map(_pair, arguments.header))} if arguments.header else entry


def _process(arguments: argparse.Namespace, command: list[str]) -> dict[str, Any]:
    if arguments.header or arguments.sse:
        option = "--header" if arguments.header else "--sse"
        raise _refused(f"`{option}` is for an address, and this server has a command.", "Leave it out.")
    if _ADDRESS.match(command[0]):
        raise _refused(f"`{command[0]}` is an address, not a command.", f"Write `… NAME --url {command[0]}`.")
    if not command[0].strip():
        raise _refused("the command is empty.", "Write it behind `--`.")
    entry: dict[str, Any] = {"command": command[0], "args": command[1:]}
    return {**entry, "env": dict(map(_pair, arguments.env))} if arguments.env else entry


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise _refused(f"`{name}` is not of the form NAME=VALUE.", "Nothing was written.")
    return name, value


def _refused(problem: str, hint: str) -> ConfigurationError:
    return ConfigurationError(problem, where="gateway add", hint=hint)
