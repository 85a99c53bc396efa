"""`trysquare install`: add the server to the configuration of an MCP client."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from trysquare.app import open_app
from trysquare.catalog import ProfileChoice
from trysquare.catalog.toolset import listed
from trysquare.cli.clients import (
    CLIENTS,
    Client,
    EntryPlace,
    Scope,
    client_file,
    find_client,
    installed_entry,
    this_place,
)
from trysquare.cli.command import Command, option
from trysquare.cli.options import add_shared_options, load_and_log
from trysquare.cli.terminal import print_table, say
from trysquare.core.errors import ConfigurationError
from trysquare.core.json import JsonObject
from trysquare.files import toml as toml_lines
from trysquare.files.edit import edit_text, read_file, replace_file
from trysquare.settings.keys import Key, all_keys
from trysquare.settings.load import Loaded, value_of
from trysquare.settings.model import CliOption

PROFILES_BY_SIZE = ("full", "levels", "gateway", "search")
"""From the longest listing to the shortest."""


def fitting_profile(counts: Mapping[str, int], client: Client) -> str:
    """The longest listing that the client takes; the shortest if none fits."""
    limit = client.most_tools
    offered = [profile for profile in PROFILES_BY_SIZE if profile in counts]
    return next((profile for profile in offered if limit is None or counts[profile] <= limit), offered[-1])


def overlong_names(client: Client, server: str, tools: list[str]) -> list[str]:
    """The tools whose name, as the client writes it, is longer than it allows."""
    framed = {tool: client.name_frame.format(server=server, tool=tool) for tool in tools}
    return [tool for tool in tools if len(framed[tool]) > client.longest_name]


_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
_NEW_MODES: Mapping[Scope, int] = {"user": 0o600, "project": 0o644}
"""A user's file may come to hold keys; a project's is shared."""


_ABOUT_NAME = "name of the server in the client (default: trysquare)"
_ABOUT_SCOPE = "configuration file to change (default: user)"
_OPTIONS = (
    option("client", metavar="CLIENT", nargs="?", help=f"one of {', '.join(CLIENTS)}", complete=CLIENTS),
    option("--name", metavar="NAME", default="trysquare", help=_ABOUT_NAME),
    option("--scope", choices=("user", "project"), default="user", help=_ABOUT_SCOPE),
    option("--print", action="store_true", help="print the entry and write nothing"),
    option("--remove", action="store_true", help="remove the entry"),
    option("--dry-run", action="store_true", help="show what would change and write nothing"),
    option("--force", action="store_true", help="replace another entry of the same name"),
    add_shared_options,
)


def run(arguments: argparse.Namespace) -> int | None:
    """Install, remove or print the entry; without a client, show the clients."""
    if arguments.client is None:
        return _print_clients()
    if arguments.print and arguments.remove:
        raise ConfigurationError("cannot be used together with --remove.", where="--print", hint="Choose one.")
    loaded = load_and_log(arguments)
    place = _place(arguments, loaded)
    if arguments.remove:
        return _remove(place, dry=arguments.dry_run)
    entry = asyncio.run(_entry(arguments, loaded, place))
    if arguments.print:
        print(_shown_entry(place, entry))
        return 0
    return _write(place, entry, force=arguments.force, dry=arguments.dry_run)


def _place(arguments: argparse.Namespace, loaded: Loaded) -> EntryPlace:
    client = find_client(arguments.client, "install")
    if not _NAME.fullmatch(arguments.name):
        raise ConfigurationError("A server's name has 1 to 32 letters, digits, `_` or `-`.", where="--name")
    scope = cast(Scope, arguments.scope)
    if scope not in client.files:
        raise ConfigurationError(f"{client.title} has no {scope} configuration.", where="--scope", hint="Leave it out.")
    file = client_file(client, client.files[scope], this_place(loaded.settings.project.resolve()))
    return EntryPlace(client=client, file=file, name=arguments.name, scope=scope)


async def _entry(arguments: argparse.Namespace, loaded: Loaded, place: EntryPlace) -> JsonObject:
    profile = await _checked_profile(loaded, place)
    command, *before = server_command()
    words = [*before, "serve", *server_options(arguments, loaded), *(("--profile", profile) if profile else ())]
    launch = {"command": [command, *words]} if place.client.joins_command else {"command": command, "args": words}
    return {**({"type": place.client.type} if place.client.type else {}), **launch}


async def _checked_profile(loaded: Loaded, place: EntryPlace) -> str | None:
    """The profile to write: None where the user chose one, or where the whole listing fits."""
    async with open_app(loaded.settings, origins=loaded.origins, prestart=False, lifespans=False) as app:
        counts = {profile: len(listed(app.toolset, ProfileChoice(default=profile))) for profile in PROFILES_BY_SIZE}
        # Without a profile each toolset has its own default, which may be shorter than `full`.
        default = {"full": len(listed(app.toolset, ProfileChoice()))}
        chosen = None if loaded.settings.profile else fitting_profile({**counts, **default}, place.client)
        tools = listed(app.toolset, app.profiles if chosen in (None, "full") else ProfileChoice(default=chosen))
        say(_about_listing(place.client, chosen, len(tools), counts["full"]))
        for tool in overlong_names(place.client, place.name, [tool.name for tool in tools]):
            say(f"`{tool}` is too long for {place.client.title} with the server's name; choose a shorter --name.")
    return None if chosen == "full" else chosen


def _about_listing(client: Client, chosen: str | None, count: int, full: int) -> str:
    takes = "any number of tools" if client.most_tools is None else f"{client.most_tools} tools from all its servers"
    profile = "the profile that you chose" if chosen is None else f"profile `{chosen}`"
    if chosen == "full" and count < full:
        profile = "the default list"
    line = f"{client.title} takes {takes}: {profile} lists {count} of {full}."
    if client.most_tools is not None and count > client.most_tools:
        return line + " That is too many; the client drops the rest. Choose --profile search."
    return line


def server_command() -> list[str]:
    """The absolute command that starts this very installation, whatever folder and PATH a client has."""
    beside = Path(sys.executable).parent / "trysquare"
    if beside.is_file() and os.access(beside, os.X_OK):
        return [str(beside)]
    return [sys.executable, "-m", "trysquare"]


def server_options(arguments: argparse.Namespace, loaded: Loaded) -> list[str]:
    """What options and environment say here, as options of the entry: a client has neither our folder nor our shell."""
    words: list[str] = []
    for key in all_keys().values():
        origin = loaded.origins.get(key.name)
        is_given = origin is not None and origin.source in ("option", "environment")
        if is_given and key.option is not None and key.name != "project":
            words += _option_words(key, key.option, value_of(loaded.settings, key.name))
    if (config := getattr(arguments, "config", None)) is not None:
        words += ["--config", str(Path(config).expanduser().absolute())]
    return [*words, "--project", str(loaded.settings.project.resolve())]


def _option_words(key: Key, option: CliOption, value: Any) -> list[str]:
    if option.metavar is None:
        return [key.flag if value else key.flag.replace("--", "--no-", 1)]
    values = cast(tuple[Any, ...], value) if key.is_list else (value,)
    # An empty text, or one that looks like an option, is taken as a value only behind `=`.
    return [
        word
        for one in map(str, values)
        for word in ([f"{key.flag}={one}"] if not one or one.startswith("-") else [key.flag, one])
    ]


def _write(place: EntryPlace, entry: JsonObject, *, force: bool, dry: bool) -> int | None:
    before = read_file(place.file)
    old = installed_entry(place)
    if old == entry:
        print(f"Unchanged: {place.file} already has `{place.name}`.")
        return 0
    if old is not None and not force:
        print(f"{place.file} has another entry `{place.name}`:\n{_shown_entry(place, old)}")
        print("Nothing was written. Use --force to replace it, or --name to add a second entry.")
        return 1
    after = edit_text(place.file, before, lambda text: place.client.editor.put_entry(text, place.path, entry))
    if dry:
        return _print_difference(place.file, before, after)
    if old is not None:
        print(f"Replaced:\n{_shown_entry(place, old)}")
    backup = replace_file(place.file, before, after, new_mode=_NEW_MODES[place.scope])
    print(f"Added `{place.name}` to {place.file}{_backup_note(backup)}.")
    print(place.client.afterwards)
    return 0


def _remove(place: EntryPlace, *, dry: bool) -> None:
    before = read_file(place.file)
    after = edit_text(place.file, before, lambda text: place.client.editor.remove_entry(text, place.path))
    if after == before:
        print(f"{place.file} has no entry `{place.name}`. Nothing to do.")
    elif dry:
        _print_difference(place.file, before, after)
    else:
        backup = replace_file(place.file, before, after)
        print(f"Removed `{place.name}` from {place.file}{_backup_note(backup)}.")


def _backup_note(backup: Path | None) -> str:
    return f" (backup: {backup.name})" if backup is not None else ""


def _shown_entry(place: EntryPlace, entry: Any) -> str:
    if place.client.editor is toml_lines and isinstance(entry, dict):
        return toml_lines.put_entry("", place.path, cast(JsonObject, entry)).rstrip()
    shown: JsonObject = {place.name: entry}
    for name in reversed(place.path[:-1]):
        shown = {name: shown}
    return json.dumps(shown, indent=2, default=str)


def _print_difference(file: Path, before: str, after: str) -> None:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), str(file), f"{file} (would be)"
    )
    print("".join(line if line.endswith("\n") else line + "\n" for line in lines), end="")


def _print_clients() -> None:
    place = this_place(Path.cwd())
    rows = [
        (client.name, client.title, str(client.most_tools or "any"), str(place.path(client.files["user"])))
        for client in CLIENTS.values()
    ]
    print_table(("CLIENT", "NAME", "TOOLS", "FILE"), rows)
    print("\nRun `trysquare install CLIENT` with the options of `trysquare serve`.")


COMMAND = Command(
    run,
    _OPTIONS,
    examples=(
        "trysquare install",
        "trysquare install claude-code --tools my_module:tools",
        "trysquare install cursor --scope project --dry-run --gateway mcp.json",
    ),
)
