"""MCP clients: where each keeps its configuration on this system, and how entries of servers look there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from trysquare.core.errors import ConfigurationError
from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.core.text import closest_names
from trysquare.files import jsonc
from trysquare.files import toml as toml_lines
from trysquare.files.edit import edit_text, read_file

Scope: TypeAlias = Literal["user", "project"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """The computer that a client runs on, as far as finding its files goes."""

    home: Path
    project: Path
    platform: str = sys.platform
    environ: Mapping[str, str] = field(default_factory=dict[str, str])

    def config_folder(self) -> Path:
        """Where desktop programs keep their configuration on this operating system."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        if self.platform == "win32":
            return Path(self.environ.get("APPDATA") or self.home / "AppData" / "Roaming")
        return Path(self.environ.get("XDG_CONFIG_HOME") or self.home / ".config")

    def fill(self, template: str) -> str:
        """A template such as `{home}/.cursor/mcp.json` with the places of this computer."""
        dot_config = self.home / ".config" if self.platform == "win32" else self.environ.get("XDG_CONFIG_HOME")
        xdg = dot_config or self.home / ".config"
        return template.format(
            home=self.home,
            project=self.project,
            config=self.config_folder(),
            xdg=xdg,
            claude=self.environ.get("CLAUDE_CONFIG_DIR") or self.home,
            codex=self.environ.get("CODEX_HOME") or self.home / ".codex",
            zed=self.config_folder() / "Zed" if self.platform == "win32" else Path(xdg) / "zed",
        )

    def path(self, template: str) -> Path:
        """The path of a template."""
        return Path(self.fill(template))


@dataclass(frozen=True, slots=True)
class MoreServers:
    """A further place where a client keeps servers, which it reads but we never write."""

    scope: str
    file: str
    table: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Client:
    """One MCP client."""

    name: str
    title: str
    files: Mapping[Scope, str]
    """Its configuration file, for each scope that it has, as a template for `Place.path`."""
    table: tuple[str, ...] = ("mcpServers",)
    """The path of the object that holds the servers."""
    older_table: tuple[str, ...] | None = None
    """Where its older versions keep them. A file that has some there is written there."""
    other_names: tuple[str, ...] = ()
    """Other names of the same file; the first one that exists is used."""
    editor: Any = jsonc
    """The module that edits this kind of file."""
    type: str | None = None
    """The `type` in an entry of a command, where the client wants one."""
    joins_command: bool = False
    """Whether the command and its arguments are one list."""
    bare_variables: bool = False
    """Whether `$NAME` in a value is a variable."""
    more: tuple[MoreServers, ...] = ()
    most_tools: int | None = None
    """How many tools it sends to its model, from all servers together; None where no such limit is known."""
    longest_name: int = 64
    """How long a tool's name may be in the frame that the client puts it in."""
    name_frame: str = "mcp__{server}__{tool}"
    program: str | None = None
    """Its command, where it has one: a sign that it is installed."""
    afterwards: str = "Restart it to load the server."


CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        Client(
            name="claude-code",
            title="Claude Code",
            files={"user": "{claude}/.claude.json", "project": "{project}/.mcp.json"},
            program="claude",
            type="stdio",
            more=(MoreServers("local", "{claude}/.claude.json", ("projects", "{project}", "mcpServers")),),
            afterwards="Start a new session, or run /mcp in one.",
        ),
        Client(
            name="claude-desktop",
            title="Claude Desktop",
            files={"user": "{config}/Claude/claude_desktop_config.json"},
            most_tools=128,
            afterwards="Quit it completely and start it again.",
        ),
        Client(
            name="cursor",
            title="Cursor",
            files={"user": "{home}/.cursor/mcp.json", "project": "{project}/.cursor/mcp.json"},
            program="cursor",
            most_tools=40,
            longest_name=59,
            name_frame="{server}{tool}",
            afterwards="Look for the green dot under Settings, MCP.",
        ),
        Client(
            name="vscode",
            title="VS Code",
            files={"user": "{config}/Code/User/mcp.json", "project": "{project}/.vscode/mcp.json"},
            program="code",
            table=("servers",),
            type="stdio",
            more=(
                MoreServers("user", "{config}/Code/User/settings.json", ("mcp", "servers")),
                MoreServers("project", "{project}/.vscode/settings.json", ("mcp", "servers")),
            ),
            most_tools=128,
            name_frame="mcp_{server}_{tool}",
            afterwards='Start it with "MCP: List Servers".',
        ),
        Client(
            name="codex",
            title="Codex",
            files={"user": "{codex}/config.toml", "project": "{project}/.codex/config.toml"},
            program="codex",
            table=("mcp_servers",),
            editor=toml_lines,
            most_tools=128,
            afterwards="Start a new session; /mcp lists the servers.",
        ),
        Client(
            name="gemini-cli",
            title="Gemini CLI",
            files={"user": "{home}/.gemini/settings.json", "project": "{project}/.gemini/settings.json"},
            program="gemini",
            most_tools=512,
            longest_name=63,
            name_frame="mcp_{server}_{tool}",
            bare_variables=True,
            afterwards="Start a new session; /mcp lists the servers.",
        ),
        Client(
            name="windsurf",
            title="Windsurf",
            files={"user": "{home}/.codeium/windsurf/mcp_config.json"},
            program="windsurf",
            most_tools=100,
            afterwards="Press Refresh in its MCP panel.",
        ),
        Client(
            name="zed",
            title="Zed",
            files={"user": "{zed}/settings.json", "project": "{project}/.zed/settings.json"},
            program="zed",
            table=("context_servers",),
            afterwards="Look for the green dot in the Agent panel's settings.",
        ),
        Client(
            name="opencode",
            title="OpenCode",
            files={"user": "{xdg}/opencode/opencode.json", "project": "{project}/opencode.json"},
            other_names=("opencode.jsonc",),
            program="opencode",
            table=("mcp", "servers"),
            older_table=("mcp",),
            more=tuple(
                MoreServers("project", f"{{project}}/.opencode/{name}", ("mcp", "servers"))
                for name in ("opencode.json", "opencode.jsonc")
            ),
            type="local",
            joins_command=True,
        ),
        Client(
            name="lm-studio",
            title="LM Studio",
            files={"user": "{home}/.lmstudio/mcp.json"},
            program="lms",
            afterwards="Switch it on in the chat's integrations.",
        ),
        Client(
            name="kiro",
            title="Kiro",
            files={"user": "{home}/.kiro/settings/mcp.json", "project": "{project}/.kiro/settings/mcp.json"},
            program="kiro",
        ),
        Client(
            name="cline",
            title="Cline",
            files={"user": "{config}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"},
            # Where its newer versions keep what the editor, the command line and the SDK share.
            more=(MoreServers("user", "{home}/.cline/data/settings/cline_mcp_settings.json", ("mcpServers",)),),
        ),
        Client(
            name="roo-code",
            title="Roo Code",
            files={
                "user": "{config}/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
                "project": "{project}/.roo/mcp.json",
            },
        ),
    )
}


