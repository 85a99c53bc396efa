"""Registry of tool providers: the built-in ones, installed entry points, and `MODULE:NAME` of Python modules."""

from __future__ import annotations

import contextlib
import importlib
import sys
import traceback
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from trysquare.catalog import ProfileChoice, parse_profiles
from trysquare.core.arguments import ToolArguments
from trysquare.core.declarations import Declarations
from trysquare.core.errors import ConfigurationError, DeclarationError
from trysquare.core.text import closest_names
from trysquare.core.tool import Tool, tool
from trysquare.core.toolset import CombinedToolset, StaticToolset, Toolset
from trysquare.middleware import MiddlewareToolset
from trysquare.settings import Origin, Settings
from trysquare.store import LazyApprovals, LazyDatabase, project_state, user_state
from trysquare.store.lazy import LazyDatabases
from trysquare.store.location import FOLDER, find_project_id, get_project_id, prepare_folder

if TYPE_CHECKING:
    from trysquare.agents.runner import AgentEnvironment
    from trysquare.bots import BotConfig
    from trysquare.guide import GuideConfig
    from trysquare.jobs import JobsAddress
    from trysquare.store.workflows import WorkflowStore

ENTRY_POINTS = "trysquare.providers"
"""Entry-point group of other distributions: the name of a provider, and its `open` function."""
KINDS = "a Declarations, a Toolset, a Tool, a function, or a list of tools"

