"""Headers of an HTTP request, as far as a call needs them."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from mcp.server.streamable_http import MCP_SESSION_ID_HEADER, check_accept_headers
from starlette.requests import Request
from starlette.types import Scope

_ACCEPTED: Final = (True, True)
"""JSON and a stream of events: a client must take both, since which of them it gets depends on the tool."""


class CallHead(NamedTuple):
    """What matters of a head for a call."""

    session: str | None
    """The session that it names."""
    headers: dict[str, str] | None
    """The headers by name; None if one is there twice, since two readers might take different ones."""
    is_acceptable: bool
    """Whether it brings JSON, and takes what a call may be answered with."""


def call_head(scope: Scope) -> CallHead:
    """What matters of a request's head for a call."""
    named = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    headers = named if len(named) == len(scope["headers"]) else None
    return CallHead(session_id(scope), headers, headers is not None and _is_acceptable(headers))


def session_id(scope: Scope) -> str | None:
    """The session that a request names."""
    for name, value in scope["headers"]:
        if name == _SESSION:
            return value.decode("latin-1")
    return None


_SESSION: Final = MCP_SESSION_ID_HEADER.encode()


def _is_acceptable(headers: dict[str, str]) -> bool:
    content_type = headers.get("content-type", "").lower()
    return content_type.startswith("application/json") and _accepts_all(headers.get("accept", ""))


# A client sends the same with every request.
@lru_cache(maxsize=256)
def _accepts_all(accept: str) -> bool:
    asked = Request({"type": "http", "headers": [(b"accept", accept.encode("latin-1"))]})
    return check_accept_headers(asked) == _ACCEPTED
