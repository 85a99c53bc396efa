"""`trysquare gateway add|remove|login|secret`: edit the servers' file and their secrets; open the gateway's state."""

from __future__ import annotations

import argparse
import getpass
import logging
import os
import re
import shlex
import sys
import webbrowser
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trysquare import gateway
from trysquare.cli.command import Command, Parser, option
from trysquare.cli.options import add_gateway_options, load_and_log
from trysquare.core.errors import ConfigurationError, ErrorCode, require_extra
from trysquare.store import LazyDatabase, user_state
from trysquare.store.pins import CommandPins

USUAL_FILE = "mcp.json"
_USAGE = "trysquare gateway add [options] NAME (URL | -- COMMAND [ARGUMENT ...])"
_PAIRS: dict[str, Any] = {"metavar": "NAME=VALUE", "action": "append", "default": []}
_ABOUT_NAME = "the server's name, and after -- the command"
_ENTRY = (
    option("--url", help="the address of a remote server, instead of a command"),
    option("--sse", action="store_true", help="use the older SSE transport for the address"),
    option("--env", **_PAIRS, help="environment variable for the command; ${VARIABLES} stay unexpanded"),
    option("--header", **_PAIRS, help="HTTP header for the address; can be repeated"),
    option("--description", metavar="TEXT", help="the server's purpose, in one line"),
    add_gateway_options,
)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True, kw_only=True, slots=True)
class GatewayState:
    """The configuration, and the stored definitions and approvals of its servers."""

    config: gateway.GatewayConfig
    registry: gateway.DefinitionRegistry
    trust: gateway.LaunchPins
    database: LazyDatabase

    def usable(self, names: Sequence[str] = ()) -> list[gateway.ServerConfig]:
        """The servers of these names, or all, without broken entries."""
        entries = [self.config.find(name) for name in names] or list(self.config.servers.values())
        return [entry for entry in entries if isinstance(entry, gateway.ServerConfig)]


def require_usable(config: gateway.GatewayConfig, name: str) -> gateway.ServerConfig:
    """The server of this name; a broken entry is a `ConfigurationError`."""
    entry = config.find(name)
    if isinstance(entry, gateway.InvalidServer):
        raise ConfigurationError(entry.reason, where=str(entry.location))
    return entry


def _config_files(arguments: argparse.Namespace) -> tuple[Path, ...]:
    """The configured files, or `mcp.json` in the project."""
    settings = load_and_log(arguments).settings
    return settings.gateway or (settings.project / USUAL_FILE,)


@contextmanager
def open_state(arguments: argparse.Namespace) -> Generator[GatewayState]:
    """Read the files and open the user's state. No server is started."""
    config = gateway.read_config(*_config_files(arguments))
    with closing(LazyDatabase(user_state())) as database:
        registry, trust = gateway.DefinitionRegistry(database), gateway.LaunchPins(CommandPins(database))
        registry.configure(config.servers)
        yield GatewayState(config=config, registry=registry, trust=trust, database=database)


def _use_usage(parser: argparse.ArgumentParser) -> None:
    parser.usage = _USAGE


def _add(arguments: argparse.Namespace) -> int:
    name, command = _read_words(arguments)
    entry = _entry(arguments, command)
    file = _config_files(arguments)[0]
    backup = gateway.add_server(file, name, entry)
    print(f"{name} is in {file}.{_backup_note(backup)}")
    with open_state(arguments) as state:
        added = state.config.find(name)
        if isinstance(added, gateway.InvalidServer):
            print(f"It cannot be used yet: {added.reason} ({added.location})")
            return 1
        # Whoever types the command has seen it.
        state.trust.approve(added)
        print(f"Address: {added.shown}\nTry it with: trysquare gateway test {name} --gateway {file}")
    return 0


def _backup_note(backup: Path | None) -> str:
    return f" The previous version is {backup.name}." if backup is not None else ""


def _read_words(arguments: argparse.Namespace) -> tuple[str, list[str]]:
    """The server's name and its command. Options between them are read into `arguments`."""
    words: list[str] = arguments.words
    has_mark = "--" in words
    mark = words.index("--") if has_mark else len(words)
    ours, command = words[:mark], words[mark + 1 :]
    parser = Parser(prog="trysquare gateway add", usage=_USAGE)
    for add in (*_ENTRY, option("given", metavar="NAME", nargs="*", help=_ABOUT_NAME)):
        add(parser)
    _, unknown = parser.parse_known_intermixed_args(ours, arguments)
    given = [word for word in arguments.given if word not in unknown]
    if not given:
        raise _refused("the server's name is missing.", f"Write `{_USAGE}`.")
    name, *rest = given
    if has_mark:
        if rest or unknown:
            extra = (rest or unknown)[0]
            raise _refused(f"unexpected argument `{extra}` before `--`.", "Write the command after `--`.")
        return name, command
    if unknown or (rest and any(word.startswith("-") for word in ours[ours.index(rest[0]) :])):
        line = shlex.join(["trysquare", "gateway", "add", name, "--", *ours[1:]])
        raise _refused("cannot tell options of the command from options of `gateway add`.", f"Write: {line}")
    if rest and _ADDRESS.match(rest[0]) and arguments.url is None:
        arguments.url, *rest = rest
    return name, rest


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
        raise _refused("the command is empty.", "Write it after `--`.")
    entry: dict[str, Any] = {"command": command[0], "args": command[1:]}
    return {**entry, "env": dict(map(_pair, arguments.env))} if arguments.env else entry


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise _refused(f"`{name}` is not of the form NAME=VALUE.", "Nothing was written.")
    return name, value


