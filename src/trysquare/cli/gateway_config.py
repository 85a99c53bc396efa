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
from trysquare.store import LazyDatabase, SystemSecrets, project_state, user_state
from trysquare.store.location import prepare_folder
from trysquare.store.pins import CommandPins

USUAL_FILE = "mcp.json"
_USAGE = "trysquare gateway add [options] NAME (URL | -- COMMAND [ARGUMENT ...])"
_PAIRS: dict[str, Any] = {"metavar": "NAME=VALUE", "action": "append", "default": []}
_ABOUT_NAME = "the server's name, and after -- the command"
_ABOUT_ENV = "environment variable for the command; can be repeated, and ${VARIABLES} stay as they are"
_ABOUT_HEADER = 'HTTP header for the address, "NAME: VALUE" or NAME=VALUE; can be repeated'
_ABOUT_SCOPE = "the file: mcp.json of the project (default), one in .trysquare that git ignores, or one of your own"
SCOPE = option("-s", "--scope", choices=("project", "local", "user"), help=_ABOUT_SCOPE)
_ENTRY = (
    option("--url", metavar="URL", help="the address of a remote server; the URL alone does as well"),
    option("-t", "--transport", choices=("stdio", "http", "sse"), help="the transport (default: by what is given)"),
    option("--sse", action="store_true", help=argparse.SUPPRESS),
    option("-e", "--env", **_PAIRS, help=_ABOUT_ENV),
    option("-H", "--header", **{**_PAIRS, "metavar": "HEADER"}, help=_ABOUT_HEADER),
    option("--description", metavar="TEXT", help="the server's purpose, in one line"),
    SCOPE,
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


def _scopes(project: Path) -> dict[str, Path]:
    """The file of each scope: shared in the project, private in the project, the user's own."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    config = Path(base) if base.startswith("/") else Path.home() / ".config"
    local = project_state(project).with_name(USUAL_FILE)
    return {"project": project / USUAL_FILE, "local": local, "user": config / "trysquare" / USUAL_FILE}


def _config_files(arguments: argparse.Namespace) -> tuple[Path, ...]:
    """The configured files, or those of the scopes that exist, or `mcp.json` in the project."""
    settings = load_and_log(arguments).settings
    files = _scopes(settings.project)
    return settings.gateway or tuple(file for file in files.values() if file.exists()) or (files["project"],)


def target_file(arguments: argparse.Namespace) -> Path:
    """The file to write: that of `--scope`, or the first configured one, or `mcp.json` in the project."""
    settings = load_and_log(arguments).settings
    files = _scopes(settings.project)
    if arguments.scope is None:
        return settings.gateway[0] if settings.gateway else files["project"]
    if "gateway" in vars(arguments):
        raise ConfigurationError("`--gateway` names the file already.", where="--scope", hint="Leave one of them out.")
    if arguments.scope == "local":
        prepare_folder(files["local"].parent)
    return files[arguments.scope]


def server_names(arguments: argparse.Namespace) -> list[str]:
    """The configured servers, for shell completion."""
    return [name for file in _config_files(arguments) if file.exists() for name in gateway.written_entries(file)]


@contextmanager
def open_state(arguments: argparse.Namespace, *files: Path) -> Generator[GatewayState]:
    """Read these files, or the configured ones, and open the user's state. No server is started."""
    config = gateway.read_config(*(files or _config_files(arguments)))
    with closing(LazyDatabase(user_state())) as database:
        registry, trust = gateway.DefinitionRegistry(database), gateway.LaunchPins(CommandPins(database))
        registry.configure(config.servers)
        yield GatewayState(config=config, registry=registry, trust=trust, database=database)


def _use_usage(parser: argparse.ArgumentParser) -> None:
    parser.usage = _USAGE


def _add(arguments: argparse.Namespace) -> int:
    name, command = _read_words(arguments)
    entry = _entry(arguments, command)
    file = target_file(arguments)
    gateway.add_server(file, name, entry)
    print(f"Added `{name}` to {file}.")
    with open_state(arguments, file) as state:
        approve_written(state, [name])
    print(f"Try it: trysquare gateway test {name} --gateway {file}")
    return 0


def approve_written(state: GatewayState, names: Sequence[str]) -> None:
    """Approve entries that the user just wrote, and show each, or what it still needs."""
    for name in names:
        added = state.config.find(name)
        if isinstance(added, gateway.InvalidServer):
            print(f"  {name}: cannot be used yet. {added.reason}")
        else:
            state.trust.approve(added)
            print(f"  {name}: {added.shown}")


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
        if arguments.env and not unknown and all(re.match(r"\w+=", word) for word in rest):
            # Several variables after one `--env`.
            arguments.env, rest = [*arguments.env, *rest], []
        if rest or unknown:
            extra = (rest or unknown)[0]
            raise _refused(f"unexpected argument `{extra}` before `--`.", "Write the command after `--`.")
        return name, command
    is_address = bool(rest) and _ADDRESS.match(rest[0]) is not None
    if unknown or (rest and not is_address and any(word.startswith("-") for word in ours[ours.index(rest[0]) :])):
        line = shlex.join(["trysquare", "gateway", "add", name, "--", *ours[1:]])
        raise _refused("cannot tell options of the command from options of `gateway add`.", f"Write: {line}")
    if is_address and arguments.url is None:
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
    if arguments.transport == "stdio":
        raise _refused("`--transport stdio` is for a command, and this server has an address.", "Use http or sse.")
    kind = arguments.transport or ("sse" if arguments.sse else "http")
    entry: dict[str, Any] = {"type": kind, "url": arguments.url}
    return {**entry, "headers": dict(map(_header, arguments.header))} if arguments.header else entry


def _process(arguments: argparse.Namespace, command: list[str]) -> dict[str, Any]:
    if arguments.header or arguments.sse or arguments.transport not in (None, "stdio"):
        option = "--header" if arguments.header else "--sse" if arguments.sse else f"--transport {arguments.transport}"
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


def _header(text: str) -> tuple[str, str]:
    """`Name: value`, as HTTP writes it, or `NAME=VALUE`."""
    name, colon, value = text.partition(":")
    return (name.strip(), value.strip()) if colon and "=" not in name else _pair(text)


def _refused(problem: str, hint: str) -> ConfigurationError:
    return ConfigurationError(problem, where="gateway add", hint=hint)


def _remove(arguments: argparse.Namespace) -> None:
    with open_state(arguments) as state:
        file = state.config.paths[0]
        if (entry := state.config.servers.get(arguments.name)) is not None:
            file = next(path for path in state.config.paths if str(path.absolute()) == entry.location.file)
        gateway.remove_server(file, arguments.name)
        state.registry.forget(arguments.name)
    print(f"Removed `{arguments.name}` from {file}.")


async def _login(arguments: argparse.Namespace) -> None:
    server = require_usable(gateway.read_config(*_config_files(arguments)), arguments.name)
    if gateway.TRANSPORTS[server.transport].login_method is None:
        raise ConfigurationError(
            f"The server `{server.name}` is a local process and has no login.", where=str(server.location)
        )
    require_extra("login", "httpx2", "mcp", feature="`gateway login`", code=ErrorCode.UPSTREAM_UNAVAILABLE)
    if arguments.remove:
        gone = SystemSecrets().remove(gateway.login_name(server))
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
    signed_in = await gateway.sign_in(server, SystemSecrets(), show=show)
    print(f"{'Signed in to' if signed_in else 'Nobody needs to sign in to'} `{server.name}` ({server.shown}).")


def _has_screen() -> bool:
    """Whether a browser opens in a window; a text browser would take over the terminal."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _secret(arguments: argparse.Namespace) -> None:
    name: str = arguments.name
    if arguments.remove:
        gone = SystemSecrets().remove(name)
        print(f"Deleted the secret `{name}`." if gone else f"There was no secret `{name}`.")
        return
    if sys.stdin.isatty():
        value = getpass.getpass(f"The secret `{name}`: ")
    else:
        value = sys.stdin.read().removesuffix("\n").removesuffix("\r")
    if not value:
        raise ConfigurationError("The secret is empty; nothing was stored.")
    SystemSecrets().write(name, value)
    reference = name if name.startswith("input:") else f"keyring:{name}"
    print(f"Stored the secret `{name}`. Refer to it in a file as ${{{reference}}}.")


_LOGIN = (
    option("name", metavar="NAME", help="the server's name in the file", complete=server_names),
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
_NAME = option("name", metavar="NAME", help="the server's name", complete=server_names)
ADD = Command(
    _add,
    (_use_usage, _WORDS, *_ENTRY),
    "add a server to the file",
    examples=(
        "trysquare gateway add git -- uvx mcp-server-git --repository .",
        "trysquare gateway add docs https://docs.example/mcp -H 'X-Key: ${DOCS_KEY}'",
        "trysquare gateway add time --scope user --env LOG=1 -- uvx mcp-server-time",
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
