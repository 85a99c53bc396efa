"""Registry of tool providers: the built-in ones, installed entry points, and `MODULE:NAME` of Python modules.

What a provider needs is imported when it opens, so that one that starts processes can do so early.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from trysquare.core.errors import ConfigurationError
from trysquare.settings import Origin, Settings
from trysquare.store import LazyDatabase, project_state, user_state
from trysquare.store.lazy import LazyDatabases
from trysquare.store.location import FOLDER, find_project_id, get_project_id, prepare_folder

if TYPE_CHECKING:
    from trysquare.agents.runner import AgentEnvironment
    from trysquare.bots import BotConfig
    from trysquare.catalog import ProfileChoice
    from trysquare.core.tool import Tool
    from trysquare.core.toolset import Toolset
    from trysquare.guide import GuideConfig
    from trysquare.jobs import JobsAddress
    from trysquare.store import Approvers, LazyApprovals
    from trysquare.store.workflows import WorkflowStore

ENTRY_POINTS = "trysquare.providers"
"""Entry-point group of other distributions: the name of a provider, and its `open` function."""

Origins: TypeAlias = Mapping[str, Origin]
OpenToolset: TypeAlias = Callable[[Settings, Origins], AbstractAsyncContextManager["Toolset"]]
OpenEnvironment: TypeAlias = Callable[[Settings, Origins], AbstractContextManager["AgentEnvironment"]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolProvider:
    """A provider of tools: opened where the setting `key` has a value."""

    name: str
    key: str
    open: OpenToolset
    opens_first: bool = False
    """Whether it is opened before the others, because it starts processes that load at the same time."""


def tool_providers(open_environment: OpenEnvironment, *, prestart: bool = True) -> tuple[ToolProvider, ...]:
    """The providers in the order of their tools. `open_environment` is what agents run in.

    `prestart` lets the gateway start the server that is probably called first.
    """
    open_gateway = partial(open_gateway_tools, prestart=prestart)
    return (
        ToolProvider(name="tools", key="tools", open=open_modules),
        ToolProvider(name="example tools", key="include_example_tools", open=open_examples),
        ToolProvider(name="bots", key="bot", open=open_bot_tools),
        ToolProvider(name="gateway", key="gateway", open=open_gateway, opens_first=True),
        ToolProvider(name="guide", key="guide", open=open_guide_tools),
        ToolProvider(name="workbench", key="workbench", open=open_workbench_tools),
        ToolProvider(name="debug", key="debugger", open=open_debug_tools),
        ToolProvider(name="agents", key="agents", open=partial(open_agent_tools, open_environment=open_environment)),
        ToolProvider(name="installed", key="providers", open=open_installed),
    )


@asynccontextmanager
async def open_modules(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """The tools of Python modules and files, named as `MODULE:NAME` or `FILE.py:NAME`."""
    from trysquare.core.toolset import CombinedToolset
    from trysquare.sources import load_tools

    where = setting_location("tools", origins)
    url = settings.openapi_url
    yield CombinedToolset(
        load_tools(named, project=settings.project, where=where, openapi_url=url) for named in settings.tools
    )


@asynccontextmanager
async def open_examples(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """The example tools."""
    from trysquare.example_tools import tools

    yield tools.toolset()


@asynccontextmanager
async def open_guide_tools(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """The guide's tools, prompts and resources. Its names begin with `guide` unless a prefix is configured."""
    from trysquare.guide import open_guide
    from trysquare.middleware import MiddlewareToolset

    with open_states() as states:
        config = guide_config(settings)
        async with open_guide(config, project_state=states.of_project, user_state=states.of_user()) as toolset:
            yield MiddlewareToolset(toolset, _with_guide_prefix) if settings.prefix is None else toolset


