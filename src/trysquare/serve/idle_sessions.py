"""IdleSessions: ends sessions of the handshake era over HTTP that nobody uses any more."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trysquare.core.alarms import Alarms
from trysquare.serve.heads import session_id

_SESSION = MCP_SESSION_ID_HEADER.encode()


class IdleSessions:
    """ASGI middleware that ends a session after `seconds` without a request under way, an open stream included.

    The SDK's own limit does not see the calls that are answered without its transport, and would end a session in use.
    """

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds
        self._alarms = Alarms()
        self._openers: dict[str, Any] = {}
        """The authenticated user of each open session: nobody else can end it."""
        self._under_way: dict[str, int] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        named = session_id(scope)
        if named is None or named not in self._openers:
            await self._app(scope, receive, partial(self._send_opening, scope, send))
            return
        self._alarms.clear(named)
        self._under_way[named] = self._under_way.get(named, 0) + 1
        try:
            await self._app(scope, receive, partial(self._send_closing, scope, send, named))
        finally:
            self._under_way[named] -= 1
            if not self._under_way[named]:
                del self._under_way[named]
                self._wait(named)

    async def _send_opening(self, scope: Scope, send: Send, message: Message) -> None:
        """Pass a response on; one that names a session opens it."""
        if message["type"] == "http.response.start" and message["status"] < 400:
            for name, value in message.get("headers", ()):
                if name.lower() == _SESSION and session_id(scope) is None:
                    opened = value.decode("latin-1")
                    self._openers[opened] = scope.get("user")
                    self._wait(opened)
        await send(message)

    async def _send_closing(self, scope: Scope, send: Send, named: str, message: Message) -> None:
        """Pass a response on; a DELETE that succeeds closes the session, and 404 says that it is closed already."""
        if message["type"] == "http.response.start":
            is_deleted = scope["method"] == "DELETE" and message["status"] < 400
            is_gone = message["status"] == 404 and scope.get("user") == self._openers.get(named)
            if is_deleted or is_gone:
                self._openers.pop(named, None)
        await send(message)

    def _wait(self, named: str) -> None:
        if named in self._openers:
            self._alarms.set(named, self._seconds, partial(self._expire, named))

    def _expire(self, named: str) -> None:
        task = asyncio.get_running_loop().create_task(self._end(named))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _end(self, named: str) -> None:
        """End a session as its own client would: with DELETE."""
        user = self._openers.pop(named, None)
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "DELETE",
            "scheme": "http",
            "path": "/",
            "raw_path": b"/",
            "root_path": "",
            "query_string": b"",
            "headers": [(_SESSION, named.encode("latin-1"))],
            "client": None,
            "server": None,
        }
        if user is not None:
            scope["user"] = user
        await self._app(scope, _nothing_more, _unsent)


async def _nothing_more() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unsent(message: Message) -> None:
    """Take the response to a request that no client made."""
