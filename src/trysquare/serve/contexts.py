"""Contexts: a request of the protocol as the CallContext that tools, prompts and resources see."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar, cast

from trysquare.catalog.profiles import ProfileChoice
from trysquare.core.call import contained
from trysquare.core.context import CallContext, DirectCall, Principal
from trysquare.core.errors import DeadlineExceeded
from trysquare.serve.caller import McpCaller
from trysquare.serve.eras import Request
from trysquare.serve.options import ServeOptions
from trysquare.serve.principals import token_principal

PROFILES_IN_SCOPE = "trysquare.profiles"
"""Where the HTTP door leaves the profiles that a request's address chose."""
T = TypeVar("T")
_NO_META: Mapping[str, Any] = {}


def call_context(request: Request, options: ServeOptions, direct: DirectCall) -> CallContext:
    """The context of one request. `direct` is the way to other tools."""
    client = request.session.client_params
    timeout = options.call_timeout
    return CallContext(
        principal=principal_of(options),
        caller=McpCaller(request),
        handles=options.handles,
        deadline=None if timeout is None else time.monotonic() + timeout,
        request_id=None if request.request_id is None else str(request.request_id),
        client=None if client is None else client.client_info.name,
        meta=_NO_META if request.meta is None else cast(Mapping[str, Any], request.meta),
        direct=direct,
        approvals=options.approvals,
    )


async def bounded(what: str, work: Awaitable[T], context: CallContext, *, arguments: Any = None) -> T:
    """Await the work of a prompt or resource until the context's deadline; its crash tells an incident id only."""
    try:
        async with asyncio.timeout(context.remaining()):
            return await contained(what, work, arguments=arguments)
    except TimeoutError:
        raise DeadlineExceeded(f"{what} took longer than it may and was stopped.") from None


def principal_of(options: ServeOptions) -> Principal:
    """Who makes the request that is being served: the token's subject, or the user who started the server."""
    return token_principal.get() or options.principal


def profiles_of(request: Request, options: ServeOptions) -> ProfileChoice:
    """The profiles that a list is made with: those of the address, or those of the server."""
    if request.request is None:
        return options.profiles
    return request.request.scope.get(PROFILES_IN_SCOPE) or options.profiles