Origins: TypeAlias = Mapping[str, Origin]
OpenToolset: TypeAlias = Callable[[Settings, Origins], AbstractAsyncContextManager[Toolset]]
OpenEnvironment: TypeAlias = Callable[[Settings, Origins], AbstractContextManager["AgentEnvironment"]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolProvider:
    """A provider of tools: opened where the setting `key` has a value."""

    name: str
    key: str
    open: OpenToolset


def tool_providers(open_environment: OpenEnvironment) -> tuple[ToolProvider, ...]:
    """The providers in the order of their tools. `open_environment` is what agents run in."""
    return (
        ToolProvider(name="tools", key="tools", open=open_modules),
        ToolProvider(name="example tools", key="include_example_tools", open=open_examples),
        ToolProvider(name="bots", key="bot", open=open_bot_tools),
        ToolProvider(name="gateway", key="gateway", open=open_gateway_tools),
        ToolProvider(name="guide", key="guide", open=open_guide_tools),
        ToolProvider(name="workbench", key="workbench", open=open_workbench_tools),
        ToolProvider(name="debug", key="debug", open=open_debug_tools),
        ToolProvider(name="agents", key="agents", open=partial(open_agent_tools, open_environment=open_environment)),
        ToolProvider(name="installed", key="providers", open=open_installed),
    )


@asynccontextmanager
async def open_modules(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """The tools of Python modules, named as `MODULE:NAME`."""
    where = setting_location("tools", origins)
    yield CombinedToolset(load_module_tools(named, project=settings.project, where=where) for named in settings.tools)


@asynccontextmanager
async def open_examples(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """The example tools."""
    from trysquare.example_tools import tools

    yield tools.toolset()


@asynccontextmanager
async def open_guide_tools(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """The guide's tools, prompts and resources. Its names begin with `guide` unless a prefix is configured."""
    from trysquare.guide import open_guide

    with open_states() as states:
        config = guide_config(settings)
        async with open_guide(config, project_state=states.of_project, user_state=states.of_user()) as toolset:
            yield MiddlewareToolset(toolset, _with_guide_prefix) if settings.prefix is None else toolset


@asynccontextmanager
async def open_bot_tools(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """The tools of every workflow bot."""
    from trysquare.bots import open_bot

    async with AsyncExitStack() as stack:
        open_store = partial(workflow_store, settings, stack.enter_context(open_states()))
        approvals = LazyApprovals(stack.enter_context(contextlib.closing(LazyDatabase(state_file(settings, origins)))))
        bots = [open_bot(bot, open_store=open_store, approvals=approvals) for bot in bot_configs(settings, origins)]
        yield CombinedToolset([await stack.enter_async_context(bot) for bot in bots])


def open_debug_tools(settings: Settings, origins: Origins) -> AbstractAsyncContextManager[Toolset]:
    """The debugger's tools. Programs run in the project's directory unless a call names another."""
    from trysquare.debug import DebugConfig, open_debugger

    root, prefix = settings.project.resolve(), "debug" if settings.prefix is None else settings.prefix
    return open_debugger(DebugConfig(root=root, prefix=prefix, shows_secrets=settings.debug_secrets))


@asynccontextmanager
async def open_workbench_tools(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """The tools of every workspace, and the content tools, which belong to none."""
    from trysquare.content import content_tools
    from trysquare.content.config import content_config
    from trysquare.workbench.generation import logit_config
    from trysquare.workbench.provider import open_workbenches
    from trysquare.workbench.tools.logit import logit_tool

    with contextlib.closing(LazyDatabase(state_file(settings, origins))) as state:
        content = content_tools(content_config(settings.content), state=state)
        further = (*content, logit_tool(logit_config(settings.model, settings.models)))
        roots, project, hidden = settings.workbench, settings.project, settings.hidden
        async with open_workbenches(roots, project=project, further=further, hidden=hidden) as toolset:
            yield toolset


@asynccontextmanager
async def open_gateway_tools(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    """The tools of every server behind the gateway."""
    from trysquare.gateway import open_gateway

    # These two profiles list each tool of the servers, so unknown servers are contacted in the background.
    discover = chosen_profiles(settings, origins).of_toolset("gateway") in ("full", "search")
    with open_states() as states:
        state, folder = states.of_user(), user_state().parent
        async with open_gateway(settings.gateway, state=state, folder=folder, discover=discover) as toolset:
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
                raise _import_failed(error, f"{where}: {name}") from error
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
            folder=folder, project=settings.project, project_from=source, project_named=named, strict=settings.strict
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
    try:
        return parse_profiles(settings.profile)
    except ConfigurationError as error:
        raise ConfigurationError(error.message, where=setting_location("profile", origins), hint=error.hint) from None


def setting_location(key: str, origins: Origins) -> str:
    """Where a setting was given: an option's name, or the file and line with the key."""
    origin = origins.get(key)
    if origin is None or origin.source == "option":
        return "--" + key.replace("_", "-")
    return f"{origin.location}: {key}"


def load_module_tools(named: str, *, project: Path, where: str = "--tools") -> Toolset:
    """Import the module and return the tools of that name; without a name, all that the module declares."""
    module_name, separator, name = named.partition(":")
    folder = str(project.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    location = f"{where}: {named}"
    module = _import_module(module_name, project, location)
    if not separator:
        return _declared_in(module, location)
    return _as_toolset(_attribute(module, name, location), location)


def _import_module(name: str, project: Path, location: str) -> ModuleType:
    # What a module prints while it is imported must not mix with the protocol or with --json on stdout.
    try:
        with contextlib.redirect_stdout(sys.stderr):
            importlib.invalidate_caches()
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _import_failed(error, location) from error
        raise _module_not_found(error.name, project, location) from None
    except (Exception, SystemExit) as error:
        raise _import_failed(error, location) from error


def _module_not_found(missing: str, project: Path, location: str) -> ConfigurationError:
    parent, _, last = missing.rpartition(".")
    folder = project.joinpath(*parent.split(".")) if parent else project
    files = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    near = closest_names(last, sorted(files - {"__init__", "__main__"}))
    hint = f"The search path is {project.resolve()}, then Python's own."
    if near:
        hint = f"Did you mean `{f'{parent}.' if parent else ''}{near[0]}`?"
    return ConfigurationError(f"module `{missing}` not found.", where=location, hint=hint)


def _import_failed(error: BaseException, location: str) -> ConfigurationError:
    """The error that a module raised while it was imported, with the line."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_machinery(frame.filename)]
    line, text = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else "", str(error)
    if isinstance(error, SyntaxError):
        line, text = f" ({error.filename}:{error.lineno})" if error.filename else line, error.msg
    return ConfigurationError(f"import failed: {type(error).__name__}: {text}{line}", where=location)


def _is_machinery(filename: str) -> bool:
    return filename.startswith("<frozen") or filename in (__file__, importlib.__file__)


def _attribute(module: ModuleType, name: str, location: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            public = [known for known in dir(found) if not known.startswith("_")]
            near = closest_names(part, public) or [known for known in public if _is_tools(getattr(found, known))]
            hint = f"Did you mean `{near[0]}`?" if near else f"Make it {KINDS}."
            raise ConfigurationError(f"{module.__name__} has no `{part}`.", where=location, hint=hint)
        found = getattr(found, part)
    return found


def _is_tools(value: Any) -> bool:
    return isinstance(value, (Declarations, Tool)) or _is_toolset(value)


def _is_toolset(value: Any) -> bool:
    wanted = ("tools", "find", "prompts", "find_prompt", "resources", "templates", "find_resource", "subscribe")
    return not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in wanted)


def _as_toolset(value: Any, location: str) -> Toolset:
    if isinstance(value, Declarations):
        return value.toolset()
    if isinstance(value, (Tool, FunctionType)):
        return _static_toolset((value,), location)
    if isinstance(value, (list, tuple)):
        return _static_toolset(cast(Iterable[Any], value), location)
    if _is_toolset(value):
        return cast(Toolset, value)
    raise ConfigurationError(
        f"`{type(value).__name__}` is not a source of tools.", where=location, hint=f"Name {KINDS}."
    )


def _static_toolset(values: Iterable[Any], location: str) -> Toolset:
    for value in values:
        if not isinstance(value, (Tool, FunctionType)):
            message = f"the list contains a `{type(value).__name__}`."
            raise ConfigurationError(message, where=location, hint="List tools only.")
    try:
        return StaticToolset(value if isinstance(value, Tool) else tool(value) for value in values)
    except DeclarationError as error:
        raise ConfigurationError(str(error), where=location) from None


def _declared_in(module: ModuleType, location: str) -> Toolset:
    """All that a module declares: its Declarations, and the functions declared with `ToolArguments.declare`."""
    unique = {id(value): value for value in vars(module).values() if isinstance(value, Declarations)}
    sets: list[Toolset] = [declarations.toolset() for declarations in unique.values()]
    if functions := tuple(ToolArguments.get_declared_tools().values()):
        sets.append(_static_toolset(functions, location))
    if not sets:
        hint = f"Name {KINDS}: {module.__name__}:NAME."
        raise ConfigurationError("the module declares no tools.", where=location, hint=hint)
    return CombinedToolset(sets)
