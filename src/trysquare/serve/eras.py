"""The two eras of the protocol, and what differs between them in one place."""

from __future__ import annotations

from typing import Any, TypeAlias

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from trysquare.serve.switchboard import Switchboard

Request: TypeAlias = ServerRequestContext[Switchboard, Any]
"""One request as the SDK hands it to us."""

MODERN = frozenset(MODERN_PROTOCOL_VERSIONS)


def is_modern(request: Request) -> bool:
    """Whether the request belongs to the 2026-07-28 era: stateless, and the client asks again with its answers."""
    return request.protocol_version in MODERN


def connection_of(request: Request) -> Connection:
    """The connection behind a request of the handshake era: its state, and what to do when it ends.

    The SDK has no public way to it from a handler, and a broadcast to the sessions of that era needs one.
    """
    return request.session._connection  # pyright: ignore[reportPrivateUsage]
