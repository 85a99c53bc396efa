"""build_server: any toolset as an MCP server of both eras, on the SDK's low-level server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeAlias

import mcp_types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions

from trysquare.core.call import contained
from trysquare.core.errors import ToolError
from trysquare.core.toolset import Change, Toolset
from trysquare.core.types import JsonObject
from trysquare.serve.caller import LOG_LEVEL
from trysquare.serve.completion_requests import CompletionRequests
from trysquare.serve.eras import Request, connection_of, is_modern
from trysquare.serve.handshakes import Handshakes, initialized
from trysquare.serve.kept_lists import KeptLists
from trysquare.serve.options import ServeOptions
from trysquare.serve.prompt_requests import PromptRequests
from trysquare.serve.protocol_errors import protocol_error
from trysquare.serve.resource_requests import ResourceRequests
from trysquare.serve.sealed_states import SealedStates
from trysquare.serve.skill_requests import EXTENSION, SKILLS_GET, SKILLS_LIST, GetSkillParams, SkillRequests
from trysquare.serve.switchboard import Switchboard
from trysquare.serve.tool_calls import ToolCalls
from trysquare.serve.tool_requests import ToolRequests

__all__ = ["ServeOptions", "TrysquareServer", "build_server"]


SchemaOf: TypeAlias = Callable[[str], JsonObject | None]
Handler: TypeAlias = Callable[[Request, Any], Awaitable[JsonObject]]


class TrysquareServer(Server[Switchboard]):
    """The SDK's server, which tells clients of the handshake era that lists may change."""

    def __init__(
        self, toolset: Toolset, options: ServeOptions, get_tool_input_schema: SchemaOf, calls: ToolCalls
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
        self._toolset = toolset
        self.untold: set[Change] | None = None
        """What changed before there was a server, where its client was greeted before that."""
        self._running: set[Switchboard] = set()
        self._chain: tuple[list[ServerMiddleware[Switchboard]], CallNext] | None = None

    def close_streams(self) -> None:
        """End the streams of all that listen, because the server is about to end."""
        for switchboard in self._running:
            switchboard.close()

    @property
    def switchboard(self) -> Switchboard | None:
        """What is known of the clients while the server runs over HTTP, where all of them share one."""
        return next(iter(self._running), None)

    def answer_call(self, ctx: Request) -> Awaitable[HandlerResult]:
        """The result of a plain `tools/call`, through every middleware but without the SDK's own checks."""
        if self._chain is None or self._chain[0] != self.middleware:
            self._chain = ([*self.middleware], self._chained())
        return self._chain[1](ctx)

    def _chained(self) -> CallNext:
        """The way of a call: through all that has to do with one."""
        call: CallNext = self.calls.answer
        for middleware in reversed(self.middleware):
            if middleware is not self.calls and not isinstance(middleware, (Handshakes, KeptLists)):
                call = partial(_through, middleware, call)
        return call

    @asynccontextmanager
    async def _connect(self, _: Server[Switchboard]) -> AsyncGenerator[Switchboard]:
        async with Switchboard(self.untold).connected(self._toolset) as switchboard:
            self._running.add(switchboard)
            try:
                yield switchboard
            finally:
                self._running.discard(switchboard)

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


def _through(middleware: ServerMiddleware[Switchboard], call_next: CallNext, ctx: Request) -> Awaitable[HandlerResult]:
    return middleware(ctx, call_next)


def build_server(toolset: Toolset, options: ServeOptions | None = None) -> TrysquareServer:
    """Make a server of a toolset. It serves any number of connections, of both eras, on any transport."""
    known = options or ServeOptions()
    tools = ToolRequests(toolset, known)

    server = TrysquareServer(toolset, known, tools.schema_of, ToolCalls(tools, known))
    _register(server, toolset, known, tools)
    if not known.telemetry:
        server.middleware.clear()
    server.middleware.append(SealedStates(known))
    server.middleware.append(Handshakes(server.create_initialization_options))
    server.middleware.append(KeptLists(known))
    server.middleware.append(server.calls)
    return server


def _register(server: TrysquareServer, toolset: Toolset, options: ServeOptions, tools: ToolRequests) -> None:
    prompts = PromptRequests(toolset, options)
    resources = ResourceRequests(toolset, options)
    completions = CompletionRequests(toolset, options, prompts)
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
        skills = SkillRequests(resources, options)
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
    """The handler, whose failures are errors of the protocol and whose crash tells an incident id only."""

    async def answer(request: Request, params: Any) -> JsonObject:
        try:
            return await contained(method, handler(request, params))
        except ToolError as error:
            raise protocol_error(error, modern=is_modern(request)) from None

    return answer


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
