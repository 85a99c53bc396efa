"""open_app: configuration -> one toolset. The only module that knows every source."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

from trysquare.catalog.profiles import ProfileChoice, parse_profiles
from trysquare.catalog.toolset import catalogued
from trysquare.core.errors import ConfigurationError, DeclarationError
from trysquare.core.toolset import CombinedToolset, Toolset
from trysquare.settings.load import value_of
from trysquare.settings.model import Settings
from trysquare.settings.named_tools import named_toolset
from trysquare.settings.origin import Origin
from trysquare.wrappers.wrapped import Wrapping, wrapped_toolset

Origins: TypeAlias = Mapping[str, Origin]
Door: TypeAlias = Callable[[Settings, Origins], AbstractAsyncContextManager[Toolset]]
"""A room's door: opens what the room needs and yields its toolset."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """A source of tools: the setting that asks for it, and its door."""

    name: str
    key: str
    door: Door | None = None
    """None as long as the room is not part of this version."""


@dataclass(frozen=True, kw_only=True, slots=True)
class App:
    """What a command or a server needs of a configuration."""

    settings: Settings
    toolset: Toolset
    """All tools as callers see them: wrapped and catalogued."""
    plain: Toolset
    """The same tools as they were declared."""
    profiles: ProfileChoice


@asynccontextmanager
async def python_tools(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """The tools of Python modules, named as `MODULE:NAME`."""
    where = place_of("tools", origins)
    yield CombinedToolset(named_toolset(named, project=settings.project, where=where) for named in settings.tools)


@asynccontextmanager
async def example_tools(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """The example tools. Their module is imported only when they are wanted."""
    from trysquare.example_tools import tools

    yield tools.toolset()


ROOMS = (
    Room(name="tools", key="tools", door=python_tools),
    Room(name="example tools", key="include_example_tools", door=example_tools),
    Room(name="bots", key="bot"),
    Room(name="gateway", key="gateway"),
    Room(name="guide", key="guide"),
    Room(name="workbench", key="workbench"),
    Room(name="debug", key="debug"),
    Room(name="agents", key="agents"),
)


@asynccontextmanager
async def open_app(settings: Settings, *, origins: Origins | None = None) -> AsyncGenerator[App]:
    """Open every room that the settings ask for, and yield their tools as one toolset."""
    known_origins = origins or {}
    async with AsyncExitStack() as stack:
        plain = await _opened(settings, known_origins, stack)
        try:
            served = wrapped_toolset(plain, Wrapping(prefix=settings.prefix or ""))
            toolset = catalogued(served)
        except DeclarationError as error:
            raise ConfigurationError(str(error)) from None
        yield App(settings=settings, toolset=toolset, plain=plain, profiles=parse_profiles(settings.profile))


async def _opened(settings: Settings, origins: Origins, stack: AsyncExitStack) -> Toolset:
    wanted = [room for room in ROOMS if value_of(settings, room.key)]
    doors = [(room, _door(room, origins)) for room in wanted]
    toolsets = [await stack.enter_async_context(door(settings, origins)) for _, door in doors]
    try:
        return CombinedToolset(toolsets)
    except DeclarationError as error:
        raise ConfigurationError(str(error)) from None


def _door(room: Room, origins: Origins) -> Door:
    if room.door is None:
        raise ConfigurationError(
            f"the {room.name} room is not part of this version.", where=place_of(room.key, origins)
        )
    return room.door


def place_of(key: str, origins: Origins) -> str:
    """Where a setting was given: an option's name, or the file and line with the key."""
    origin = origins.get(key)
    if origin is None or origin.source == "option":
        return "--" + key.replace("_", "-")
    return f"{origin.place}: {key}"
