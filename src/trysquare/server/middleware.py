"""Handshake, list cache, request-state sealing."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final

from mcp.server.context import CallNext, HandlerResult
from mcp.server.models import InitializationOptions
from mcp_types import Implementation, InitializeRequestParams, InitializeResult, NotificationParams
from mcp_types.methods import is_input_required, validate_client_request
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION
from pydantic import ValidationError

from trysquare.core.json import JsonObject
from trysquare.server._sdk import connection_of
from trysquare.server.caller import principal_of, profiles_of
from trysquare.server.notifications import owner_of
from trysquare.server.options import ServeOptions
from trysquare.server.protocol import Request, is_stateless

if TYPE_CHECKING:
    from mcp.server.request_state import RequestStateBoundary


# The SDK holds both to models of the client's version, which take longer to import than all else that a first call
# needs. What it does with them afterwards is done here in the same way, and whatever is not plain still goes the
# SDK's way.


HANDSHAKES: Final = frozenset({"initialize", "notifications/initialized"})


class HandshakeMiddleware:
    """A middleware of the SDK, which itself still keeps what the client said."""

    def __init__(self, describe: Callable[[], InitializationOptions]) -> None:
        self._describe = describe

    async def __call__(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        if ctx.protocol_version == LATEST_HANDSHAKE_VERSION:
            if ctx.method == "initialize" and (version := _agreed_version(ctx)) is not None:
                return self._greeting(version)
            if ctx.method != "initialize" and not ctx.params:
                connection_of(ctx).initialized.set()
                await initialized(ctx, NotificationParams())
                return None
        return await call_next(ctx)

    def _greeting(self, version: str) -> JsonObject:
        info = self._describe()
        server = Implementation(
            name=info.server_name,
            title=info.title,
            description=info.description,
            version=info.server_version,
            website_url=info.website_url,
            icons=info.icons,
        )
        result = InitializeResult(
            protocol_version=version,
            capabilities=info.capabilities,
            server_info=server,
            instructions=info.instructions,
        )
        # Extensions exist in protocol 2026-07-28 only.
        sent_later = {"capabilities": {"extensions"}}
        return result.model_dump(by_alias=True, mode="json", exclude_none=True, exclude=sent_later)


async def initialized(request: Request, params: NotificationParams) -> None:
    """The client is ready: from now on it hears of changes."""
    owner = None if request.request is None else owner_of(request.request.scope)
    request.lifespan_context.add_session(connection_of(request), owner)


def _agreed_version(ctx: Request) -> str | None:
    """The version to go on with, or None where the SDK has to say what is wrong."""
    try:
        asked = InitializeRequestParams.model_validate(ctx.params or {}, by_name=False)
    except ValidationError:
        return None
    known = asked.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
    return asked.protocol_version if known else LATEST_HANDSHAKE_VERSION


LISTS: Final = frozenset({"tools/list", "prompts/list", "resources/list", "resources/templates/list"})
_MAX_CACHED = 256


class ListCacheMiddleware:
    """A middleware of the SDK: what it checked and shaped for the wire once is not checked and shaped again.

    A list depends on the toolset, the profiles, the toolsets of the principal and the version of the protocol, never on
    the connection; so these make the key.
    """

    def __init__(self, options: ServeOptions) -> None:
        self._options = options

    async def __call__(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        if not self._is_open(ctx):
            return await call_next(ctx)
        # A malformed request gets the same answer whether or not the list is cached.
        validate_client_request(ctx.method, ctx.protocol_version, ctx.params)
        cache, generation = ctx.lifespan_context.list_cache, ctx.lifespan_context.generation
        key = self._key(ctx)
        found = cache.get(key)
        if found is not None and found[0] == generation:
            return found[1]
        result = await call_next(ctx)
        if isinstance(result, dict) and generation == ctx.lifespan_context.generation:
            if len(cache) >= _MAX_CACHED:
                cache.clear()
            cache[key] = (generation, result)
        return result

    def _is_open(self, ctx: Request) -> bool:
        """Before the handshake there is nothing to list; the SDK answers that."""
        return is_stateless(ctx) or ctx.session.client_params is not None

    def _key(self, ctx: Request) -> Hashable:
        profiles = profiles_of(ctx, self._options)
        params: Any = ctx.params or {}
        return (
            ctx.method,
            ctx.protocol_version,
            params.get("cursor"),
            profiles.default,
            frozenset(profiles.toolsets.items()),
            principal_of(self._options).scopes,
        )


STATEFUL: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Requests whose handlers may ask the client something."""


class RequestStateMiddleware:
    """A middleware of the SDK: its own `RequestStateBoundary`, from the first question on.

    Most servers never ask, and the library that seals takes more memory than the rest of this package.
    """

    def __init__(self, options: ServeOptions) -> None:
        self._options = options
        self._boundary: RequestStateBoundary | None = None

    async def __call__(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        if self._boundary is not None or (ctx.params or {}).get("requestState") is not None:
            return await self._made()(ctx, call_next)
        result = await call_next(ctx)
        if _is_plain(result) or not is_input_required(result):
            return result

        async def known(_: Request) -> HandlerResult:
            return result

        return await self._made()(ctx, known)

    def _made(self) -> RequestStateBoundary:
        if self._boundary is None:
            self._boundary = _boundary(self._options)
        return self._boundary


def _is_plain(result: HandlerResult) -> bool:
    """Whether it is beyond doubt that a result asks nothing. Quick, since nearly every one is."""
    return type(result) is dict and result.get("resultType") is None


def _boundary(options: ServeOptions) -> RequestStateBoundary:
    from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

    if options.state_keys:
        security = RequestStateSecurity(keys=options.state_keys, ttl=options.state_ttl)
    else:
        security = RequestStateSecurity.ephemeral(ttl=options.state_ttl)
    return RequestStateBoundary(security, default_audience=options.name)
