"""Origins: which Host and Origin headers are taken, against pages that reach a local server through a browser."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from functools import lru_cache
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from trysquare.serve.auth import send_json

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_MISDIRECTED = 421
_FORBIDDEN = 403


class OriginChecked:
    """The application behind a check of the Host and Origin headers.

    `hosts` None takes any Host, which is safe only where every request needs a token: a page that rebinds a name to
    this server has none.
    """

    def __init__(
        self, app: ASGIApp, *, hosts: Iterable[str] | None, origins: Iterable[str], open_paths: frozenset[str]
    ) -> None:
        self._app = app
        self._hosts = None if hosts is None else tuple(host.lower() for host in hosts)
        self._origins = tuple(origin.lower().rstrip("/") for origin in origins)
        self._open_paths = open_paths
        # The same few come with nearly every request.
        self._takes = lru_cache(maxsize=256)(_matches_any)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http" or scope["path"] in self._open_paths:
            return self._app(scope, receive, send)
        refusal = self._refusal(scope)
        return self._app(scope, receive, send) if refusal is None else send_json(send, *refusal)

    def _refusal(self, scope: Scope) -> tuple[int, dict[str, Any]] | None:
        host, origin = _header(scope, b"host"), _header(scope, b"origin")
        if self._hosts is not None and not self._takes(host, self._hosts):
            text = f"This server does not answer for the host `{host[:100]}`. Add it to `http.allowed_hosts`."
            return _MISDIRECTED, {"error": "invalid_host", "error_description": text}
        if origin and not self._takes(origin, self._origins):
            text = f"Pages of `{origin[:100]}` may not call this server. Add it to `http.allowed_origins`."
            return _FORBIDDEN, {"error": "invalid_origin", "error_description": text}
        return None


def _header(scope: Scope, name: bytes) -> str:
    for given, value in scope["headers"]:
        if given == name:
            return value.decode("latin-1").lower()
    return ""


def _matches_any(given: str, allowed: tuple[str, ...]) -> bool:
    return any(_matches(given, one) for one in allowed)


def _matches(given: str, allowed: str) -> bool:
    """Whether a header is what is allowed: exactly, or with any port where `:*` stands for one."""
    if given == allowed:
        return True
    if not allowed.endswith(":*"):
        return False
    name = allowed.removesuffix(":*")
    return given == name or (given.startswith(f"{name}:") and given[len(name) + 1 :].isdigit())
