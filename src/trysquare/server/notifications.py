"""NotificationHub, SessionRegistry."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Generator, Hashable
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
from mcp.server.connection import Connection
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCResponse, RequestId
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trysquare.core.concurrency import TimeoutScheduler
from trysquare.core.toolset import Change, Toolset

if TYPE_CHECKING:
    from mcp.server.auth.middleware.bearer_auth import AuthorizationContext


SESSION_HEADER: Final = b"mcp-session-id"


class CancellableCall(Protocol):
    """A call that can be taken back."""

    def cancel(self) -> None: ...


class HttpSession:
    """One session: who opened it, which of its calls are open, and which questions its client has not answered."""

    def __init__(self, connection: Connection, session_id: str, owner: AuthorizationContext | None) -> None:
        self.id = session_id
        self.connection = connection
        self.owner = owner
        self._calls: dict[str, CancellableCall] = {}
        self._asked: dict[RequestId, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = itertools.count(1)

    def begin(self, request_id: RequestId, call: CancellableCall) -> None:
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

    def receive(self, message: JSONRPCMessage) -> bool:
        """Handle a message for one of our calls; True if it needs no other handling."""
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            call = self._calls.get(str((message.params or {}).get("requestId")))
            if call is not None:
                call.cancel()
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
            call.cancel()


def session_id(scope: Scope) -> str | None:
    """The session that a request names."""
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == SESSION_HEADER), None)


def owner_of(scope: Scope) -> AuthorizationContext | None:
    """Whom the token of a request stands for: a session answers only to the one who opened it."""
    user = scope.get("user")
    if user is None:
        return None
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, authorization_context

    return authorization_context(user) if isinstance(user, AuthenticatedUser) else None


class IdleSessions:
    """ASGI middleware that ends a session after `seconds` without a request under way, an open stream included.

    The SDK's own limit does not see the calls that are answered without its transport, and would end a session in use.
    """

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds
        self._timeouts = TimeoutScheduler()
        self._openers: dict[str, Any] = {}
        """The authenticated user of each open session: nobody else can end it."""
        self._under_way: dict[str, int] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        named = session_id(scope)
        if named is None or named not in self._openers:
            await self._app(scope, receive, partial(self._send_opening, scope, send))
            return
        self._timeouts.cancel(named)
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
                if name.lower() == SESSION_HEADER and session_id(scope) is None:
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
            self._timeouts.schedule(named, self._seconds, partial(self._expire, named))

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
            "headers": [(SESSION_HEADER, named.encode("latin-1"))],
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


SUBSCRIBED: Final = "trysquare.subscribed"
"""Where a connection keeps the addresses that it subscribed to."""
_PATIENCE: Final = 10.0
"""Seconds that a client has to take a piece of news."""
_LIST_EVENTS: Final[dict[str, Callable[[], ServerEvent]]] = {
    "tools": ToolsListChanged,
    "prompts": PromptsListChanged,
    "resources": ResourcesListChanged,
}


class NotificationHub:
    """Clients of one running server: sessions (2025-11-25), and open listen streams (2026-07-28)."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self.generation = 0
        """Grows with every change: what was made of an older toolset must not be shown again."""
        self.list_cache: dict[Hashable, tuple[int, dict[str, Any]]] = {}
        """Answers to list requests, each with the generation that it was made in."""
        self.http_sessions: dict[str, HttpSession] = {}
        """Sessions over HTTP by the id that their clients name."""
        self.timeouts = TimeoutScheduler()
        """When to look after calls that take long."""
        self._sessions: dict[int, Connection] = {}

    @asynccontextmanager
    async def connected(self, toolset: Toolset) -> AsyncGenerator[NotificationHub]:
        """Follow the toolset's changes until the server ends."""
        loop = asyncio.get_running_loop()
        send, receive = anyio.create_memory_object_stream[Change](float("inf"))

        def on_change(change: Change) -> None:
            # The toolset may call from any thread: what is cached ends now, the telling is for the loop.
            self.generation += 1
            if not loop.is_closed():
                loop.call_soon_threadsafe(_put, change)

        def _put(change: Change) -> None:
            if send.statistics().open_receive_streams:
                send.send_nowait(change)

        async def tell_all() -> None:
            async for change in receive:
                await self._bus.publish(_event(change))
                for connection in list(self._sessions.values()):
                    # Each on its own: a client that does not read must not keep the news from the others.
                    tasks.start_soon(_tell_session, connection, change)

        async with send, receive, anyio.create_task_group() as tasks:
            unsubscribe = toolset.subscribe(on_change)
            tasks.start_soon(tell_all)
            try:
                yield self
            finally:
                unsubscribe()
                self.close()
                tasks.cancel_scope.cancel()

    def add_session(self, connection: Connection, owner: AuthorizationContext | None = None) -> None:
        """Remember a session of the session protocol (2025-11-25) until its connection ends."""
        self._sessions[id(connection)] = connection
        connection.exit_stack.callback(self._sessions.pop, id(connection), None)
        if connection.session_id is not None:
            self._add_http_session(HttpSession(connection, connection.session_id, owner))

    def _add_http_session(self, session: HttpSession) -> None:
        self.http_sessions[session.id] = session
        session.connection.exit_stack.callback(session.end)
        session.connection.exit_stack.callback(self.http_sessions.pop, session.id, None)

    def close(self) -> None:
        """End the listen streams in order: each client gets the answer that says so."""
        self.listen.close()


def _event(change: Change) -> ServerEvent:
    return _LIST_EVENTS[change]() if change in _LIST_EVENTS else ResourceUpdated(uri=change)


async def _tell_session(connection: Connection, change: Change) -> None:
    with anyio.move_on_after(_PATIENCE):
        await _send_change(connection, change)


async def _send_change(connection: Connection, change: Change) -> None:
    if change == "tools":
        await connection.send_tool_list_changed()
    elif change == "prompts":
        await connection.send_prompt_list_changed()
    elif change == "resources":
        await connection.send_resource_list_changed()
    elif change in connection.state.get(SUBSCRIBED, ()):
        await connection.send_resource_updated(change)
