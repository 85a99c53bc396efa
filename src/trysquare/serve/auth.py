"""Who may call over HTTP: bearer tokens, and tokens of an OAuth 2.1 authorization server."""

from __future__ import annotations

from mcp.server.auth.provider import AccessToken

from trysquare.core.context import Principal


class PrincipalToken(AccessToken):
    """An accepted token, with the principal that it stands for."""

    principal: Principal
