"""Configuration files of the gateway, as MCP clients use them: read all servers, add or remove one."""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from trysquare.core.errors import ConfigurationError
from trysquare.core.json import JsonObject
from trysquare.core.text import closest_names
from trysquare.files.edit import edit_text, read_file, replace_file
from trysquare.files.jsonc import append_item, find, put_entry, read_tree, remove_entry, remove_item
from trysquare.gateway.config.entries import read_entry, tool_name
from trysquare.gateway.config.file import Section, parse_text, read_text
from trysquare.gateway.config.variables import Variables
from trysquare.gateway.models import ConfigLocation, InvalidServer, ServerConfig, ServerEntry
from trysquare.store import Secrets, SystemSecrets

_EDITOR_FOLDERS = frozenset({".trysquare", ".vscode", ".cursor", ".idea", ".claude", ".gemini", ".roo"})
_NEW_SECTION = ("mcpServers",)
_NOWHERE = ConfigLocation(file="")


@dataclass(frozen=True, kw_only=True, slots=True)
class GatewayConfig:
    """The servers of one file or several."""

    paths: tuple[Path, ...]
    servers: Mapping[str, ServerEntry] = field(default_factory=dict[str, ServerEntry])
    """By name, in the order of the files; invalid ones too."""
    disabled: tuple[str, ...] = ()
    """Names of servers that the files disable."""

    def find(self, name: str) -> ServerEntry:
        """The server of a name. Raises `ConfigurationError` with the closest name."""
        found = self.servers.get(name)
        if found is not None:
            return found
        where = ", ".join(str(path) for path in self.paths) or None
        if name in self.disabled:
            raise ConfigurationError(f"Server `{name}` is disabled.", where=where, hint="Enable it first.")
        near = closest_names(name, self.servers)
        known = f"Did you mean `{near[0]}`?" if near else f"Configured servers: {', '.join(self.servers) or 'none'}."
        hint = known if self.paths else "Name the file with --gateway MCP_JSON."
        raise ConfigurationError(f"Unknown server `{name}`.", where=where, hint=hint)

    def usable(self) -> dict[str, ServerConfig]:
        return {name: entry for name, entry in self.servers.items() if isinstance(entry, ServerConfig)}

    @property
    def digest(self) -> str:
        servers = [asdict(replace(entry, location=_NOWHERE)) for entry in self.servers.values()]
        return hashlib.sha256(json.dumps(servers, sort_keys=True, default=sorted).encode()).hexdigest()


def read_config(*paths: Path, env: Mapping[str, str] = os.environ, secrets: Secrets | None = None) -> GatewayConfig:
    """Read the files. A wrong entry is an `InvalidServer`; an unreadable file raises `ConfigurationError`."""
    secrets = SystemSecrets(env) if secrets is None else secrets
    entries: list[ServerEntry] = []
    disabled: list[str] = []
    for path in dict.fromkeys(path.absolute() for path in paths):
        text = read_text(path)
        folder, defaults = workspace_of(text.path), text.input_defaults()
        variables = Variables(env=env, secrets=secrets.read, workspace=folder, input_defaults=defaults)
        for raw in text.entries():
            entry = read_entry(raw, variables)
            if entry is None:
                disabled.append(raw.label)
            else:
                entries.append(entry)
    return GatewayConfig(paths=tuple(paths), servers=_by_name(entries), disabled=tuple(disabled))


def workspace_of(path: Path) -> Path:
    """The directory of a configuration: its own, or the parent of an editor's directory."""
    folder = path.absolute().parent
    return folder.parent if folder.name in _EDITOR_FOLDERS else folder


