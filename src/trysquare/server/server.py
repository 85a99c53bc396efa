"""McpServer: a toolset as an MCP server of every supported protocol version, on any transport."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from msgspec import Raw

from trysquare.core.call import guard_crash
from trysquare.core.errors import ToolError
from trysquare.core.json import JsonObject
from trysquare.core.metadata import UI_EXTENSION
from trysquare.core.threads import run_in_thread
from trysquare.core.toolset import Change, Toolset, open_lifespans
from trysquare.protocol.envelope import envelope_version, require_meta, require_version
from trysquare.protocol.messages import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Message,
    RpcError,
    decode_part,
    encode,
    encode_error,
    encode_result,
    member,
)
from trysquare.protocol.methods import (
    CLIENT_REQUESTS,
    InitializeParams,
    Method,
    Params,
    SetLevelParams,
    decoder_of,
)
from trysquare.protocol.seal import StateSeal
from trysquare.protocol.versions import (
    SERVER_CAPABILITIES,
    SERVER_INFO_KEY,
    SKILLS_EXTENSION,
    STATELESS_VERSIONS,
    TASKS_EXTENSION,
    negotiated,
)
from trysquare.server.caller import Request, error_for
from trysquare.server.convert import protocol_error
from trysquare.server.handlers.base import Handler
from trysquare.server.handlers.prompts import PromptHandlers
from trysquare.server.handlers.resources import ResourceHandlers, SkillHandlers
from trysquare.server.handlers.tasks import TaskHandlers
from trysquare.server.handlers.tools import ToolHandlers
from trysquare.server.middleware import answer_through, require_methods
from trysquare.server.notifications import NotificationHub
from trysquare.server.options import ServeOptions

_BEFORE_HANDSHAKE = frozenset({"initialize", "ping"})


class Route(NamedTuple):
    """A method of the protocol, how its parameters are read, and what answers it."""

    method: Method
    decode: Callable[[bytes | Raw], Any]
    handler: Handler
    may_ask: bool = False
    """Whether its result may be questions, after whose answers the request comes again (2026-07-28)."""
    is_cached: bool = False
    """Whether its result depends on nothing but the toolset, the profiles, the principal's scopes and the page."""


class Reply(NamedTuple):
    """A response, and the code of its error."""

    body: bytes
    error: int | None = None


