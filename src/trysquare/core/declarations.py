"""Tools: where a module declares its tools, prompts and resources."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeVar, Unpack, cast, overload

from trysquare.core.apps import META_KEY, AppPage, Audience, page_address, page_of, page_resource, tool_meta
from trysquare.core.arguments import DrainableRegistry
from trysquare.core.errors import DeclarationError
from trysquare.core.hints import declaring
from trysquare.core.lifespan import Lifespans
from trysquare.core.metadata import Icon, MetadataOptions
from trysquare.core.mounting import mounted_prompts, mounted_tools
from trysquare.core.prompts import Complete, Prompt, prompt
from trysquare.core.requests import OnRequest, RequestMiddleware
from trysquare.core.resources import ListedExtras, Resource, ResourceTemplate, resource
from trysquare.core.selection import Selection
from trysquare.core.tool import Tool, tool
from trysquare.core.toolset import HttpRoute, ServerInfo, StaticToolset, open_lifespans

F = TypeVar("F", bound=Callable[..., Any])
M = TypeVar("M", bound=Callable[[Tool], Tool])
R = TypeVar("R", bound=OnRequest)


class AsgiApplication(Protocol):
    """An ASGI application, and its lifespan for the application that it is mounted in."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...

    def lifespan(self, app: object = None) -> AbstractAsyncContextManager[None]: ...


class ToolOptions(MetadataOptions, total=False):
    """The options of `Tools.tool`."""

    name: str | None
    title: str | None
    description: str | None