def this_place(project: Path) -> Place:
    """The computer that this process runs on."""
    return Place(home=Path.home(), project=project, environ=dict(os.environ))


@dataclass(frozen=True, kw_only=True, slots=True)
class EntryPlace:
    """Location of an entry: a client's file and the path in it."""

    client: Client
    file: Path
    name: str
    scope: Scope = "user"

    @property
    def path(self) -> list[str]:
        return [*table_in(self.client, self.file), self.name]


def client_file(client: Client, template: str, place: Place) -> Path:
    """The file of a client on this computer, under the name that it has there."""
    file = place.path(template)
    named = (file, *(file.with_name(name) for name in client.other_names))
    return next((each for each in named if each.exists()), file)


def table_in(client: Client, file: Path) -> tuple[str, ...]:
    """Where a client's file has its servers."""
    older = client.older_table
    return client.table if older is None or not _servers_at(client, file, older) else older


def _servers_at(client: Client, file: Path, table: tuple[str, ...]) -> JsonObject:
    """The servers in one table of a file; the newer table inside the older one is not one of them."""
    found = as_object(edit_text(file, read_file(file), partial(_read_table, client, table)))
    servers = {name: as_object(entry) for name, entry in found.items() if isinstance(entry, dict)}
    if table != client.older_table:
        return dict(servers)
    return {
        name: entry for name, entry in servers.items() if any(not isinstance(part, dict) for part in entry.values())
    }


def installed_entry(place: EntryPlace, *, everything: bool = False) -> Any | None:
    """What a client's file says of a server, or of all of them. An unreadable file is a `ConfigurationError`."""
    path = place.path[:-1] if everything else place.path
    return edit_text(place.file, read_file(place.file), lambda text: place.client.editor.read_entry(text, path))


def find_client(name: str, where: str) -> Client:
    """The client of a name, or of the beginning of one; an unknown name is a `ConfigurationError`."""
    wanted = name.lower().replace("_", "-").replace(" ", "-")
    same = [each for known, each in CLIENTS.items() if known.replace("-", "") == wanted.replace("-", "")]
    found = same or [each for known, each in CLIENTS.items() if known.startswith(f"{wanted}-")]
    if len(found) == 1:
        return found[0]
    close = [each.name for each in found] or closest_names(name, CLIENTS)
    known = " or ".join(f"`{each}`" for each in close)
    hint = f"Did you mean {known}?" if close else f"The clients are {', '.join(CLIENTS)}."
    raise ConfigurationError(f"unknown client `{name}`.", where=where, hint=hint)


def starts_trysquare(entry: JsonObject) -> bool:
    """Whether an entry of a client starts this program, under any name."""
    command, arguments = entry.get("command"), as_list(entry.get("args"))
    if isinstance(command, list):
        command, *arguments = [*as_list(command), None]
    is_module = arguments[:2] == ["-m", "trysquare"]
    return isinstance(command, str) and (Path(command).stem == "trysquare" or is_module)


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundServer:
    """A server in the configuration of a client."""

    name: str
    entry: JsonObject
    scope: str
    file: Path


def servers_of(client: Client, place: Place) -> Iterator[FoundServer]:
    """The servers that a client has, from all its files. An unreadable file is a `ConfigurationError`."""
    older = () if client.older_table is None else (client.older_table,)
    tables = [(str(scope), client_file(client, file, place), each) for scope, file in client.files.items()
              for each in (client.table, *older)]  # fmt: skip
    tables += [(more.scope, place.path(more.file), tuple(map(place.fill, more.table))) for more in client.more]
    for scope, file, table in tables:
        for name, entry in _servers_at(client, file, table).items():
            yield FoundServer(name=name, entry=as_object(entry), scope=scope, file=file)


def _read_table(client: Client, table: tuple[str, ...], text: str) -> Any:
    return client.editor.read_entry(text, table)
