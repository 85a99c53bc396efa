"""`trysquare gateway import`: take over the servers that another MCP client has."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trysquare import gateway
from trysquare.cli.clients import (
    CLIENTS,
    Client,
    FoundServer,
    Place,
    find_client,
    servers_of,
    starts_trysquare,
    this_place,
)
from trysquare.cli.command import Command, option
from trysquare.cli.gateway_config import SCOPE, approve_written, open_state, target_file
from trysquare.cli.options import add_gateway_options, load_and_log
from trysquare.cli.terminal import count, print_table
from trysquare.core.errors import ConfigurationError
from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.core.redaction import is_secret_name, mask_tokens
from trysquare.core.text import closest_names
from trysquare.store import SystemSecrets

_KNOWN = frozenset({
    "command", "args", "env", "environment", "envFile", "cwd", "workingDirectory", "server_script_path", "type",
    "transport", "url", "serverUrl", "httpUrl", "headers", "requestHeaders", "headersHelper", "oauth", "auth",
    "timeout", "description", "tools", "includeTools", "excludeTools", "disabledTools", "disabled_tools", "x-trysquare",
})  # fmt: skip
"""Keys of an entry that the gateway reads; the rest is about the client itself."""
_BARE_VARIABLE = re.compile(r"(?<![$\\])\$([A-Za-z_][A-Za-z0-9_]*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Import:
    """One server to take over, with its secrets apart."""

    found: FoundServer
    entry: JsonObject
    secrets: dict[str, str]


def _import(arguments: argparse.Namespace) -> int | None:
    place = this_place(load_and_log(arguments).settings.project.resolve())
    if arguments.client is None:
        return _print_clients(place)
    client = find_client(arguments.client, "gateway import")
    file = target_file(arguments)
    chosen = _chosen(client, place, arguments.names)
    imports = [_prepared(client, each, place, file, keep_secrets=arguments.keep_secrets) for each in chosen]
    present = gateway.written_entries(file)
    new = [each for each in imports if _is_new(each, present, force=arguments.force)]
    if not imports:
        print(f"{client.title} has no servers to import.")
    elif arguments.print:
        _print_plan(new, file)
    elif new:
        _write(arguments, new, present, file)
    return 0


def _chosen(client: Client, place: Place, names: Sequence[str]) -> list[FoundServer]:
    """The enabled servers of a client other than this program; of a name in two files the first."""
    found: dict[str, FoundServer] = {}
    for each in servers_of(client, place):
        if each.entry.get("disabled") is True or each.entry.get("enabled") is False:
            print(f"Skipped `{each.name}`: it is switched off in {each.file}.")
        elif starts_trysquare(each.entry):
            print(f"Skipped `{each.name}`: it is Trysquare itself.")
        else:
            found.setdefault(each.name, each)
    for name in names:
        if name not in found:
            near = closest_names(name, found)
            hint = f"Did you mean `{near[0]}`?" if near else f"It has: {', '.join(found) or 'none'}."
            raise ConfigurationError(f"{client.title} has no server `{name}`.", where="gateway import", hint=hint)
    return [each for name, each in found.items() if not names or name in names]


def _prepared(client: Client, found: FoundServer, place: Place, file: Path, *, keep_secrets: bool) -> Import:
    entry = readable_entry(client, found)
    if found.scope != "user" and file.parent not in (place.project, place.project / ".trysquare"):
        # Elsewhere, what is relative to the project would mean another place.
        entry = as_object(_each_text(entry, lambda text: text.replace("${workspaceFolder}", str(place.project))))
        if "command" in entry:
            entry.setdefault("cwd", str(place.project))
    secrets: dict[str, str] = {}
    return Import(
        found=found, entry=entry if keep_secrets else _without_secrets(found.name, entry, secrets), secrets=secrets
    )


def readable_entry(client: Client, found: FoundServer) -> JsonObject:
    """A client's entry in the words that the gateway reads."""
    entry = {key: value for key, value in _from_toml(found.entry).items() if key in _KNOWN}
    if client.bare_variables:
        entry = as_object(_each_text(entry, lambda text: _BARE_VARIABLE.sub(r"${\1}", text)))
    return entry