class Tools:
    """The tools, prompts and resources of a module, and what a server that serves them alone is called.

    It is an object that the module owns, so that importing has no hidden effect.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        version: str | None = None,
        instructions: str | None = None,
        website: str | None = None,
        icons: tuple[Icon, ...] = (),
        middleware: Sequence[Callable[[Tool], Tool]] = (),
        lifespan: Callable[..., Any] | None = None,
    ) -> None:
        info = ServerInfo(
            name=name, title=title, version=version, instructions=instructions, website=website, icons=icons
        )
        self.server_info: ServerInfo | None = None if info == ServerInfo() else info
        self._routes: list[HttpRoute] = []
        self._middleware = list(middleware)
        self._on_request: list[RequestMiddleware] = []
        self._mounts: list[tuple[Tools, str]] = []
        self._selection = Selection()
        self._tools: DrainableRegistry[Tool] = DrainableRegistry("Tool")
        self._prompts: DrainableRegistry[Prompt] = DrainableRegistry("Prompt")
        self._resources: DrainableRegistry[Resource | ResourceTemplate] = DrainableRegistry(
            "Resource", "another address."
        )
        self._lifespans = Lifespans(self)
        if lifespan is not None:
            self._lifespans.add(lifespan)

    @overload
    def tool(self, function: F, /, **options: Unpack[ToolOptions]) -> F: ...

    @overload
    def tool(self, called: str | None = None, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...

    def tool(self, function: Callable[..., Any] | str | None = None, /, **options: Any) -> Any:
        """Declare a function as a tool; it is returned unchanged. Works with and without parentheses."""
        if isinstance(function, str):
            options, function = {"name": function, **options}, None

        def remember(declared: F) -> F:
            with declaring(declared):
                self.add(tool(declared, values=self._lifespans, **options))
            return declared

        return remember if function is None else remember(function)

    declare = tool

    @overload
    def app(self, function: F, /) -> F: ...

    @overload
    def app(
        self,
        page: AppPage | str | Path | None = None,
        /,
        *,
        audience: Sequence[Audience] = ("model", "app"),
        **options: Unpack[ToolOptions],
    ) -> Callable[[F], F]: ...

    def app(self, page: Any = None, /, *, audience: Sequence[Audience] = ("model", "app"), **options: Any) -> Any:
        """Declare a function as a tool with a page, which clients that support MCP Apps show beside its calls.

        The page is an HTML file beside the module, a text that begins with `<`, `AppPage.chart()` or, without one, the
        form of the tool. Other clients get what the tool returns, as ever. `audience=["app"]` is for tools that only
        the page calls; it hides them from models, and protects nothing.
        """
        is_bare = callable(page)

        def remember(declared: F) -> F:
            with declaring(declared):
                about, named = page_of(None if is_bare else page, declared), self.server_info
                made = tool(declared, values=self._lifespans, **options)
                place = (named and named.name) or getattr(declared, "__module__", None) or ""
                address = page_address(made.name, place)
                meta = {**made.metadata.meta, META_KEY: tool_meta(address, audience)}
                made = replace(made, metadata=replace(made.metadata, meta=meta))
                self.add(made)
                self._resources.add(address, page_resource(about, address, made))
            return declared

        return remember(page) if is_bare else remember

    def add(self, made: Tool) -> None:
        """Add a tool that was made elsewhere."""
        self._tools.add(made.name, made)

    @overload
    def prompt(self, function: F, /) -> F: ...

    @overload
    def prompt(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        complete: Complete | None = None,
        examples: tuple[tuple[str, str], ...] = (),
        icons: tuple[Icon, ...] = (),
        tags: frozenset[str] = frozenset(),
        meta: Mapping[str, Any] | None = None,
    ) -> Callable[[F], F]: ...

    def prompt(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Declare a function as a prompt; it is returned unchanged. Works with and without parentheses."""

        def remember(declared: F) -> F:
            with declaring(declared):
                made = prompt(declared, values=self._lifespans, **options)
                self._prompts.add(made.name, made)
            return declared

        return remember if function is None else remember(function)

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        complete: Complete | None = None,
        icons: tuple[Icon, ...] = (),
        annotations: Mapping[str, Any] | None = None,
        tags: frozenset[str] = frozenset(),
        meta: Mapping[str, Any] | None = None,
    ) -> Callable[[F], F]:
        """Declare a function as a resource, or as a template where the address has parts in braces."""
        extra = ListedExtras(icons=icons, annotations=annotations or {}, tags=frozenset(tags), meta=meta or {})

        def remember(declared: F) -> F:
            with declaring(declared):
                made = resource(
                    declared,
                    uri,
                    name=name,
                    title=title,
                    description=description,
                    mime_type=mime_type,
                    complete=complete,
                    extra=extra,
                    values=self._lifespans,
                )
                self._resources.add(uri, made)
            return declared

        if not isinstance(cast(object, uri), str):
            with declaring(uri):
                raise DeclarationError('A resource needs an address: `@tools.resource("data://name")`.')
        return remember

    @overload
    def lifespan(self, function: F, /) -> F: ...

    @overload
    def lifespan(self, /) -> Callable[[F], F]: ...

    def lifespan(self, function: Callable[..., Any] | None = None, /) -> Any:
        """Declare what is opened when the tools are opened: a function that yields it once, and then closes it.

        A parameter of a tool, prompt or resource that has the type of what it yields is filled in with it. Several are
        opened in their order, and may take what earlier ones yield.
        """

        def remember(declared: F) -> F:
            self._lifespans.add(declared)
            return declared

        return remember if function is None else remember(function)

    def middleware(self, function: M) -> M:
        """Put a middleware around every tool of these: a function from a tool to a tool. The first is outermost."""
        self._middleware.append(function)
        return function

    @overload
    def on_request(self, function: R, /) -> R: ...

    @overload
    def on_request(self, /, *methods: str) -> Callable[[R], R]: ...

    def on_request(self, /, *methods: Any) -> Any:
        """Put a function around the requests of clients: all of them, or those of methods such as `resources/read`.

        `async def audit(request: McpRequest, proceed: Proceed)` returns the result of `await proceed()`, changed or
        not, or raises a `ToolError`. The first is outermost. Calls in this process do not pass: a limit that must hold
        for every call of a tool is a `middleware`.
        """
        functions = [each for each in methods if callable(each)]
        names = frozenset[str](each for each in methods if isinstance(each, str))

        def remember(declared: R) -> R:
            self._on_request.append(RequestMiddleware(function=declared, methods=names))
            return declared

        return remember(cast(OnRequest, functions[0])) if functions else remember

    def mount(self, other: Tools, prefix: str = "") -> None:
        """Add what another `Tools` declares: its tools and prompts with a prefix, its resources as they are.

        Whatever it declares later belongs to it as well, and so do its middleware, lifespans and routes.
        """
        if other.has_mounted(self):
            raise DeclarationError("These tools cannot be mounted in themselves.")
        self._mounts.append((other, prefix))

    def has_mounted(self, other: Tools) -> bool:
        """Whether these are the other ones, or have them mounted at any depth."""
        return other is self or any(inner.has_mounted(other) for inner, _ in self._mounts)

    def disable(self, *names: str, tags: Iterable[str] = ()) -> None:
        """Take tools and prompts by name, resources by address, or any of them by tag, out of the toolset.

        What is disabled is neither listed nor callable. Of several rules the last counts. A server that runs already
        keeps its tools; a `DynamicToolset` changes them.
        """
        self._selection.add(names, tags, enabled=False)

    def enable(self, *names: str, tags: Iterable[str] = (), only: bool = False) -> None:
        """Bring back what is disabled; with `only`, everything else is disabled."""
        self._selection.add(names, tags, enabled=True, only=only)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[StaticToolset]:
        """The toolset with its lifespans open. Servers, commands and test helpers open toolsets by themselves."""
        toolset = self.toolset()
        async with open_lifespans(toolset):
            yield toolset

    def custom_route(self, path: str, methods: Sequence[str] = ("GET",)) -> Callable[[F], F]:
        """Declare a function as a page beside the MCP endpoint, where the tools are served over HTTP.

        It takes nothing, or a parameter annotated with Starlette's `Request`, and returns a response, text, bytes or a
        value to send as JSON. It is open to whoever reaches the server: tokens guard the MCP endpoint only.
        """
        if not path.startswith("/"):
            raise DeclarationError(f"The path of a route begins with `/`, not `{path}`.")

        def remember(declared: F) -> F:
            names = tuple(method.upper() for method in methods)
            self._routes.append(HttpRoute(path=path, methods=names, function=declared))
            return declared

        return remember

    def run(self, *, http: str | bool = False, reload: bool = False) -> None:
        """Serve these tools as `trysquare serve` does, with the settings of the project: over stdio, or with `http`.

        `http` is `True` or an address such as `127.0.0.1:8000`. In the file itself it stands below
        `if __name__ == "__main__":`; in a module that is only imported it does nothing.
        """
        _above("cli.serve").serve_tools(self, http=http, reload=reload)

    def http_app(
        self,
        *,
        path: str | None = None,
        allowed_hosts: Sequence[str] = (),
        allowed_origins: Sequence[str] = (),
        public: bool = False,
    ) -> AsgiApplication:
        """The ASGI application of these tools, to serve or mount in FastAPI or Starlette, as `trysquare.http_app`."""
        return _above("asgi").http_app(
            self, path=path, allowed_hosts=allowed_hosts, allowed_origins=allowed_origins, public=public
        )

    def toolset(self) -> StaticToolset:
        """All that was declared, as a toolset. Can be asked again; nothing is used up."""
        mounted = [(other.toolset(), prefix) for other, prefix in self._mounts]
        return self._toolset_of(self._tools.all(), self._prompts.all(), self._resources.all(), mounted)

    def collect(self) -> StaticToolset:
        """All that was declared since the last time, once: what is collected is not collected again."""
        mounted = [(other.collect(), prefix) for other, prefix in self._mounts]
        return self._toolset_of(self._tools.take(), self._prompts.take(), self._resources.take(), mounted)

    def _toolset_of(
        self,
        tools: dict[str, Tool],
        prompts: dict[str, Prompt],
        resources: dict[str, Resource | ResourceTemplate],
        mounted: Sequence[tuple[StaticToolset, str]],
    ) -> StaticToolset:
        inner = [each for toolset, prefix in mounted for each in mounted_tools(toolset, prefix)]
        own = StaticToolset(
            map(self._with_middleware, (*tools.values(), *inner)),
            prompts=(*prompts.values(), *(each for part, prefix in mounted for each in mounted_prompts(part, prefix))),
            resources=(
                *(made for made in resources.values() if isinstance(made, Resource)),
                *(each for part, _ in mounted for each in part.resources()),
            ),
            templates=(
                *(made for made in resources.values() if isinstance(made, ResourceTemplate)),
                *(each for part, _ in mounted for each in part.templates()),
            ),
            server_info=self.server_info,
            lifespans=(self._lifespans, *(each for part, _ in mounted for each in part.lifespans)),
            routes=(*self._routes, *(route for part, _ in mounted for route in part.routes)),
            request_middleware=(*self._on_request, *(each for part, _ in mounted for each in part.request_middleware)),
        )
        return self._selection.of(own)

    def _with_middleware(self, made: Tool) -> Tool:
        for wrap in reversed(self._middleware):
            made = wrap(made)
        return made


def _above(module: str) -> Any:
    """A module of a layer above, which only the methods that serve need: `Tools` is the one object that users hold."""
    return import_module(f"trysquare.{module}")


Declarations = Tools
"""The former name of `Tools`."""
