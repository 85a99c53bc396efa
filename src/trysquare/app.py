"""open_app: configuration -> one toolset. The only module that knows every source."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from trysquare.catalog.profiles import ProfileChoice, parse_profiles
from trysquare.catalog.toolset import catalogued
from trysquare.core.call import direct_calls
from trysquare.core.errors import ConfigurationError, DeclarationError
from trysquare.core.handles import Handles, KeepLimits, MemoryHandles
from trysquare.core.metadata import Consent, ToolMetadata
from trysquare.core.tool import Tool
from trysquare.core.toolset import CombinedToolset, SettlingToolset, Toolset
from trysquare.serve.ahead import Ahead
from trysquare.serve.options import ServeOptions
from trysquare.serve.state_keys import state_keys
from trysquare.settings.load import value_of
from trysquare.settings.model import Settings
from trysquare.settings.origin import Origin
from trysquare.store.handles import LazyHandles
from trysquare.store.lazy import LazyDatabase, LazyStates
from trysquare.store.lazy_approvals import LazyApprovals, LazyState
from trysquare.store.location import FOLDER, prepare_folder, project_state, user_state
from trysquare.store.project_id import known_id, made_id
from trysquare.wrappers.prefixed import final_name
from trysquare.wrappers.wrapped import WrappedToolset, Wrapping, direct_toolset, wrapped_toolset

if TYPE_CHECKING:
    from trysquare.agent.opening import Surroundings
    from trysquare.bots.config import BotConfig
    from trysquare.guide.config import GuideConfig
    from trysquare.jobs.opening import JobsAddress
    from trysquare.store.workflow import WorkflowStore

Origins: TypeAlias = Mapping[str, Origin]
Door: TypeAlias = Callable[..., AbstractAsyncContextManager[Toolset]]
"""A room's door: opens what the room needs and yields its toolset. It takes settings and where they came from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """A source of tools: the setting that asks for it, and its door."""

    name: str
    key: str
    door: Door | None = None
    """None as long as the room is not part of this version."""
    is_fixed: bool = False
    """Whether the list of its tools follows from the settings and our own code alone."""
    looks_ahead: bool = False
    """Whether its door also takes what is `ahead`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class App:
    """What a command or a server needs of a configuration."""

    settings: Settings
    toolset: Toolset
    """All tools as callers see them: wrapped and catalogued."""
    plain: Toolset
    """The same tools as they were declared."""
    direct: Toolset
    """The same tools as prompts call them: only limited, with consent kept, under the names of their authors."""
    profiles: ProfileChoice
    state: LazyState
    settling: tuple[SettlingToolset, ...] = ()
    """Rooms that find out beside everything else what they have."""
    is_fixed: bool = False
    """Whether what is listed follows from the settings and our own code alone."""

    async def settled(self) -> None:
        """Wait until every room knows what it has; a server need not, a person who looks once does."""
        for toolset in self.settling:
            await toolset.settled()

    def handles(self, *, shared: bool) -> Handles:
        """Where pages of long answers are kept; `shared` keeps them where other processes find them too."""
        own = self.settings.limits
        limits = KeepLimits(total=own.kept_bytes, per_caller=own.kept_bytes_per_caller)
        return LazyHandles(self.state.needed_database, limits=limits) if shared else MemoryHandles(limits=limits)

    def serve_options(self, *, shared: bool = False) -> ServeOptions:
        """How the toolset is to be served; `shared` keeps handles where other processes find them too."""
        return ServeOptions(
            name=self.settings.server.name,
            instructions=self.settings.server.instructions,
            profiles=self.profiles,
            page_size=self.settings.limits.page_size,
            call_timeout=self.settings.limits.timeout,
            state_keys=state_keys(self.settings),
            direct=direct_calls(self.direct),
            handles=self.handles(shared=shared),
            skills=bool(self.settings.guide),
        )


def state_file(settings: Settings, origins: Origins) -> Path:
    """Where state is kept: in the project where there is one, else with the user.

    A working directory that nobody called a project, and that nothing marks as one, stays untouched.
    """
    named = "project" in origins or any(origin.source == "file" for origin in origins.values())
    if named or (settings.project / FOLDER).is_dir():
        return project_state(settings.project)
    return user_state()


def jobs_address(settings: Settings, origins: Origins, *, make: bool = False) -> JobsAddress:
    """Where jobs are kept: in the settings' database, else in a file beside the state, whose folder may be made."""
    from trysquare.jobs.opening import JobsAddress, jobs_file

    if settings.database is not None:
        own = settings.project_id or (made_id(settings.project) if make else known_id(settings.project))
        return JobsAddress(url=settings.database.get_secret_value(), project=own or "-")
    folder = state_file(settings, origins).parent
    if make:
        prepare_folder(folder)
    return JobsAddress(url=jobs_file(folder))


