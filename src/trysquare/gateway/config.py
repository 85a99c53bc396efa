"""What a user sets: the servers behind the gateway, from the file that MCP clients already use."""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path

from trysquare.core.errors import ConfigurationError
from trysquare.core.nearest import nearest
from trysquare.gateway.configuration.entries import read_entry
from trysquare.gateway.configuration.secrets import Secrets, SystemSecrets
from trysquare.gateway.configuration.shapes import ConfigText, read_text
from trysquare.gateway.configuration.variables import Variables
from trysquare.gateway.server import BrokenServer, Place, ServerConfig, ServerEntry

_EDITOR_FOLDERS = frozenset({".vscode", ".cursor", ".idea", ".claude", ".gemini", ".roo"})
_NOWHERE = Place(file="")


@dataclass(frozen=True, kw_only=True, slots=True)
class GatewayConfig:
    """The servers of one file or several."""

    paths: tuple[Path, ...]
    servers: Mapping[str, ServerEntry] = field(default_factory=dict[str, ServerEntry])
    """By name, in the order of the files; broken ones too."""
    disabled: tuple[str, ...] = ()
    """Names of servers that the files switch off."""

    def find(self, name: str) -> ServerEntry:
        """The server of a name. Raises ConfigurationError with the nearest one."""
        found = self.servers.get(name)
        if found is not None:
            return found
        where = ", ".join(str(path) for path in self.paths) or None
        if name in self.disabled:
            raise ConfigurationError(f"The server `{name}` is switched off.", where=where, hint="Switch it on first.")
        near = nearest(name, self.servers)
        known = f"The nearest is `{near[0]}`." if near else f"Known are: {', '.join(self.servers) or 'none'}."
        hint = known if self.paths else "Name the file with --gateway MCP_JSON."
        raise ConfigurationError(f"There is no server `{name}`.", where=where, hint=hint)

    def usable(self) -> dict[str, ServerConfig]:
        """The servers that can be started or reached."""
        return {name: entry for name, entry in self.servers.items() if isinstance(entry, ServerConfig)}

    @property
    def digest(self) -> str:
        """Changes when any server does; what it was made of cannot be read back."""
        told = [asdict(replace(entry, place=_NOWHERE)) for entry in self.servers.values()]
        return hashlib.sha256(json.dumps(told, sort_keys=True, default=sorted).encode()).hexdigest()


def read_config(*paths: Path, env: Mapping[str, str] = os.environ, secrets: Secrets | None = None) -> GatewayConfig:
    """Read the files. A wrong entry is a broken server; a file that cannot be read at all raises ConfigurationError."""
    kept = SystemSecrets(env) if secrets is None else secrets
    entries: list[ServerEntry] = []
    disabled: list[str] = []
    for path in dict.fromkeys(path.absolute() for path in paths):
        text = read_text(path)
        variables = _variables(text, env, kept)
        for raw in text.entries():
            entry = read_entry(raw, variables)
            if entry is None:
                disabled.append(raw.label)
            else:
                entries.append(entry)
    return GatewayConfig(paths=tuple(paths), servers=_by_name(entries), disabled=tuple(disabled))


def _variables(text: ConfigText, env: Mapping[str, str], secrets: Secrets) -> Variables:
    return Variables(
        env=env, secrets=secrets.read, workspace=workspace_of(text.path), input_defaults=text.input_defaults()
    )


def workspace_of(path: Path) -> Path:
    """The folder that a configuration belongs to: its own, or the one above an editor's folder."""
    folder = path.absolute().parent
    return folder.parent if folder.name in _EDITOR_FOLDERS else folder


def _by_name(entries: Iterable[ServerEntry]) -> Mapping[str, ServerEntry]:
    """The servers by name. Those that would be the same tool are all broken, since no order makes one of them right."""
    by_tool: defaultdict[str, list[ServerEntry]] = defaultdict(list)
    for entry in entries:
        # The same entry in two files is one server.
        if entry not in by_tool[entry.tool_name]:
            by_tool[entry.tool_name].append(entry)
    found: dict[str, ServerEntry] = {}
    for tool, group in by_tool.items():
        for number, entry in enumerate(group if len(group) == 1 else _collided(group)):
            free = next(name for name in _numbered(tool, number) if name == tool or name not in by_tool)
            found.setdefault(entry.name, replace(entry, tool_name=free))
    return found


def _collided(group: list[ServerEntry]) -> list[BrokenServer]:
    told = " and ".join(f"`{entry.name}` at {entry.place}" for entry in group)
    reason = f"More than one server would be the tool `{group[0].tool_name}`: {told}. Rename all but one."
    return [
        BrokenServer(name=entry.name, tool_name=entry.tool_name, reason=reason, place=entry.place) for entry in group
    ]


def _numbered(tool: str, number: int) -> Iterator[str]:
    """Names for one of several broken servers, which have to be told apart somehow."""
    if number == 0:
        yield tool
    yield from (f"{tool}_{suffix}" for suffix in count(number + 1))