def _from_toml(entry: JsonObject) -> JsonObject:
    """Codex's own keys in the words of the others."""
    headers = {**as_object(entry.get("headers")), **as_object(entry.get("http_headers"))}
    headers |= {name: f"${{{variable}}}" for name, variable in as_object(entry.get("env_http_headers")).items()}
    if token := entry.get("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{token}}}"
    names = [str(as_object(each).get("name", each)) for each in as_list(entry.get("env_vars"))]
    env = {**{name: f"${{{name}}}" for name in names}, **as_object(entry.get("env"))}
    moved = {"includeTools": entry.get("enabled_tools"), "excludeTools": entry.get("disabled_tools")}
    seconds = {"timeout": entry.get("tool_timeout_sec"), "start_timeout": entry.get("startup_timeout_sec")}
    own = {**as_object(entry.get("x-trysquare")), **{key: value for key, value in seconds.items() if value}}
    added = {"headers": headers, "env": env, "x-trysquare": own, **moved}
    return {**entry, **{key: value for key, value in added.items() if value}}


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {key: _each_text(part, change) for key, part in as_object(value).items()}
    if isinstance(value, list):
        return [_each_text(part, change) for part in as_list(value)]
    return change(value) if isinstance(value, str) else value


def _without_secrets(server: str, entry: JsonObject, secrets: dict[str, str]) -> JsonObject:
    """The entry with `${keyring:…}` for literal secrets, which are added to `secrets`."""

    def moved(name: str, text: Any, *, is_secret: bool) -> Any:
        if not isinstance(text, str) or not text or "${" in text or not (is_secret or mask_tokens(text) != text):
            return text
        secrets[f"{server}.{name}"] = text
        return f"${{keyring:{server}.{name}}}"

    changed = dict(entry)
    for key in ("env", "environment", "headers", "requestHeaders"):
        if table := as_object(entry.get(key)):
            changed[key] = {name: moved(name, text, is_secret=is_secret_name(name)) for name, text in table.items()}
    for key in ("url", "serverUrl", "httpUrl", "auth"):
        if isinstance(entry.get(key), str):
            changed[key] = moved(key, entry[key], is_secret=key == "auth" and entry[key] != "oauth")
    for key in ("args", "command"):
        if words := as_list(entry.get(key)):
            held = gateway.secret_positions([str(word) for word in words])
            changed[key] = [moved(f"{key}{at}", word, is_secret=at in held) for at, word in enumerate(words)]
    return changed


def _is_new(each: Import, present: dict[str, Any], *, force: bool) -> bool:
    name = each.found.name
    if name not in present:
        return True
    if present[name] == each.entry:
        print(f"Unchanged: `{name}`.")
    elif force:
        return True
    else:
        print(f"Skipped `{name}`: the file has another server of this name. --force replaces it.")
    return False


def _print_plan(new: Sequence[Import], file: Path) -> None:
    if not new:
        return
    print(f"Would add to {file}:")
    print(json.dumps({"mcpServers": {each.found.name: each.entry for each in new}}, indent=2, ensure_ascii=False))
    for name in (name for each in new for name in each.secrets):
        print(f"Would store a secret for ${{keyring:{name}}}.")


def _write(arguments: argparse.Namespace, new: Sequence[Import], present: dict[str, Any], file: Path) -> None:
    secrets = SystemSecrets()
    for each in new:
        if each.found.name in present:
            gateway.remove_server(file, each.found.name)
        for name, value in each.secrets.items():
            secrets.write(name, value)
        gateway.add_server(file, each.found.name, each.entry)
    stored = sum(len(each.secrets) for each in new)
    print(f"Added {count(len(new), 'server')} to {file}.")
    with open_state(arguments, file) as state:
        approve_written(state, [each.found.name for each in new])
    if stored:
        print(f"Stored {count(stored, 'secret')} outside the file, which refers to them as ${{keyring:…}}.")
    if arguments.keep_secrets and arguments.scope in (None, "project"):
        print("Secrets were copied as they are: do not commit this file.")
    print(f"Try them: trysquare gateway test --gateway {file}")


def _print_clients(place: Place) -> None:
    rows: list[tuple[str, str, str, str]] = []
    for client in CLIENTS.values():
        try:
            found = list(servers_of(client, place))
        except ConfigurationError as error:
            rows.append((client.name, client.title, "?", str(error)))
            continue
        names = dict.fromkeys(each.name for each in found if not starts_trysquare(each.entry))
        rows.append((client.name, client.title, str(len(names)), ", ".join(names)))
    print_table(("CLIENT", "NAME", "SERVERS", "WHICH"), rows)
    print("\nRun `trysquare gateway import CLIENT` to use its servers behind the gateway.")


_NAMES = option("names", metavar="NAME", nargs="*", help="the servers to import (default: all)")
_OPTIONS = (
    option("client", metavar="CLIENT", nargs="?", help="the client (default: list them)", complete=CLIENTS),
    _NAMES,
    option("--print", action="store_true", help="show what would be written, and write nothing"),
    option("--force", action="store_true", help="replace servers of the same name"),
    option("--keep-secrets", action="store_true", help="copy literal secrets instead of moving them to the keyring"),
    SCOPE,
    add_gateway_options,
)
IMPORT = Command(
    _import,
    _OPTIONS,
    "take over the servers that an MCP client has",
    examples=(
        "trysquare gateway import",
        "trysquare gateway import claude-code --print",
        "trysquare gateway import cursor github --scope user",
    ),
)