class McpServer:
    """Answers requests. It does not know transports: they bring the session, the way back and the principal."""

    def __init__(self, toolset: Toolset, options: ServeOptions | None = None) -> None:
        self.options = options or ServeOptions()
        self._toolset = toolset
        self.hub = NotificationHub(toolset)
        about = self.options.server_info(toolset)
        info = {
            "name": about.name,
            "title": about.title,
            "version": about.version,
            "websiteUrl": about.website,
            "icons": [icon.to_wire() for icon in about.icons],
        }
        self.info: JsonObject = {key: value for key, value in info.items() if value}
        """Name, title, version, website and icons, as the protocol has them."""
        self._instructions = about.instructions
        self._stamp: JsonObject = {SERVER_INFO_KEY: self.info}
        self._seal = StateSeal(self.options.state_keys, audience=self.info["name"], ttl=self.options.state_ttl)
        self.tools = ToolHandlers(toolset, self.options, self._stamp)
        if self.options.tasks is not None:
            self.tools.tasks = TaskHandlers(toolset, self.options.tasks, self.tools)
        self._routes = self._table(toolset)
        self._no_params = decoder_of(Params).decode
        self._around = self.options.around_requests(toolset)
        self._middleware = tuple(self._around())
        require_methods(self._middleware, tuple(CLIENT_REQUESTS))
        # A reloaded module may have other ones.
        self.hub.follow = self._take_middleware

    def _table(self, toolset: Toolset) -> dict[str, Route]:
        prompts = PromptHandlers(toolset, self.options)
        tasks = self.tools.tasks
        resources = ResourceHandlers(toolset, self.options, self.hub, tasks)
        handlers: dict[str, Handler] = {
            "initialize": self._initialize,
            "ping": self._ping,
            "server/discover": self._discover,
            "tools/list": self.tools.list,
            "tools/call": self.tools.call,
            "prompts/list": prompts.list,
            "prompts/get": prompts.get,
            "resources/list": resources.list,
            "resources/templates/list": resources.list_templates,
            "resources/read": resources.read,
            "resources/subscribe": resources.subscribe,
            "resources/unsubscribe": resources.unsubscribe,
            "subscriptions/listen": resources.listen,
            "completion/complete": prompts.complete,
            "logging/setLevel": self._set_level,
        }
        if self.options.skills:
            skills = SkillHandlers(resources, self.options)
            handlers |= {"skills/list": skills.list, "skills/get": skills.get}
        if tasks is not None:
            handlers |= {"tasks/get": tasks.get, "tasks/update": tasks.update, "tasks/cancel": tasks.cancel}
        return {
            name: Route(
                (method := CLIENT_REQUESTS[name]),
                decoder_of(method.params).decode,
                handler,
                may_ask=method.may_ask,
                is_cached=name.endswith("/list"),
            )
            for name, handler in handlers.items()
        }

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Open what the tools need, such as a pool of their lifespan. Transports do; a `Connection` does not."""
        async with open_lifespans(self._toolset):
            runner = None if self.tools.tasks is None else self.tools.tasks.runner
            if runner is not None:
                runner.open()
            try:
                yield
            finally:
                if runner is not None:
                    # While the tools still have what they need.
                    await runner.close()

    def read(self, message: Message, *, stateless: bool) -> tuple[Route | None, Any]:
        """The route of a request, None for an unknown method, and its parameters. Raises `RpcError`."""
        route = self._routes.get(str(message.method))
        if route is not None and not (route.method.stateless if stateless else route.method.handshake):
            # Before its parameters are read: a removed method is not found, whatever they are.
            route = None
        try:
            params = decode_part(self._no_params if route is None else route.decode, message.params)
            require_meta(params.meta, stateless=stateless)
            return route, params
        except RpcError:
            if stateless:
                # What is wrong with the envelope comes first.
                require_version(envelope_version(member(message.params, "_meta")))
            raise

    async def respond(self, route: Route | None, request: Request) -> Reply:
        """Answer a request. Every failure is a response; only cancellation passes."""
        try:
            if route is None:
                raise RpcError(METHOD_NOT_FOUND, f"Method not found: {request.method[:80]}")
            session = request.session
            if session is not None and session.version is None and request.method not in _BEFORE_HANDSHAKE:
                raise RpcError(INVALID_PARAMS, "Send `initialize` first, or an envelope of 2026-07-28 in `_meta`.")
            if route.may_ask and request.params.request_state is not None:
                self._open_state(request)
            return Reply(await guard_crash(request.method, self._answer(route, request)))
        except ToolError as failure:
            error = protocol_error(error_for(request, failure), stateless=request.is_stateless)
        except RpcError as raised:
            error = raised
        except BaseExceptionGroup as group:
            # A task group of the tool's own, cancelled: nothing else passes as a group.
            raise asyncio.CancelledError from group
        return Reply(encode_error(error, request.id), error.code)

    def _take_middleware(self, change: Change) -> None:
        if change == "tools":
            self._middleware = tuple(self._around())

    async def _answer(self, route: Route, request: Request) -> bytes:
        if self._middleware and (middleware := [one for one in self._middleware if one.applies_to(request.method)]):
            result = await answer_through(middleware, route.handler, request)
            return encode_result(request.id, self._finished(result, route, request, is_shared=False))
        if not route.is_cached:
            return encode_result(request.id, self._finished(await route.handler(request), route, request))
        cache, key = self.hub.cache, _cache_key(request)
        encoded = cache.get(key)
        if encoded is None:
            encoded = encode(self._finished(await route.handler(request), route, request))
            self.hub.store(cache, key, encoded)
        return encode_result(request.id, encoded)

    def _finished(
        self, result: JsonObject | bytes, route: Route, request: Request, *, is_shared: bool = True
    ) -> JsonObject | bytes:
        """The result with what its protocol version has in every one, and without what it does not have.

        Unless `is_shared`, nobody but its client may cache it.
        """
        if type(result) is bytes:
            return result
        assert isinstance(result, dict)
        if request.session is not None:
            result.pop("resultType", None)
            return result
        result.setdefault("resultType", "complete")
        if result["resultType"] == "input_required":
            result["requestState"] = self._seal.seal(result["requestState"], _bound(request))
        elif route.method.cached is not None:
            is_private = route.method.cached == "private" or request.is_authenticated or not is_shared
            result["ttlMs"] = 0 if request.method == "resources/read" else self.options.list_ttl_ms
            result["cacheScope"] = "private" if is_private else "public"
        result["_meta"] = {**result["_meta"], **self._stamp} if "_meta" in result else self._stamp
        return result

    def _open_state(self, request: Request) -> None:
        """Replace the sealed state in the parameters by what was sealed. Versions with a handshake have none."""
        params = request.params
        params.request_state = self._seal.open(params.request_state, _bound(request)) if request.is_stateless else None

    async def _initialize(self, request: Request) -> JsonObject:
        params: InitializeParams = request.params
        session = request.session
        assert session is not None
        session.version = negotiated(params.protocol_version)
        session.capabilities = params.capabilities
        session.client_info = {"name": params.client_info.name, "version": params.client_info.version}
        return await self._introduction({"protocolVersion": session.version, "serverInfo": self.info})

    async def _discover(self, request: Request) -> JsonObject:
        introduction = await self._introduction({"supportedVersions": list(STATELESS_VERSIONS)})
        # Pages are offered whether or not a tool has one now: tools may change, what a server offers may not.
        offered = {
            UI_EXTENSION: True,
            SKILLS_EXTENSION: self.options.skills,
            TASKS_EXTENSION: self.options.tasks is not None,
        }
        extensions: JsonObject = {name: {} for name, is_offered in offered.items() if is_offered}
        introduction["capabilities"] = {**SERVER_CAPABILITIES, "extensions": extensions}
        return introduction

    async def _introduction(self, head: JsonObject) -> JsonObject:
        introduction: JsonObject = {**head, "capabilities": SERVER_CAPABILITIES}
        introduce = self.options.introduce
        stands = None if introduce is None else await run_in_thread(introduce)
        if texts := [text for text in (self._instructions, stands) if text]:
            introduction["instructions"] = "\n\n".join(texts)
        return introduction

    async def _ping(self, request: Request) -> JsonObject:
        return {}

    async def _set_level(self, request: Request) -> JsonObject:
        params: SetLevelParams = request.params
        if request.session is not None:
            request.session.log_level = params.level
        return {}


def build_server(toolset: Toolset, options: ServeOptions | None = None) -> McpServer:
    """Make a server of a toolset. It serves any number of clients, of every protocol version, on any transport."""
    return McpServer(toolset, options)


def _cache_key(request: Request) -> Hashable:
    """What a list depends on beside the toolset. It never depends on the connection."""
    profiles = request.profiles
    return (
        request.method,
        request.params.cursor,
        request.is_stateless,
        request.is_authenticated,
        request.principal.scopes,
        profiles.default,
        frozenset(profiles.toolsets.items()),
    )


def _bound(request: Request) -> JsonObject:
    """The request that a sealed state belongs to."""
    named_by = CLIENT_REQUESTS[request.method].named_by
    return {
        "method": request.method,
        "target": None if named_by is None else getattr(request.params, named_by),
        "arguments": getattr(request.params, "arguments", None) or {},
        "principal": request.principal.subject,
    }