@asynccontextmanager
async def open_bot_tools(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """The tools of every workflow bot."""
    from trysquare.bots import open_bot
    from trysquare.core.toolset import CombinedToolset

    async with AsyncExitStack() as stack:
        open_store = partial(workflow_store, settings, stack.enter_context(open_states()))
        state = stack.enter_context(contextlib.closing(LazyDatabase(state_file(settings, origins))))
        approvals = open_approvals(settings, origins, state)
        bots = [open_bot(bot, open_store=open_store, approvals=approvals) for bot in bot_configs(settings, origins)]
        yield CombinedToolset([await stack.enter_async_context(bot) for bot in bots])


def open_debug_tools(settings: Settings, origins: Origins) -> AbstractAsyncContextManager[Toolset]:
    """The debugger's tools. Programs run in the project's directory unless a call names another."""
    from trysquare.debug import DebugConfig, open_debugger

    root, prefix = settings.project.resolve(), "debug" if settings.prefix is None else settings.prefix
    adapters = dict(choice.split("=", 1) for choice in settings.debug_adapters)
    return open_debugger(DebugConfig(root=root, prefix=prefix, shows_secrets=settings.debug_secrets, adapters=adapters))


@asynccontextmanager
async def open_workbench_tools(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """The tools of every workspace, and the content tools, which belong to none."""
    from trysquare.content import content_tools
    from trysquare.content.config import content_config
    from trysquare.content.provider import listed_if
    from trysquare.workbench.generation import logit_config
    from trysquare.workbench.provider import open_workbenches
    from trysquare.workbench.tools.logit import logit_tool

    with contextlib.closing(LazyDatabase(state_file(settings, origins))) as state:
        content = content_tools(content_config(settings.content), state=state)
        logit = logit_tool(logit_config(settings.model, settings.models))
        further = (*content, listed_if(settings.model is not None, logit))
        roots, project, hidden = settings.workbench, settings.project, settings.hidden
        async with open_workbenches(roots, project=project, further=further, hidden=hidden) as toolset:
            yield toolset


@asynccontextmanager
async def open_gateway_tools(settings: Settings, origins: Origins, *, prestart: bool) -> AsyncGenerator[Toolset]:
    """The tools of every server behind the gateway."""
    from trysquare.gateway import open_gateway

    with open_states() as states:
        state, folder = states.of_user(), user_state().parent
        kept = settings.limits.ledger_characters
        opening = open_gateway(settings.gateway, state=state, folder=folder, prestart=prestart, kept_characters=kept)
        async with opening as toolset:
            # These two profiles list each tool of the servers, so unknown servers are contacted in the background.
            if chosen_profiles(settings, origins).of_toolset("gateway") in ("full", "search"):
                toolset.servers.discover()
            yield toolset


@asynccontextmanager
async def open_agent_tools(
    settings: Settings, origins: Origins, *, open_environment: OpenEnvironment
) -> AsyncGenerator[Toolset]:
    """Every agent as a tool."""
    from trysquare.agents import open_agents
    from trysquare.jobs import available

    durable = partial(jobs_address, settings, origins, make=True) if available() else None
    with open_environment(settings, origins) as environment:
        async with open_agents(environment, durable=durable) as toolset:
            yield toolset


@asynccontextmanager
async def open_installed(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """The tools of other distributions' providers. Only those that the settings name are imported."""
    from importlib.metadata import entry_points

    from trysquare.core.toolset import CombinedToolset
    from trysquare.sources import import_failed

    found = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    where = setting_location("providers", origins)
    async with AsyncExitStack() as stack:
        toolsets: list[Toolset] = []
        for name in settings.providers:
            if name not in found:
                known = ", ".join(f"`{one}`" for one in sorted(found)) or "none"
                raise ConfigurationError(f"unknown provider `{name}`.", where=where, hint=f"Installed: {known}.")
            try:
                open_toolset = cast(OpenToolset, found[name].load())
            except (Exception, SystemExit) as error:
                raise import_failed(error, f"{where}: {name}") from error
            toolsets.append(await stack.enter_async_context(open_toolset(settings, origins)))
        yield CombinedToolset(toolsets)


def _with_guide_prefix(tool: Tool) -> Tool:
    return replace(tool, metadata=replace(tool.metadata, prefix="guide"))


def state_file(settings: Settings, origins: Origins) -> Path:
    """The state file: of the project where there is one, else of the user.

    A working directory that nobody called a project, and that nothing marks as one, stays untouched.
    """
    if _is_named_project(origins) or (settings.project / FOLDER).is_dir():
        return project_state(settings.project)
    return user_state()


def approval_files(settings: Settings, origins: Origins) -> list[Path]:
    """The state files in which calls of this project may wait for a human: its own, and the user's."""
    wanted = (state_file(settings, origins), project_state(settings.project), user_state())
    return list(dict.fromkeys(wanted))


def project_approvers(settings: Settings, origins: Origins) -> Approvers:
    """The approvers of the project. A file that the settings name has to exist before anything can be approved."""
    from trysquare.store.approvers import Approvers, read_rules

    root, named = settings.project.resolve(), "approvers.file" in origins
    return Approvers(
        root=root,
        file=settings.approvers.file if named else root / settings.approvers.file,
        demanded=named,
        rules=read_rules(settings.approvers.rules, setting_location("approvers.rules", origins)),
        project_id=settings.project_id,
    )


def open_approvals(settings: Settings, origins: Origins, state: LazyDatabase) -> LazyApprovals:
    """The approvals of a state file; in strict mode the project's approvers sign them."""
    from trysquare.store import LazyApprovals

    approvers, lifetime = project_approvers(settings, origins), settings.limits.approval_seconds
    return LazyApprovals(state, approvers=approvers, strict=settings.strict, lifetime=lifetime)


def _is_named_project(origins: Origins) -> bool:
    return "project" in origins or any(origin.source == "file" for origin in origins.values())


@contextlib.contextmanager
def open_states() -> Generator[LazyDatabases]:
    """The state files of projects and of the user, closed at the end of the block."""
    with contextlib.closing(LazyDatabases()) as states:
        yield states


def jobs_address(settings: Settings, origins: Origins, *, make: bool = False) -> JobsAddress:
    """The database of jobs: that of the settings, else a file next to the state. `make` creates its directory."""
    from trysquare.jobs import JobsAddress, jobs_file

    if settings.database is not None:
        own = settings.project_id or (get_project_id(settings.project) if make else find_project_id(settings.project))
        return JobsAddress(url=settings.database.get_secret_value(), project=own or "-")
    folder = state_file(settings, origins).parent
    if make:
        prepare_folder(folder)
    return JobsAddress(url=jobs_file(folder))


def guide_config(settings: Settings) -> GuideConfig:
    """The guide's configuration; the project is called by the name of its directory."""
    from trysquare.guide import GuideConfig

    root = settings.project.resolve()
    return GuideConfig(project=root.name or "project", root=root, folders=tuple(dict.fromkeys(settings.guide)))


def bot_configs(settings: Settings, origins: Origins) -> list[BotConfig]:
    """The configuration of each bot. A working directory that nobody called a project is only proposed."""
    from trysquare.bots import BotConfig

    named = _is_named_project(origins)
    source = setting_location("project", origins) if "project" in origins else "the working directory"
    return [
        BotConfig(
            folder=folder,
            project=settings.project,
            project_from=source,
            project_named=named,
            strict=settings.strict,
            approvers=project_approvers(settings, origins),
        )
        for folder in settings.bot
    ]


def workflow_store(settings: Settings, states: LazyDatabases, project: Path) -> WorkflowStore:
    """The store of a project's runs: its own state file, or the database that the settings name."""
    from trysquare.store.workflows import SqliteWorkflows

    if settings.database is None:
        return SqliteWorkflows(states.of_project(project))
    from trysquare.bots.workflow.runs import open_workflows

    named = settings.project_id if project.resolve() == settings.project.resolve() else None
    return open_workflows(settings.database.get_secret_value(), project, project_id=named)


def chosen_profiles(settings: Settings, origins: Origins) -> ProfileChoice:
    """The profiles of the settings."""
    from trysquare.catalog import parse_profiles

    try:
        return parse_profiles(settings.profile)
    except ConfigurationError as error:
        raise ConfigurationError(error.message, where=setting_location("profile", origins), hint=error.hint) from None


def setting_location(key: str, origins: Origins) -> str:
    """Where a setting was given: an option's name, or the file and line with the key."""
    origin = origins.get(key)
    if origin is None:
        return "--" + key.replace("_", "-")
    if origin.source == "option":
        return origin.location
    return f"{origin.location}: {key}"
