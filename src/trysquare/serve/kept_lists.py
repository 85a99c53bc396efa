"""Kept lists: the answer to a list request is made once and sent again until the toolset changes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from mcp.server.context import CallNext, HandlerResult
from mcp_types.methods import validate_client_request

from trysquare.serve.contexts import principal_of, profiles_of
from trysquare.serve.eras import Request, is_modern
from trysquare.serve.options import ServeOptions

LISTS: Final = frozenset({"tools/list", "prompts/list", "resources/list", "resources/templates/list"})
_MOST_KEPT = 256


class KeptLists:
    """A middleware of the SDK: what it checked and shaped for the wire once is not checked and shaped again.

    A list depends on the toolset, the profiles, the rooms of the principal and the version of the protocol, never on
    the connection; so these make the key.
    """

    def __init__(self, options: ServeOptions) -> None:
        self._options = options

    async def __call__(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        if ctx.method not in LISTS or not self._is_open(ctx):
            return await call_next(ctx)
        # A malformed request gets the same answer whether or not the list is kept.
        validate_client_request(ctx.method, ctx.protocol_version, ctx.params)
        kept, generation = ctx.lifespan_context.kept, ctx.lifespan_context.generation
        key = self._key(ctx)
        found = kept.get(key)
        if found is not None and found[0] == generation:
            return found[1]
        result = await call_next(ctx)
        if isinstance(result, dict) and generation == ctx.lifespan_context.generation:
            if len(kept) >= _MOST_KEPT:
                kept.clear()
            kept[key] = (generation, result)
        return result

    def _is_open(self, ctx: Request) -> bool:
        """Before the handshake there is nothing to list; the SDK answers that."""
        return is_modern(ctx) or ctx.session.client_params is not None

    def _key(self, ctx: Request) -> Hashable:
        profiles = profiles_of(ctx, self._options)
        params: Any = ctx.params or {}
        return (
            ctx.method,
            ctx.protocol_version,
            params.get("cursor"),
            profiles.default,
            frozenset(profiles.rooms.items()),
            principal_of(self._options).scopes,
        )
