"""Sessions of the handshake era over HTTP, as far as calls that are answered directly need to know of them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from mcp.server.connection import Connection
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.shared.exceptions import MCPError
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCResponse, RequestId

from trysquare.core.alarms import Alarms
from trysquare.serve.heads import session_id

if TYPE_CHECKING:
    from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class OpenCall(Protocol):
    """A call that can be taken back."""

    def give_up(self) -> None: ...


class HttpSession:
    """One session: who opened it, which of its calls are open, and which questions its client has not answered."""

    def __init__(self, connection: Connection, session_id: str, owner: AuthorizationContext | None) -> None:
        self.id = session_id
        self.connection = connection
        self.owner = owner
        self._calls: dict[str, OpenCall] = {}
        self._asked: dict[RequestId, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = itertools.count(1)

    def begin(self, request_id: RequestId, call: OpenCall) -> None:
        """Know of a call, until `end_call`."""
        self._calls[str(request_id)] = call

    def end_call(self, request_id: RequestId) -> None:
        """Know of a call no more."""
        self._calls.pop(str(request_id), None)

    @contextmanager
    def asking(self) -> Generator[tuple[RequestId, asyncio.Future[dict[str, Any]]]]:
        """The id of a request to the client, and what will be its answer."""
        # The SDK counts in numbers; a text cannot be taken for one of its requests.
        request_id: RequestId = f"trysquare-{next(self._numbers)}"
        answer = self._asked[request_id] = asyncio.get_running_loop().create_future()
        try:
            yield request_id, answer
        finally:
            self._asked.pop(request_id, None)

    def hear(self, message: JSONRPCMessage) -> bool:
        """Take what belongs to a call of ours; True if nobody else needs to hear it."""
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            call = self._calls.get(str((message.params or {}).get("requestId")))
            if call is not None:
                call.give_up()
        if not isinstance(message, (JSONRPCResponse, JSONRPCError)) or message.id is None:
            return False
        answer = self._asked.pop(message.id, None)
        if answer is None or answer.done():
            return False
        if isinstance(message, JSONRPCResponse):
            answer.set_result(message.result)
        else:
            answer.set_exception(MCPError.from_error_data(message.error))
        return True

    def end(self) -> None:
        """Take all calls back."""
        for call in list(self._calls.values()):
            call.give_up()


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


_SESSION = MCP_SESSION_ID_HEADER.encode()


async def _nothing_more() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unsent(message: Message) -> None:
    """Take the response to a request that no client made."""


def owner_of(scope: Scope) -> AuthorizationContext | None:
    """Whom the token of a request stands for: a session answers only to the one who opened it."""
    user = scope.get("user")
    if user is None:
        return None
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, authorization_context

    return authorization_context(user) if isinstance(user, AuthenticatedUser) else None
