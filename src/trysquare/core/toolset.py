"""Toolset: a group of tools, prompts and resources. Static, combined, or dynamic."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

from trysquare.core.errors import DeclarationError
from trysquare.core.lifespan import Lifespans
from trysquare.core.metadata import Icon
from trysquare.core.prompts import Prompt
from trysquare.core.requests import RequestMiddleware, request_middleware_of
from trysquare.core.resources import Resource, ResourceTemplate
from trysquare.core.tool import Tool

Change: TypeAlias = Literal["tools", "prompts", "resources"] | str
"""What changed: a list, or the contents of the resource at an address."""
Listener: TypeAlias = Callable[[Change], None]
Unsubscribe: TypeAlias = Callable[[], None]

K = TypeVar("K")


class Toolset(Protocol):
    """A group of tools, prompts and resources. `find` does not list: it costs the same for any number of tools."""

    def tools(self) -> Sequence[Tool]: ...

    def find(self, name: str) -> Tool | None: ...

    def prompts(self) -> Sequence[Prompt]: ...

    def find_prompt(self, name: str) -> Prompt | None: ...

    def resources(self) -> Sequence[Resource]: ...

    def templates(self) -> Sequence[ResourceTemplate]: ...

    def find_resource(self, uri: str) -> Resource | None: ...

    def subscribe(self, listener: Listener) -> Unsubscribe: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerInfo:
    """What a server that serves one toolset alone says of itself."""

    name: str | None = None
    title: str | None = None
    version: str | None = None
    instructions: str | None = None
    website: str | None = None
    icons: tuple[Icon, ...] = ()


@runtime_checkable
class IntroducedToolset(Protocol):
    """A toolset that says where its work stands, anew for every conversation that begins."""

    def introduction(self) -> str: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpRoute:
    """A page beside the MCP endpoint, where the toolset is served over HTTP."""

    path: str
    methods: tuple[str, ...]
    function: Callable[..., Any]
    """Takes a request or nothing; returns an ASGI application such as a response, text, bytes or a value for JSON."""


@runtime_checkable
class RoutedToolset(Protocol):
    """A toolset with pages of its own over HTTP."""

    @property
    def routes(self) -> tuple[HttpRoute, ...]: ...


@runtime_checkable
class DescribedToolset(Protocol):
    """A toolset that says what a server of it is called."""

    @property
    def server_info(self) -> ServerInfo | None: ...


@runtime_checkable
class LifespanToolset(Protocol):
    """A toolset with something to open; `open_lifespans` does."""

    @property
    def lifespans(self) -> Sequence[Lifespans]: ...


@runtime_checkable
class DiscoveringToolset(Protocol):
    """A toolset that discovers its tools in the background; `wait_ready` waits until that has ended."""

    async def wait_ready(self) -> None: ...


@runtime_checkable
class YieldingToolset(Protocol):
    """A toolset with third-party names. It uses no name and no address of `own`, the toolsets that come first."""

    def stand_behind(self, own: Toolset) -> None: ...


class StaticToolset:
    """A toolset that does not change."""

    lists_resources_late: ClassVar[bool] = False
    """True where listing the resources takes longer than a start may wait."""

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        prompts: Iterable[Prompt] = (),
        resources: Iterable[Resource] = (),
        templates: Iterable[ResourceTemplate] = (),
        server_info: ServerInfo | None = None,
        routes: Iterable[HttpRoute] = (),
        lifespans: Lifespans | Iterable[Lifespans] = (),
        request_middleware: Iterable[RequestMiddleware] = (),
    ) -> None:
        self.server_info = server_info
        self.routes = tuple(routes)
        self.lifespans = (lifespans,) if isinstance(lifespans, Lifespans) else tuple(lifespans)
        self.request_middleware: Sequence[RequestMiddleware] = tuple(request_middleware)
        self._tools = by_name("tool", ((tool.name, tool) for tool in tools))
        self._prompts = by_name("prompt", ((prompt.name, prompt) for prompt in prompts))
        self._resources = by_name("resource", ((resource.uri, resource) for resource in resources))
        self._templates = tuple(templates)
        self._listeners: dict[object, Listener] = {}
        self._lock = threading.Lock()

    def tools(self) -> Sequence[Tool]:
        return tuple(self._tools.values())

    def find(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def prompts(self) -> Sequence[Prompt]:
        return tuple(self._prompts.values())

    def find_prompt(self, name: str) -> Prompt | None:
        return self._prompts.get(name)

    def resources(self) -> Sequence[Resource]:
        return tuple(self._resources.values())

    def templates(self) -> Sequence[ResourceTemplate]:
        return self._templates

    def find_resource(self, uri: str) -> Resource | None:
        return self._resources.get(uri) or resource_of_template(uri, self._templates)

    def subscribe(self, listener: Listener) -> Unsubscribe:
        return lambda: None


class CombinedToolset:
    """Several toolsets as one, with one index of names. Names that collide are an error when it is made."""

    def __init__(self, toolsets: Iterable[Toolset]) -> None:
        self._toolsets = tuple(toolsets)
        yielding = [toolset for toolset in self._toolsets if isinstance(toolset, YieldingToolset)]
        if yielding:
            own = CombinedToolset(toolset for toolset in self._toolsets if toolset not in yielding)
            for toolset in yielding:
                toolset.stand_behind(own)
        self._index = by_name("tool", ((tool.name, tool) for tool in self.tools()))
        self._lock = threading.Lock()
        for toolset in self._toolsets:
            toolset.subscribe(self._on_change)
        by_name("prompt", ((prompt.name, prompt) for prompt in self.prompts()))
        by_name("resource", ((resource.uri, resource) for each in self._toolsets for resource in _at_hand(each)))

    @property
    def server_info(self) -> ServerInfo | None:
        """That of the only part that has one."""
        known = [each for toolset in self._toolsets if (each := server_info_of(toolset)) is not None]
        return known[0] if len(known) == 1 else None

    @property
    def introduced(self) -> Sequence[IntroducedToolset]:
        return tuple(each for toolset in self._toolsets for each in introduced(toolset))

    @property
    def lifespans(self) -> Sequence[Lifespans]:
        return tuple(each for toolset in self._toolsets for each in lifespans_of(toolset))

    @property
    def routes(self) -> tuple[HttpRoute, ...]:
        return tuple(route for toolset in self._toolsets for route in routes_of(toolset))

    @property
    def request_middleware(self) -> Sequence[RequestMiddleware]:
        return tuple(each for toolset in self._toolsets for each in request_middleware_of(toolset))

    def tools(self) -> Sequence[Tool]:
        return tuple(tool for toolset in self._toolsets for tool in toolset.tools())

    def find(self, name: str) -> Tool | None:
        # A toolset may find tools that it does not list.
        return self._index.get(name) or _first(toolset.find(name) for toolset in self._toolsets)

    def prompts(self) -> Sequence[Prompt]:
        return tuple(prompt for toolset in self._toolsets for prompt in toolset.prompts())

    def find_prompt(self, name: str) -> Prompt | None:
        return _first(toolset.find_prompt(name) for toolset in self._toolsets)

    def resources(self) -> Sequence[Resource]:
        return tuple(resource for toolset in self._toolsets for resource in toolset.resources())

    def templates(self) -> Sequence[ResourceTemplate]:
        return tuple(template for toolset in self._toolsets for template in toolset.templates())

    def find_resource(self, uri: str) -> Resource | None:
        return _first(toolset.find_resource(uri) for toolset in self._toolsets)

    def subscribe(self, listener: Listener) -> Unsubscribe:
        endings = [toolset.subscribe(listener) for toolset in self._toolsets]

        def unsubscribe() -> None:
            for end in endings:
                end()

        return unsubscribe

    def _on_change(self, change: Change) -> None:
        if change == "tools":
            # Of two tools that now have one name, the first is found.
            with self._lock:
                self._index = {tool.name: tool for tool in reversed(self.tools())}


def introduced(toolset: Toolset) -> Sequence[IntroducedToolset]:
    """The parts of a toolset that say where their work stands."""
    if isinstance(toolset, CombinedToolset):
        return toolset.introduced
    return (toolset,) if isinstance(toolset, IntroducedToolset) else ()


class DynamicToolset(StaticToolset):
    """A toolset whose owner replaces its parts while it runs, and which notifies its listeners."""

    def replace(
        self,
        *,
        tools: Iterable[Tool] | None = None,
        prompts: Iterable[Prompt] | None = None,
        resources: Iterable[Resource] | None = None,
        templates: Iterable[ResourceTemplate] | None = None,
    ) -> None:
        """Replace parts and notify the listeners. If a name occurs twice, nothing changes."""
        fresh = StaticToolset(tools or (), prompts=prompts or (), resources=resources or (), templates=templates or ())
        # Each part is swapped whole, so a call that runs meanwhile sees either the old or the new one.
        self._tools = self._tools if tools is None else fresh._tools
        self._prompts = self._prompts if prompts is None else fresh._prompts
        self._resources = self._resources if resources is None else fresh._resources
        self._templates = self._templates if templates is None else fresh._templates
        given = {"tools": tools, "prompts": prompts, "resources": templates if resources is None else resources}
        for kind, parts in given.items():
            if parts is not None:
                self.notify(kind)

    def notify(self, change: Change) -> None:
        """Notify the listeners of a change; a resource's address means its contents."""
        with self._lock:
            listeners = list(self._listeners.values())
        for listener in listeners:
            listener(change)

    def subscribe(self, listener: Listener) -> Unsubscribe:
        key = object()
        with self._lock:
            self._listeners[key] = listener

        def unsubscribe() -> None:
            with self._lock:
                self._listeners.pop(key, None)

        return unsubscribe


