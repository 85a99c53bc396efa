"""Profiles: which tools of a set are listed. Whatever is listed, every tool stays callable by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trysquare.core.errors import ConfigurationError
from trysquare.core.nearest import nearest
from trysquare.core.tool import Tool
from trysquare.core.toolset import Toolset

PROFILES = ("full", "levels", "gateway", "search")
ROOMS = ("tools", "bots", "gateway", "debug", "guide", "workbench", "agents")
ROOM_DEFAULTS = {"gateway": "levels"}
"""The profile of a room as long as nobody chose one; of every other room it is `full`."""
CATALOG_ROOM = "catalog"
"""The room of `find_tools` and `call_tool`, which serve every room whose profile is `search`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProfileChoice:
    """The profile of each room, and the one of all rooms that are not named; None leaves each to its own."""

    default: str | None = None
    rooms: Mapping[str, str] = field(default_factory=dict[str, str])

    def of_room(self, room: str) -> str:
        """The profile that a room is listed in."""
        if room == CATALOG_ROOM and "search" in self.rooms.values():
            return "search"
        return self.rooms.get(room) or self.default or ROOM_DEFAULTS.get(room, "full")


def parse_profiles(choices: Iterable[str], *, rooms: Iterable[str] = ROOMS) -> ProfileChoice:
    """Read `levels` (for all rooms) and `bots=levels` (for one). A later choice for the same room wins."""
    default: str | None = None
    by_room: dict[str, str] = {}
    known_rooms = tuple(rooms)
    for choice in choices:
        room, separator, profile = choice.strip().rpartition("=")
        _require_known("profile", profile.strip(), PROFILES, choice)
        if separator:
            _require_known("room", room.strip(), known_rooms, choice)
            by_room[room.strip()] = profile.strip()
        else:
            default = profile.strip()
    return ProfileChoice(default=default, rooms=by_room)


def listed(toolset: Toolset, choice: ProfileChoice) -> Sequence[Tool]:
    """The tools that a client sees in its list: those of the room's profile, and the pinned ones."""
    return tuple(tool for tool in toolset.tools() if is_listed(tool, choice))


def is_listed(tool: Tool, choice: ProfileChoice) -> bool:
    """Whether a tool is shown under a choice of profiles."""
    return tool.metadata.pinned or choice.of_room(tool.metadata.room) in tool.metadata.profiles


def _require_known(kind: str, name: str, known: Sequence[str], choice: str) -> None:
    if name in known:
        return
    close = nearest(name, known)
    meant = f" `{close[0]}` is meant, it seems." if close else ""
    raise ConfigurationError(
        f"There is no {kind} `{name}`.{meant}",
        where=f"profile `{choice}`",
        hint=f"The {kind}s are {', '.join(f'`{one}`' for one in known)}.",
    )
