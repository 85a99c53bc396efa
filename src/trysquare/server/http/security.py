"""ASGI middleware in front of everything: Host and Origin, and cross-origin requests of web pages."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable
from functools import lru_cache
from typing import Final

from trysquare.server.http.exchange import (
    AsgiApp,
    AsgiMessage,
    Headers,
    Receive,
    Scope,
    Send,
    headers_of,
    path_of,
    repeated_single,
    send_json,
    send_response,
)

_MISDIRECTED: Final = 421
_FORBIDDEN: Final = 403
_NAMES: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:[ \t]*,[ \t]*[!#$%&'*+\-.^_`|~0-9A-Za-z]+)*")
"""A list of header names."""


class OriginCheckMiddleware:
    """Refuses requests whose Host or Origin is not allowed, against web pages that reach a local server.

    `hosts` None takes any Host, which is safe only where every request needs a token: a page that rebinds a name to
    this server has none.
    """

    def __init__(
        self, app: AsgiApp, *, hosts: Iterable[str] | None, origins: Iterable[str], open_paths: frozenset[str]
    ) -> None:
        self._app = app
        self._hosts = None if hosts is None else tuple(host.lower() for host in hosts)
        self._origins = tuple(origin.lower().rstrip("/") for origin in origins)
        self._open_paths = open_paths
        # The same few come with nearly every request.
        self._refusal = lru_cache(maxsize=256)(self._check)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http":
            return self._app(scope, receive, send)
        headers, repeated = headers_of(scope)
        if repeated and (name := repeated_single(repeated)) is not None:
            text = f"The header `{name}` appears more than once."
            refusal = 400, {"error": "duplicate_header", "error_description": text}
        else:
            refusal = self._refusal(headers.get("host", "").lower(), headers.get("origin", "").lower())
        if refusal is None or path_of(scope) in self._open_paths:
            return self._app(scope, receive, send)
        return send_json(send, *refusal)

    def _check(self, host: str, origin: str) -> tuple[int, dict[str, str]] | None:
        if self._hosts is not None and not _matches_any(host, self._hosts):
            text = f"This server does not answer for the host `{host[:100]}`. Add it to `http.allowed_hosts`."
            return _MISDIRECTED, {"error": "invalid_host", "error_description": text}
        if origin and not _matches_any(origin, self._origins):
            text = f"Pages of `{origin[:100]}` may not call this server. Add it to `http.allowed_origins`."
            return _FORBIDDEN, {"error": "invalid_origin", "error_description": text}
        return None


def _matches_any(given: str, allowed: tuple[str, ...]) -> bool:
    return any(_matches(given, one) for one in allowed)


def _matches(given: str, allowed: str) -> bool:
    """Whether a header is what is allowed: exactly, or with any port where `:*` stands for one."""
    if given == allowed:
        return True
    if not allowed.endswith(":*"):
        return False
    name = allowed.removesuffix(":*")
    port = given.removeprefix(f"{name}:")
    return given == name or (port != given and port.isdecimal() and port.isascii())


class CorsMiddleware:
    """Lets web pages of the allowed origins read responses, and answers the browser's question before a request."""

    def __init__(self, app: AsgiApp, *, origins: Iterable[str]) -> None:
        self._app = app
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = headers_of(scope)[0] if scope["type"] == "http" else {}
        origin = headers.get("origin", "")
        if origin.lower() not in self._origins:
            await self._app(scope, receive, send)
            return
        allowed: Headers = [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"Origin")]
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            wanted = headers.get("access-control-request-headers", "")
            await send_response(send, 200, [*allowed, *_preflight(wanted)])
            return

        async def send_allowed(message: AsgiMessage) -> None:
            if message["type"] == "http.response.start":
                exposed = (b"access-control-expose-headers", b"Mcp-Session-Id, WWW-Authenticate")
                message = {**message, "headers": [*message.get("headers", ()), *allowed, exposed]}
            await send(message)

        await self._app(scope, receive, send_allowed)


def _preflight(wanted: str) -> Headers:
    # Named, because `*` does not include Authorization. Only names go back, or a request could write our headers.
    names = wanted.encode("latin-1") if _NAMES.fullmatch(wanted) else b"*"
    return [
        (b"access-control-allow-methods", b"GET, POST, DELETE"),
        (b"access-control-allow-headers", names),
        (b"access-control-max-age", b"600"),
    ]