def by_name(kind: str, pairs: Iterable[tuple[str, K]]) -> dict[str, K]:
    """Index items by name; two of one name are an error."""
    found: dict[str, K] = {}
    for name, item in pairs:
        if name in found:
            raise DeclarationError(
                f"Two {kind}s are called `{name}`. Rename one, or give one of their toolsets a prefix."
            )
        found[name] = item
    return found


def server_info_of(toolset: Toolset) -> ServerInfo | None:
    """What the toolset says of its server, if it does."""
    return toolset.server_info if isinstance(toolset, DescribedToolset) else None


def lifespans_of(toolset: Toolset) -> Sequence[Lifespans]:
    """What is opened with a toolset."""
    return toolset.lifespans if isinstance(toolset, LifespanToolset) else ()


@asynccontextmanager
async def open_lifespans(toolset: Toolset) -> AsyncGenerator[None]:
    """Open what a toolset needs, for as long as the block runs. What is open already on this event loop is shared."""
    async with AsyncExitStack() as stack:
        for each in lifespans_of(toolset):
            await stack.enter_async_context(each.open())
        yield


def routes_of(toolset: Toolset) -> tuple[HttpRoute, ...]:
    """The pages that the toolset has over HTTP."""
    return toolset.routes if isinstance(toolset, RoutedToolset) else ()


def resource_of_template(uri: str, templates: Iterable[ResourceTemplate]) -> Resource | None:
    for template in templates:
        if (values := template.match(uri)) is not None:
            return template.resource(uri, values)
    return None


def _at_hand(toolset: Toolset) -> Sequence[Resource]:
    """The resources that are listed without work; combined toolsets have checked theirs."""
    return toolset.resources() if isinstance(toolset, StaticToolset) and not toolset.lists_resources_late else ()


def _first(found: Iterable[K | None]) -> K | None:
    return next((item for item in found if item is not None), None)