@asynccontextmanager
async def python_tools(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """The tools of Python modules, named as `MODULE:NAME`."""
    from trysquare.settings.named_tools import named_toolset

    where = place_of("tools", origins)
    yield CombinedToolset(named_toolset(named, project=settings.project, where=where) for named in settings.tools)


@asynccontextmanager
async def example_tools(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """The example tools. Their module is imported only when they are wanted."""
    from trysquare.example_tools import tools

    yield tools.toolset()


@asynccontextmanager
async def guide_tools(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """The guide's tools, prompts and resources. Its names begin with `guide` unless a prefix is configured."""
    from trysquare.guide.toolset import guide_toolset

    with guide_states() as states:
        config = guide_config(settings)
        async with guide_toolset(config, project_state=states.of_project, user_state=states.of_user()) as toolset:
            own_prefix = settings.prefix is None
            yield WrappedToolset(toolset, partial(_with_prefix, prefix="guide")) if own_prefix else toolset


def _with_prefix(tool: Tool, *, prefix: str) -> Tool:
    return replace(tool, metadata=replace(tool.metadata, prefix=prefix))


def guide_config(settings: Settings) -> GuideConfig:
    """Where the guide's content lies; the project is called by the name of its folder."""
    from trysquare.guide.config import GuideConfig

    root = settings.project.resolve()
    return GuideConfig(project=root.name or "project", root=root, folders=tuple(dict.fromkeys(settings.guide)))


@asynccontextmanager
async def bot_tools(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """The tools of every workflow bot."""
    from trysquare.bots.toolset import bot_toolset

    async with AsyncExitStack() as stack:
        states = stack.enter_context(guide_states())
        state = LazyState(state_file(settings, origins))
        stack.callback(state.close)
        toolsets: list[Toolset] = []
        for config in bot_configs(settings, origins):
            door = bot_toolset(
                config, open_store=partial(workflow_store, settings, states), approvals=LazyApprovals(state)
            )
            toolsets.append(await stack.enter_async_context(door))
        yield CombinedToolset(toolsets)


def bot_configs(settings: Settings, origins: Origins) -> list[BotConfig]:
    """What is configured for each bot. A working directory that nobody called a project is only proposed."""
    from trysquare.bots.config import BotConfig

    named = "project" in origins or any(origin.source == "file" for origin in origins.values())
    source = place_of("project", origins) if "project" in origins else "the working directory"
    return [
        BotConfig(
            folder=folder, project=settings.project, project_from=source, project_named=named, strict=settings.strict
        )
        for folder in settings.bot
    ]


def workflow_store(settings: Settings, states: LazyStates, project: Path) -> WorkflowStore:
    """Where the runs of a project are kept: in its own state file, or in the database that the settings name."""
    from trysquare.store.workflow import SqliteWorkflows

    if settings.database is None:
        return SqliteWorkflows(states.of_project(project))
    from trysquare.bots.state import open_workflows

    named = settings.project_id if project.resolve() == settings.project.resolve() else None
    return open_workflows(settings.database.get_secret_value(), project, project_id=named)


@asynccontextmanager
async def debug_tools(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """The debugger's tools. Programs run in the project's folder unless a call names another."""
    from trysquare.debug.config import DebugConfig
    from trysquare.debug.toolset import debug_toolset

    root, prefix = settings.project.resolve(), "debug" if settings.prefix is None else settings.prefix
    async with debug_toolset(DebugConfig(root=root, prefix=prefix, shows_secrets=settings.debug_secrets)) as toolset:
        yield toolset


@asynccontextmanager
async def workbench_tools(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """The tools of every workspace, and those for content, which belong to none."""
    from trysquare.workbench.content.config import content_config
    from trysquare.workbench.content.tools import content_tools
    from trysquare.workbench.logit.config import logit_config
    from trysquare.workbench.logit.tool import logit_tool
    from trysquare.workbench.toolset import workbench_toolsets

    with closing(LazyDatabase(state_file(settings, origins))) as state:
        content = content_tools(content_config(settings.content), state=state)
        further = (*content, logit_tool(logit_config(settings.model, settings.models)))
        roots, project, hidden = settings.workbench, settings.project, settings.hidden
        async with workbench_toolsets(roots, project=project, further=further, hidden=hidden) as toolset:
            yield toolset


@contextmanager
def guide_states() -> Generator[LazyStates]:
    """The state files of projects and of the user, closed at the end of the block."""
    states = LazyStates()
    try:
        yield states
    finally:
        states.close()


@asynccontextmanager
async def gateway_tools(settings: Settings, origins: Origins, *, ahead: Ahead | None) -> AsyncGenerator[Toolset]:
    """The tools of every server behind the gateway."""
    from trysquare.gateway.door import gateway_toolset

    # These two profiles show each tool of the servers, so those that are not known yet are asked beside.
    discover = _profiles(settings, origins).of_room("gateway") in ("full", "search")
    prefix = final_name("", settings.prefix or "")
    called = () if ahead is None else ahead.called()
    with guide_states() as states:
        door = gateway_toolset(
            settings.gateway,
            state=states.of_user(),
            folder=user_state().parent,
            discover=discover,
            called=[name.removeprefix(prefix) for name in called if name.startswith(prefix)],
            opened=None if ahead is None else ahead.servers,
        )
        async with door as toolset:
            yield toolset


@asynccontextmanager
async def agent_tools(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """Every agent as a tool."""
    from trysquare.agent.toolset import agents_toolset
    from trysquare.jobs.opening import available

    kept = partial(jobs_address, settings, origins, make=True) if available() else None
    with agent_surroundings(settings, origins) as around:
        async with agents_toolset(around, kept=kept) as toolset:
            yield toolset


@contextmanager
def agent_surroundings(settings: Settings, origins: Origins) -> Generator[Surroundings]:
    """What agents work with: tools and models as they are configured, and the state file that keeps consent."""
    from trysquare.agent.opening import Surroundings, configured_model

    @asynccontextmanager
    async def open_toolset(wanted: Settings) -> AsyncGenerator[Toolset]:
        async with open_app(wanted, origins=origins) as app:
            yield app.toolset

    state = LazyState(state_file(settings, origins))
    try:
        yield Surroundings(
            settings=settings,
            open_toolset=open_toolset,
            approvals=LazyApprovals(state),
            open_model=partial(configured_model, settings),
        )
    finally:
        state.close()


ROOMS = (
    Room(name="tools", key="tools", door=python_tools),
    Room(name="example tools", key="include_example_tools", door=example_tools, is_fixed=True),
    Room(name="bots", key="bot", door=bot_tools),
    Room(name="gateway", key="gateway", door=gateway_tools, looks_ahead=True),
    Room(name="guide", key="guide", door=guide_tools),
    Room(name="workbench", key="workbench", door=workbench_tools),
    Room(name="debug", key="debug", door=debug_tools, is_fixed=True),
    Room(name="agents", key="agents", door=agent_tools),
)


@asynccontextmanager
async def open_app(
    settings: Settings, *, origins: Origins | None = None, ahead: Ahead | None = None
) -> AsyncGenerator[App]:
    """Open every room that the settings ask for, and yield their tools as one toolset."""
    known_origins = origins or {}
    async with AsyncExitStack() as stack:
        state = LazyState(state_file(settings, known_origins))
        stack.callback(state.close)
        toolsets = await _opened(settings, known_origins, ahead, stack)
        plain = _combined(settings, toolsets)
        wrapping = Wrapping(prefix=settings.prefix or "", approvals=LazyApprovals(state))
        try:
            toolset = catalogued(wrapped_toolset(plain, wrapping))
        except DeclarationError as error:
            raise ConfigurationError(str(error)) from None
        yield App(
            settings=settings,
            toolset=toolset,
            plain=plain,
            direct=direct_toolset(plain, wrapping),
            profiles=_profiles(settings, known_origins),
            state=state,
            settling=tuple(toolset for toolset in toolsets if isinstance(toolset, SettlingToolset)),
            is_fixed=all(room.is_fixed for room in ROOMS if value_of(settings, room.key)),
        )


def _profiles(settings: Settings, origins: Origins) -> ProfileChoice:
    try:
        return parse_profiles(settings.profile)
    except ConfigurationError as error:
        raise ConfigurationError(error.message, where=place_of("profile", origins), hint=error.hint) from None


async def _opened(settings: Settings, origins: Origins, ahead: Ahead | None, stack: AsyncExitStack) -> list[Toolset]:
    wanted = [room for room in ROOMS if value_of(settings, room.key)]
    doors = [partial(_door(room, origins), **({"ahead": ahead} if room.looks_ahead else {})) for room in wanted]
    return [await stack.enter_async_context(door(settings, origins)) for door in doors]


def _combined(settings: Settings, toolsets: list[Toolset]) -> Toolset:
    try:
        combined = CombinedToolset(toolsets)
    except DeclarationError as error:
        raise ConfigurationError(str(error)) from None
    toolset: Toolset = combined
    if (limit := settings.limits.result_characters) is not None:
        toolset = WrappedToolset(toolset, partial(_held_to, limit=limit))
    return WrappedToolset(toolset, _proven) if settings.strict else toolset


def _proven(tool: Tool) -> Tool:
    """The tool with a question to the person where it only asked for a literal, which a model can type by itself."""
    if tool.metadata.consent is not None or tool.metadata.consent_literal is None:
        return tool
    return replace(tool, metadata=replace(tool.metadata, consent=Consent(question=f"Let {tool.name} run?")))


def _held_to(tool: Tool, *, limit: int) -> Tool:
    """The tool with the configured limit of its answers, unless its author chose one."""
    if tool.metadata.result_limit != ToolMetadata().result_limit:
        return tool
    return replace(tool, metadata=replace(tool.metadata, result_limit=limit))


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