def _refused(problem: str, hint: str) -> ConfigurationError:
    return ConfigurationError(problem, where="gateway add", hint=hint)


def _remove(arguments: argparse.Namespace) -> None:
    with open_state(arguments) as state:
        file = state.config.paths[0]
        if (entry := state.config.servers.get(arguments.name)) is not None:
            file = next(path for path in state.config.paths if str(path.absolute()) == entry.location.file)
        backup = gateway.remove_server(file, arguments.name)
        state.registry.forget(arguments.name)
    print(f"{arguments.name} is no longer in {file}.{_backup_note(backup)}")


async def _login(arguments: argparse.Namespace) -> None:
    server = require_usable(gateway.read_config(*_config_files(arguments)), arguments.name)
    if gateway.TRANSPORTS[server.transport].login_method is None:
        raise ConfigurationError(
            f"The server `{server.name}` is a local process and has no login.", where=str(server.location)
        )
    require_extra("login", "httpx2", "mcp", feature="`gateway login`", code=ErrorCode.UPSTREAM_UNAVAILABLE)
    if arguments.remove:
        gone = gateway.SystemSecrets().remove(gateway.login_name(server))
        print(f"Signed out of `{server.name}`." if gone else f"There was no login at `{server.name}`.")
        return
    opens = not arguments.no_browser and _has_screen()

    def show(address: str) -> None:
        print(f"To sign in to `{server.name}`, open this address in a browser on this machine:\n\n  {address}\n")
        sys.stdout.flush()
        if opens:
            webbrowser.open(address)

    # The SDK logs a failed login with its traceback; our own error is enough.
    logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL)
    signed_in = await gateway.sign_in(server, gateway.SystemSecrets(), show=show)
    print(f"{'Signed in to' if signed_in else 'Nobody needs to sign in to'} `{server.name}` ({server.shown}).")


def _has_screen() -> bool:
    """Whether a browser opens in a window; a text browser would take over the terminal."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _secret(arguments: argparse.Namespace) -> None:
    name: str = arguments.name
    if arguments.remove:
        gone = gateway.SystemSecrets().remove(name)
        print(f"Deleted the secret `{name}`." if gone else f"There was no secret `{name}`.")
        return
    if sys.stdin.isatty():
        value = getpass.getpass(f"The secret `{name}`: ")
    else:
        value = sys.stdin.read().removesuffix("\n").removesuffix("\r")
    if not value:
        raise ConfigurationError("The secret is empty; nothing was stored.")
    gateway.SystemSecrets().write(name, value)
    reference = name if name.startswith("input:") else f"keyring:{name}"
    print(f"Stored the secret `{name}`. Refer to it in a file as ${{{reference}}}.")


_LOGIN = (
    option("name", metavar="NAME", help="the server's name in the file"),
    option("--no-browser", action="store_true", help="print the address without opening a browser"),
    option("--remove", action="store_true", help="delete the login"),
    add_gateway_options,
)
_SECRET = (
    option("name", metavar="NAME", help="the NAME of ${keyring:NAME}; input:ID for ${input:ID}"),
    option("--remove", action="store_true", help="delete the secret"),
    add_gateway_options,
)
# Everything from the name on, so that no option of the server's command is read as an option of this command.
_WORDS = option("words", metavar="NAME", nargs=argparse.REMAINDER, help=_ABOUT_NAME)
_NAME = option("name", metavar="NAME", help="the server's name")
ADD = Command(
    _add,
    (_use_usage, _WORDS, *_ENTRY),
    "add a server to the file",
    examples=(
        "trysquare gateway add git -- uvx mcp-server-git --repository .",
        "trysquare gateway add docs https://mcp.example.com/mcp --header Authorization=${keyring:docs}",
    ),
)
REMOVE = Command(
    _remove,
    (_NAME, add_gateway_options),
    "remove a server from the file",
    examples=("trysquare gateway remove git", "trysquare gateway remove git --gateway team.json"),
)
LOGIN = Command(
    _login,
    _LOGIN,
    "sign in to a remote server",
    examples=("trysquare gateway login docs", "trysquare gateway login docs --remove"),
)
SECRET = Command(
    _secret,
    _SECRET,
    "store a secret for ${keyring:NAME} in the file",
    examples=("trysquare gateway secret docs", "trysquare gateway secret docs --remove"),
)
