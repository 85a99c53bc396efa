"""Composition root: settings -> App, one toolset with middleware and catalog."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from trysquare.core.errors import ConfigurationError, DeclarationError
from trysquare.providers import Origins, chosen_profiles, open_approvals, state_file, tool_providers
from trysquare.settings import Origin, Settings
from trysquare.settings.file import find_file
from trysquare.settings.keys import Given, all_keys
from trysquare.settings.load import Loaded, load_settings, value_of
from trysquare.store import LazyDatabase

if TYPE_CHECKING:
    from trysquare.agents.runner import AgentEnvironment
    from trysquare.catalog import ProfileChoice
    from trysquare.catalog.toolset import Choices
    from trysquare.core.approvals import Approvals
    from trysquare.core.cache import Handles
    from trysquare.core.requests import RequestMiddleware
    from trysquare.core.tool import Tool
    from trysquare.core.toolset import DiscoveringToolset, HttpRoute, ServerInfo, Toolset
    from trysquare.search import Vectors
    from trysquare.server import ServeOptions
    from trysquare.store.tasks import StoredTasks


@dataclass(frozen=True, kw_only=True, slots=True)
class App:
    """Settings, the served toolset, profiles and state."""

    settings: Settings
    toolset: Toolset
    """All tools as callers see them: with middleware and catalog."""
    plain: Toolset
    """The same tools as they were declared."""
    direct: Toolset
    """The same tools as prompts call them: only paginated, with consent, under their declared names."""
    profiles: ProfileChoice
    state: LazyDatabase
    server_info: ServerInfo | None = None
    """What the toolset says of its server, where it is served alone."""
    routes: tuple[HttpRoute, ...] = ()
    """Pages beside the MCP endpoint over HTTP."""
    request_middleware: Callable[[], Sequence[RequestMiddleware]] = tuple
    """What stands around the requests of clients."""
    introduce: Callable[[], str] | None = None
    """Where the work of the toolsets stands, for the instructions of a server; None where none of them says so."""
    toolsets: tuple[Toolset, ...] = ()
    """The toolset of each provider, as it was opened."""
    discovering: tuple[DiscoveringToolset, ...] = ()
    """Toolsets that discover their tools in the background."""

    async def wait_ready(self) -> None:
        """Wait until every toolset has discovered its tools. A server need not wait; a command that lists once does."""
        for toolset in self.discovering:
            await toolset.wait_ready()

    def handles(self, *, shared: bool) -> Handles:
        """The store for pages of long results; a `shared` one is read by other processes too."""
        from trysquare.core.cache import KeepLimits, MemoryHandles

        own = self.settings.limits
        limits = KeepLimits(total=own.kept_bytes, per_caller=own.kept_bytes_per_caller)
        if not shared:
            return MemoryHandles(limits=limits)
        from trysquare.store.handles import SweptHandles

        return SweptHandles(self.state, limits=limits)

    def serve_options(self, *, shared: bool = False) -> ServeOptions:
        """The options for serving the toolset; `shared` as in `handles`."""
        from trysquare.core.call import direct_calls
        from trysquare.core.toolset import ServerInfo
        from trysquare.server import ServeOptions
        from trysquare.server.options import state_keys

        given, own = self.settings.server, self.server_info or ServerInfo()
        return ServeOptions(
            name=given.name or own.name,
            title=own.title,
            version=own.version,
            instructions=own.instructions if given.instructions is None else given.instructions,
            introduce=self.introduce,
            website=own.website,
            icons=own.icons,
            profiles=self.profiles,
            page_size=self.settings.limits.page_size,
            call_timeout=self.settings.limits.timeout,
            state_keys=state_keys(self.settings),
            direct=direct_calls(self.direct),
            handles=self.handles(shared=shared),
            request_middleware=self.request_middleware,
            tasks=self._tasks(),
            skills=bool(self.settings.guide),
        )

    def _tasks(self) -> StoredTasks | None:
        from trysquare.store.tasks import StoredTasks, TaskFile

        most, shared = self.settings.limits.tasks_per_caller, self.settings.database
        if not most:
            return None
        if shared is None or (url := shared.get_secret_value()).startswith("sqlite:"):
            return StoredTasks(TaskFile(self.state), most_open=most)
        from trysquare.store.tasks_postgres import PostgresTasks

        project, named = self.settings.project.resolve(), self.settings.project_id
        return StoredTasks(PostgresTasks(url, project, project_id=named), most_open=most)


@asynccontextmanager
async def open_app(
    settings: Settings,
    *,
    origins: Origins | None = None,
    prestart: bool = True,
    lifespans: bool = True,
    own: Toolset | None = None,
    approvals: Approvals | None = None,
) -> AsyncGenerator[App]:
    """Open every provider that the settings ask for, and yield their tools as one toolset, after those of `own`.

    Commands that end at once pass `prestart=False`, so that the gateway starts no server ahead of a call. Those that
    call no tool pass `lifespans=False`, so that nothing is opened that only a call needs.
    `approvals` is where consent is kept, by default in the project's state.
    """
    from trysquare.search.vectors import choose_vectors

    known = origins or {}
    choose_vectors(search_vectors(settings))
    async with AsyncExitStack() as stack:
        state = stack.enter_context(closing(LazyDatabase(state_file(settings, known))))
        toolsets = [] if own is None else [own]
        if lifespans and own is not None:
            await _open_lifespans(stack, own)
        toolsets += await _open_toolsets(stack, settings, known, prestart=prestart, lifespans=lifespans)
        yield _compose(toolsets, settings, known, state, approvals)


def search_vectors(settings: Settings, env: Mapping[str, str] = os.environ) -> Vectors | None:
    """The vectors that searches compare, as the settings choose; None for words alone."""
    from trysquare.search.vectors import installed_vectors

    own = settings.search
    if own.encoder == "off":
        return None
    if own.embeddings_url is None:
        return installed_vectors(env)
    if own.embeddings_model is None:
        raise ConfigurationError(
            "`search.embeddings_url` needs the name of a model.", hint="Set `search.embeddings_model` as well."
        )
    from trysquare.models.embeddings import remote_vectors

    return remote_vectors(own.embeddings_url, own.embeddings_model, env.get(own.key_variable, ""), env)


async def _open_toolsets(
    stack: AsyncExitStack, settings: Settings, origins: Origins, *, prestart: bool, lifespans: bool
) -> list[Toolset]:
    """The toolsets in the order of their tools."""
    wanted = [one for one in tool_providers(agent_environment, prestart=prestart) if value_of(settings, one.key)]
    opened: dict[str, Toolset] = {}
    for provider in sorted(wanted, key=lambda one: not one.opens_first):
        opened[provider.name] = toolset = await stack.enter_async_context(provider.open(settings, origins))
        if lifespans:
            await _open_lifespans(stack, toolset)
    return [opened[provider.name] for provider in wanted]


async def _open_lifespans(stack: AsyncExitStack, toolset: Toolset) -> None:
    # Imported here: a process that a provider has started loads at the same time.
    from trysquare.core.toolset import open_lifespans

    await stack.enter_async_context(open_lifespans(toolset))


def _compose(
    toolsets: list[Toolset], settings: Settings, origins: Origins, state: LazyDatabase, approvals: Approvals | None
) -> App:
    # Imported here: a process that a provider has started loads at the same time.
    from trysquare.catalog import with_catalog
    from trysquare.core.toolset import CombinedToolset, DiscoveringToolset, routes_of, server_info_of
    from trysquare.middleware import MiddlewareConfig, internal_toolset, with_middleware

    own = approvals or open_approvals(settings, origins, state)
    config = MiddlewareConfig(prefix=settings.prefix or "", approvals=own)
    try:
        plain = _with_settings(CombinedToolset(toolsets), settings)
        toolset = with_catalog(with_middleware(plain, config), _choices(settings, state))
    except DeclarationError as error:
        raise ConfigurationError(str(error)) from None
    return App(
        settings=settings,
        toolset=toolset,
        plain=plain,
        direct=internal_toolset(plain, config),
        profiles=chosen_profiles(settings, origins),
        state=state,
        server_info=server_info_of(toolsets[0]) if len(toolsets) == 1 else None,
        routes=tuple(route for toolset in toolsets for route in routes_of(toolset)),
        request_middleware=_request_middleware(toolsets),
        introduce=_introductions(toolsets),
        toolsets=tuple(toolsets),
        discovering=tuple(toolset for toolset in toolsets if isinstance(toolset, DiscoveringToolset)),
    )


def _request_middleware(toolsets: Sequence[Toolset]) -> Callable[[], Sequence[RequestMiddleware]]:
    from trysquare.core.requests import RequestToolset

    known = [toolset for toolset in toolsets if isinstance(toolset, RequestToolset)]
    return lambda: [each for toolset in known for each in toolset.request_middleware]


def _introductions(toolsets: Sequence[Toolset]) -> Callable[[], str] | None:
    from trysquare.core.toolset import introduced

    found = [each for toolset in toolsets for each in introduced(toolset)]
    return (lambda: "\n\n".join(each.introduction() for each in found)) if found else None


def _choices(settings: Settings, state: LazyDatabase) -> Choices | None:
    if not settings.search.learn:
        return None
    from trysquare.store.choices import StoredChoices

    return StoredChoices(state)


def load_own_settings(project: Path, given: Mapping[str, Given] | None = None) -> Loaded:
    """The settings of a project without its sources of tools, but for those that are `given`."""
    named = {"project": Given(value=str(project), origin=Origin(source="option", location="project"))}
    own = named if find_file(project) is not None else {}
    return load_settings({**own, **without_sources(given or {})}, os.environ, project)


def without_sources(given: Mapping[str, Given]) -> dict[str, Given]:
    """The given settings, with every source of tools that is not among them switched off."""
    keys = (all_keys()[provider.key] for provider in tool_providers(agent_environment))
    origin = Origin(source="option", location="")
    nothing = {key.name: Given(value=() if key.is_list else False, origin=origin) for key in keys}
    return {**nothing, **given}


@contextmanager
def agent_environment(settings: Settings, origins: Origins) -> Generator[AgentEnvironment]:
    """What agents run in: configured tools and models, and the state file with the approvals."""
    from trysquare.agents.runner import AgentEnvironment, configured_model

    @asynccontextmanager
    async def open_toolset(wanted: Settings) -> AsyncGenerator[Toolset]:
        async with open_app(wanted, origins=origins) as app:
            yield app.toolset

    with closing(LazyDatabase(state_file(settings, origins))) as state:
        yield AgentEnvironment(
            settings=settings,
            open_toolset=open_toolset,
            approvals=open_approvals(settings, origins, state),
            open_model=partial(configured_model, settings),
        )


def _with_settings(toolset: Toolset, settings: Settings) -> Toolset:
    from trysquare.middleware import MiddlewareToolset

    if (limit := settings.limits.result_characters) is not None:
        toolset = MiddlewareToolset(toolset, partial(_with_result_limit, limit=limit))
    if not settings.limits.output_schemas:
        toolset = MiddlewareToolset(toolset, lambda tool: replace(tool, output=None))
    return MiddlewareToolset(toolset, _with_consent) if settings.strict else toolset


def _with_consent(tool: Tool) -> Tool:
    """The tool with a question to a human where it only asked for a literal, which a model can type by itself."""
    from trysquare.core.metadata import Consent

    if tool.metadata.consent is not None or tool.metadata.consent_literal is None:
        return tool
    return replace(tool, metadata=replace(tool.metadata, consent=Consent(question=f"Let {tool.name} run?")))


def _with_result_limit(tool: Tool, *, limit: int) -> Tool:
    """The tool with the configured limit of its results, unless its author chose one."""
    from trysquare.core.metadata import ToolMetadata

    if tool.metadata.result_limit != ToolMetadata().result_limit:
        return tool
    return replace(tool, metadata=replace(tool.metadata, result_limit=limit))
