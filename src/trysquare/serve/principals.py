"""Who makes the request that is being served, where a token told it. Apart from the tokens, which only HTTP needs."""

from __future__ import annotations

from contextvars import ContextVar

from trysquare.core.context import Principal

token_principal: ContextVar[Principal | None] = ContextVar("trysquare_token_principal", default=None)
"""The principal of the token that came with the request; None where there is no token."""
