"""build_server: any toolset as an MCP server of both eras, on the SDK's low-level server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeAlias

import mcp_types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions

from trysquare.core.json import JsonObject
from trysquare.core.toolset import Toolset
from trysquare.server._sdk import connection_of, is_supported
from trysquare.server.caller import LOG_LEVEL
from trysquare.server.handlers.prompts import CompletionHandlers, PromptHandlers
from trysquare.server.handlers.resources import (
    EXTENSION,
    SKILLS_GET,
    SKILLS_LIST,
    GetSkillParams,
    ResourceHandlers,
    SkillHandlers,
)
from trysquare.server.handlers.tools import CALL, PlainCallMiddleware, ToolHandlers
from trysquare.server.middleware import (
    HANDSHAKES,
    LISTS,
    STATEFUL,
    HandshakeMiddleware,
    ListCacheMiddleware,
    RequestStateMiddleware,
    initialized,
)
from trysquare.server.notifications import NotificationHub
from trysquare.server.options import ServeOptions
from trysquare.server.protocol import Request, answered, is_stateless

__all__ = ["ServeOptions", "TrysquareServer", "build_server"]


SchemaOf: TypeAlias = Callable[[str], JsonObject | None]
Handler: TypeAlias = Callable[[Request, Any], Awaitable[JsonObject]]


class TrysquareServer(Server[NotificationHub]):
    """The SDK's server, which tells clients of the session protocol (2025-11-25) that lists may change."""

    def __init__(
        self, toolset: Toolset, options: ServeOptions, get_tool_input_schema: SchemaOf, calls: PlainCallMiddleware
    ) -> None:
        super().__init__(
            options.name,
            version=options.version,
            title=options.title,
            instructions=options.instructions,
            lifespan=self._connect,
            get_tool_input_schema=get_tool_input_schema,
            cache_hints=_cache_hints(options),
        )
        self.calls = calls
        self.states = RequestStateMiddleware(options)
        self._toolset = toolset
        self._running: set[NotificationHub] = set()
        self._chain: tuple[list[ServerMiddleware[NotificationHub]], CallNext] | None = None

    def close_streams(self) -> None:
        """End the streams of all that listen, because the server is about to end."""
        for hub in self._running:
            hub.close()

    @property
    def hub(self) -> NotificationHub | None:
        """What is known of the clients while the server runs over HTTP, where all of them share one."""
        return next(iter(self._running), None)

    def answer_call(self, ctx: Request) -> Awaitable[HandlerResult]:
        """The result of a plain `tools/call`, through every middleware but without the SDK's own checks."""
        if self._chain is None or self._chain[0] != self.middleware:
            self._chain = ([*self.middleware], self._chained())
        return self._chain[1](ctx)

    def _chained(self) -> CallNext:
        call: CallNext = partial(_through, self.states, self.calls.answer)
        for middleware in reversed(self.middleware):
            if not isinstance(middleware, _Router):
                call = partial(_through, middleware, call)
        return call

    @asynccontextmanager
    async def _connect(self, _: Server[NotificationHub]) -> AsyncGenerator[NotificationHub]:
        async with NotificationHub().connected(self._toolset) as hub:
            self._running.add(hub)
            try:
                yield hub
            finally:
                self._running.discard(hub)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        changing = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        return super().create_initialization_options(
            notification_options or changing, experimental_capabilities, extensions
        )


def _through(
    middleware: ServerMiddleware[NotificationHub], call_next: CallNext, ctx: Request
) -> Awaitable[HandlerResult]:
    return middleware(ctx, call_next)


class _Router:
    """A middleware of the SDK: looks up the method of a message once, and runs the middleware of that method."""

    def __init__(self, routes: Mapping[str, ServerMiddleware[NotificationHub]]) -> None:
        self._routes = routes

    async def __call__(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        route = self._routes.get(ctx.method)
        return await (call_next(ctx) if route is None else route(ctx, call_next))


def build_server(toolset: Toolset, options: ServeOptions | None = None) -> TrysquareServer:
    """Make a server of a toolset. It serves any number of connections, of both eras, on any transport."""
    known = options or ServeOptions()
    tools = ToolHandlers(toolset, known)

    server = TrysquareServer(toolset, known, tools.schema_of, PlainCallMiddleware(tools, known))
    _register(server, toolset, known, tools)
    if not known.telemetry:
        server.middleware.clear()
    server.middleware.append(_Router(_routes(server, known)))
    return server


def _routes(server: TrysquareServer, options: ServeOptions) -> dict[str, ServerMiddleware[NotificationHub]]:
    states = server.states

    async def call(ctx: Request, call_next: CallNext) -> HandlerResult:
        return await states(ctx, partial(_through, server.calls, call_next))

    routes: dict[str, ServerMiddleware[NotificationHub]] = dict.fromkeys(STATEFUL, states)
    routes |= dict.fromkeys(LISTS, ListCacheMiddleware(options))
    if is_supported():
        routes |= dict.fromkeys(HANDSHAKES, HandshakeMiddleware(server.create_initialization_options))
        routes[CALL] = call
    return routes


def _register(server: TrysquareServer, toolset: Toolset, options: ServeOptions, tools: ToolHandlers) -> None:
    prompts = PromptHandlers(toolset, options)
    resources = ResourceHandlers(toolset, options)
    completions = CompletionHandlers(toolset, options, prompts)
    handlers: list[tuple[str, type[types.RequestParams], Handler]] = [
        ("tools/list", types.PaginatedRequestParams, tools.list),
        ("tools/call", types.CallToolRequestParams, tools.call),
        ("prompts/list", types.PaginatedRequestParams, prompts.list),
        ("prompts/get", types.GetPromptRequestParams, prompts.get),
        ("resources/list", types.PaginatedRequestParams, resources.list),
        ("resources/templates/list", types.PaginatedRequestParams, resources.list_templates),
        ("resources/read", types.ReadResourceRequestParams, resources.read),
        ("resources/subscribe", types.SubscribeRequestParams, resources.subscribe),
        ("resources/unsubscribe", types.UnsubscribeRequestParams, resources.unsubscribe),
        ("completion/complete", types.CompleteRequestParams, completions.complete),
        ("logging/setLevel", types.SetLevelRequestParams, _set_log_level),
    ]
    if options.skills:
        skills = SkillHandlers(resources, options)
        handlers += [
            (SKILLS_LIST, types.PaginatedRequestParams, skills.list),
            (SKILLS_GET, GetSkillParams, skills.get),
        ]
        server.extensions[EXTENSION] = {}
    for method, params_type, handler in handlers:
        server.add_request_handler(method, params_type, _contained(method, handler))
    server.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, resources.listen)
    server.add_notification_handler("notifications/initialized", types.NotificationParams, initialized)


def _contained(method: str, handler: Handler) -> Handler:
    return lambda request, params: answered(method, handler(request, params), modern=is_stateless(request))


async def _set_log_level(request: Request, params: types.SetLevelRequestParams) -> JsonObject:
    connection_of(request).state[LOG_LEVEL] = params.level
    return {}


def _cache_hints(options: ServeOptions) -> dict[CacheableMethod, CacheHint]:
    """Lists may be kept and shared, since they do not depend on the connection; what a resource holds may not."""
    shared = CacheHint(ttl_ms=options.list_ttl_ms, scope="public")
    return {
        "server/discover": shared,
        "tools/list": shared,
        "prompts/list": shared,
        "resources/list": shared,
        "resources/templates/list": shared,
        "resources/read": CacheHint(ttl_ms=0, scope="private"),
    }
