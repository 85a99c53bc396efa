"""Handshakes: `initialize` and `notifications/initialized` answered without the SDK's models of the wire.

The SDK holds both to models of the client's version, which take longer to import than all else that a first call needs.
What it does with them afterwards is done here in the same way, and whatever is not plain still goes the SDK's way.
"""

from __future__ import annotations

from collections.abc import Callable

from mcp.server.context import CallNext, HandlerResult
from mcp.server.models import InitializationOptions
from mcp_types import Implementation, InitializeRequestParams, InitializeResult, NotificationParams
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION
from pydantic import ValidationError

from trysquare.core.types import JsonObject
from trysquare.serve.eras import Request, connection_of
from trysquare.serve.http_sessions import owner_of


class Handshakes:
    """A middleware of the SDK, which itself still keeps what the client said."""

    def __init__(self, describe: Callable[[], InitializationOptions]) -> None:
        self._describe = describe

    async def __call__(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        if ctx.protocol_version == LATEST_HANDSHAKE_VERSION:
            if ctx.method == "initialize" and (version := _agreed_version(ctx)) is not None:
                return self._greeting(version)
            if ctx.method == "notifications/initialized" and not ctx.params:
                connection_of(ctx).initialized.set()
                await initialized(ctx, NotificationParams())
                return None
        return await call_next(ctx)

    def _greeting(self, version: str) -> JsonObject:
        told = self._describe()
        server = Implementation(
            name=told.server_name,
            title=told.title,
            description=told.description,
            version=told.server_version,
            website_url=told.website_url,
            icons=told.icons,
        )
        result = InitializeResult(
            protocol_version=version,
            capabilities=told.capabilities,
            server_info=server,
            instructions=told.instructions,
        )
        # Extensions are told in the era after the handshake's.
        told_late = {"capabilities": {"extensions"}}
        return result.model_dump(by_alias=True, mode="json", exclude_none=True, exclude=told_late)


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
