"""Sealed states: the SDK's seal on what a client carries between its tries, made when there is something to seal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp.server.context import CallNext, HandlerResult
from mcp_types.methods import is_input_required

from trysquare.serve.eras import Request
from trysquare.serve.options import ServeOptions

if TYPE_CHECKING:
    from mcp.server.request_state import RequestStateBoundary


class SealedStates:
    """A middleware of the SDK: its own `RequestStateBoundary`, from the first question on.

    Most servers never ask, and the library that seals takes more memory than all of this room.
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