def _by_name(entries: Iterable[ServerEntry]) -> Mapping[str, ServerEntry]:
    """The servers by name. Those with the same tool name are all invalid, since no order makes one of them right."""
    by_tool: defaultdict[str, list[ServerEntry]] = defaultdict(list)
    for entry in entries:
        # The same entry in two files is one server.
        if entry not in by_tool[entry.tool_name]:
            by_tool[entry.tool_name].append(entry)
    found: dict[str, ServerEntry] = {}
    for tool, group in by_tool.items():
        for number, entry in enumerate(group if len(group) == 1 else _collision(group)):
            numbered = (f"{tool}_{suffix}" for suffix in count(number + 1))
            free = tool if number == 0 else next(name for name in numbered if name not in by_tool)
            found.setdefault(entry.name, replace(entry, tool_name=free))
    return found


def _collision(group: list[ServerEntry]) -> list[InvalidServer]:
    entries = " and ".join(f"`{entry.name}` at {entry.location}" for entry in group)
    reason = f"More than one server would be the tool `{group[0].tool_name}`: {entries}. Rename all but one."
    return [
        InvalidServer(name=entry.name, tool_name=entry.tool_name, reason=reason, location=entry.location)
        for entry in group
    ]


def written_entries(path: Path) -> dict[str, Any]:
    """The entries of a file as they are written, by name; none if the file does not exist."""
    before = read_file(path)
    if edit_text(path, before, read_tree) is None:
        return {}
    return {entry.label: entry.node.value for entry in parse_text(path, before).entries()}


def add_server(path: Path, name: str, entry: JsonObject) -> None:
    """Add a server to a file, created if necessary. Comments and order are preserved."""
    before = read_file(path)
    file = None if edit_text(path, before, read_tree) is None else parse_text(path, before)
    for other in () if file is None else file.entries():
        if tool_name(other.label) == tool_name(name):
            raise ConfigurationError(
                f"Server `{other.label}` already exists with the same tool name.",
                where=str(other.file.location(other.node)),
                hint=f"Choose another name, or run `trysquare gateway remove {other.label}` first.",
            )
    section = None if file is None else next(file.sections(), None)
    after = edit_text(path, before, _addition(name, entry, section))
    _require_valid(path, name, after)
    replace_file(path, before, after, keep_backup=False)


def remove_server(path: Path, name: str) -> None:
    """Remove a server from a file."""
    before = read_file(path)
    file = parse_text(path, before)
    for section in file.sections():
        after = edit_text(path, before, _removal(name, section))
        if after != before:
            replace_file(path, before, after, keep_backup=False)
            return
    names = [entry.label for entry in file.entries()]
    near = closest_names(name, names)
    hint = f"Did you mean `{near[0]}`?" if near else f"Servers of the file: {', '.join(names) or 'none'}."
    raise ConfigurationError(f"Unknown server `{name}`.", where=str(path), hint=hint)


class _AllSet(dict[str, str]):
    """An environment in which every variable has the same value."""

    def get(self, key: str, default: Any = None) -> Any:
        return self["value"]


def _require_valid(path: Path, name: str, after: str) -> None:
    """Reject an invalid entry before it is written; a variable may stand for a whole URL or for a part of it."""
    written = next(entry for entry in parse_text(path, after).entries() if entry.label == name)
    reads = [
        read_entry(written, Variables(env=_AllSet(value=value), secrets=lambda _: "80", workspace=path.parent))
        for value in ("https://x", "80")
    ]
    if isinstance(read := reads[0], InvalidServer) and isinstance(reads[1], InvalidServer):
        raise ConfigurationError(f"{read.reason} Nothing was written.", where=f"server `{name}`")


def _addition(name: str, entry: JsonObject, section: Section | None) -> Callable[[str], str]:
    if section is not None and section.node.items is not None:
        return lambda text: append_item(text, section.path, {"name": name, **entry})
    path = _NEW_SECTION if section is None else section.path
    return lambda text: put_entry(text, [*path, name], entry)


def _removal(name: str, section: Section) -> Callable[[str], str]:
    if section.node.items is None:
        return lambda text: remove_entry(text, [*section.path, name])
    named = [find(item.node, "name") for item in section.node.items]
    found = [index for index, node in enumerate(named) if node is not None and node.value == name]
    return lambda text: remove_item(text, section.path, found[-1]) if found else text
