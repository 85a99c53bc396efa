"""Requests on their way through the request middleware of a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import msgspec

from trysquare.core.errors import DeclarationError, ToolError
from trysquare.core.json import JsonObject, as_object
from trysquare.core.requests import McpRequest, Proceed, RequestMiddleware
from trysquare.core.result import Result
from trysquare.core.text import closest_names
from trysquare.protocol.messages import decode_any
from trysquare.server.caller import Request, shown_to
from trysquare.server.convert import result_to_wire
from trysquare.server.handlers.base import Handler

_INNER = frozenset({"_meta", "requestState"})
"""Members of parameters that are not shown among them."""


async def answer_through(middleware: Sequence[RequestMiddleware], handler: Handler, request: Request) -> JsonObject:
    """What answers a request, with every middleware around it. A refused tool call is a result that a model reads."""
    own: list[ToolError] = []
    proceed: Proceed = partial(_handled, handler, request, own)
    seen = _seen(request)
    for each in reversed(middleware):
        proceed = each.around(seen, proceed)
    try:
        return await proceed()
    except ToolError as error:
        if request.method != "tools/call" or any(error is known for known in own):
            raise
        return result_to_wire(shown_to(request, Result.from_error(error)))


async def _handled(handler: Handler, request: Request, own: list[ToolError]) -> JsonObject:
    try:
        result = await handler(request)
    except ToolError as error:
        own.append(error)
        raise
    return decode_any(result) if isinstance(result, bytes) else result


def _seen(request: Request) -> McpRequest:
    params: JsonObject = msgspec.to_builtins(request.params)
    headers = {name.decode("latin-1").lower(): text.decode("latin-1") for name, text in request.headers}
    return McpRequest(
        method=request.method,
        params={name: part for name, part in params.items() if part is not None and name not in _INNER},
        meta=_frozen(request.meta),
        principal=request.principal,
        protocol_version=request.version,
        # Before `initialize` is answered the session does not know it.
        client_info=_frozen(request.client_info or as_object(params.get("clientInfo"))),
        headers=_frozen(headers),
    )


def _frozen(values: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(dict(values))


def require_methods(middleware: Sequence[RequestMiddleware], known: Sequence[str]) -> None:
    """Refuse a middleware for a method that the protocol does not have: it would never run."""
    for method in (method for each in middleware for method in sorted(each.methods) if method not in known):
        near = closest_names(method, known)
        hint = f" Did you mean `{near[0]}`?" if near else f" The methods are {', '.join(known)}."
        raise DeclarationError(f"`on_request` names `{method}`, which the protocol does not have.{hint}")
