"""The MCP clients that `trysquare install` knows: where each keeps its servers, in what form, and how much it takes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from trysquare.core.types import JsonObject

Scope: TypeAlias = Literal["user", "project"]
Format: TypeAlias = Literal["json", "toml"]

PROFILES_BY_SIZE = ("full", "levels", "gateway", "search")
"""From the longest listing to the shortest."""


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Client:
    """One MCP client."""

    name: str
    title: str
    files: Mapping[Scope, Callable[[Place], Path]]
    """Its configuration file, for each scope that it has."""
    table: str
    """The name of the object that holds the servers."""
    format: Format = "json"
    typed: bool = False
    """Whether an entry says `"type": "stdio"`."""
    most_tools: int | None = None
    """How many tools it sends to its model, from all servers together; None where no such limit is known."""
    name_room: int | None = None
    """How long a tool's name may be in the frame that the client puts it in; None where no limit is known."""
    name_frame: str = "mcp__{server}__{tool}"
    program: str | None = None
    """Its command, where it has one: a sign that it is installed."""
    afterwards: str = "Restart it to load the server."

    def entry(self, command: str, arguments: list[str]) -> JsonObject:
        """What the client's file says of one server that it starts itself."""
        kind: JsonObject = {"type": "stdio"} if self.typed else {}
        return {**kind, "command": command, "args": arguments}


def _vs_code_user(place: Place) -> Path:
    return place.config_folder() / "Code" / "User" / "mcp.json"


def _claude_desktop(place: Place) -> Path:
    return place.config_folder() / "Claude" / "claude_desktop_config.json"


def _codex_home(place: Place) -> Path:
    return Path(place.environ.get("CODEX_HOME") or place.home / ".codex") / "config.toml"


CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        Client(
            name="claude-code",
            title="Claude Code",
            files={
                "user": lambda place: place.home / ".claude.json",
                "project": lambda place: place.project / ".mcp.json",
            },
            program="claude",
            table="mcpServers",
            typed=True,
            name_room=64,
            afterwards="Start a new session, or run /mcp in one.",
        ),
        Client(
            name="claude-desktop",
            title="Claude Desktop",
            files={"user": _claude_desktop},
            table="mcpServers",
            most_tools=128,
            name_room=64,
            afterwards="Quit it completely and start it again.",
        ),
        Client(
            name="cursor",
            title="Cursor",
            files={
                "user": lambda place: place.home / ".cursor" / "mcp.json",
                "project": lambda place: place.project / ".cursor" / "mcp.json",
            },
            program="cursor",
            table="mcpServers",
            most_tools=40,
            name_room=59,
            name_frame="{server}{tool}",
            afterwards="Look for the green dot under Settings, MCP.",
        ),
        Client(
            name="vscode",
            title="VS Code",
            files={
                "user": _vs_code_user,
                "project": lambda place: place.project / ".vscode" / "mcp.json",
            },
            program="code",
            table="servers",
            typed=True,
            most_tools=128,
            name_room=64,
            name_frame="mcp_{server}_{tool}",
            afterwards='Start it with "MCP: List Servers".',
        ),
        Client(
            name="codex",
            title="Codex",
            files={"user": _codex_home, "project": lambda place: place.project / ".codex" / "config.toml"},
            program="codex",
            table="mcp_servers",
            format="toml",
            most_tools=128,
            name_room=64,
            afterwards="Start a new session; /mcp lists the servers.",
        ),
        Client(
            name="gemini-cli",
            title="Gemini CLI",
            files={
                "user": lambda place: place.home / ".gemini" / "settings.json",
                "project": lambda place: place.project / ".gemini" / "settings.json",
            },
            program="gemini",
            table="mcpServers",
            most_tools=512,
            name_room=63,
            name_frame="mcp_{server}_{tool}",
            afterwards="Start a new session; /mcp lists the servers.",
        ),
    )
}


def this_place(project: Path) -> Place:
    """The computer that this process runs on."""
    return Place(home=Path.home(), project=project, environ=dict(os.environ))


def fitting_profile(counts: Mapping[str, int], client: Client) -> str:
    """The longest listing that the client takes; the shortest if none fits."""
    room = client.most_tools
    offered = [profile for profile in PROFILES_BY_SIZE if profile in counts]
    if room is None:
        return offered[0]
    return next((profile for profile in offered if counts[profile] <= room), offered[-1])


def overlong_names(client: Client, server: str, tools: list[str]) -> list[str]:
    """The tools whose name, as the client writes it, is longer than it allows."""
    room = client.name_room
    return [tool for tool in tools if room and len(client.name_frame.format(server=server, tool=tool)) > room]
