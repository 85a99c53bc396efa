"""Switchboard: carries the changes of a toolset to every client that wants to know, in both eras."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp.server.connection import Connection
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from trysquare.core.alarms import Alarms
from trysquare.core.toolset import Change, Toolset
from trysquare.serve.http_sessions import HttpSession

if TYPE_CHECKING:
    from mcp.server.auth.middleware.bearer_auth import AuthorizationContext

SUBSCRIBED: Final = "trysquare.subscribed"
"""Where a connection keeps the addresses that it subscribed to."""
_PATIENCE: Final = 10.0
"""Seconds that a client has to take a piece of news."""
_LIST_EVENTS: Final[dict[str, Callable[[], ServerEvent]]] = {
    "tools": ToolsListChanged,
    "prompts": PromptsListChanged,
    "resources": ResourcesListChanged,
}


class Switchboard:
    """What one running server knows of its clients: sessions of the handshake era, and open listen streams."""

    def __init__(self, untold: set[Change] | None = None) -> None:
        """`untold` is what its first client has to hear as soon as it is there; more may come until then."""
        self._untold = untold
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self.generation = 0
        """Grows with every change: what was made of an older toolset must not be shown again."""
        self.kept: dict[Hashable, tuple[int, dict[str, Any]]] = {}
        """Answers to list requests, each with the generation that it was made in."""
        self.http_sessions: dict[str, HttpSession] = {}
        """Sessions over HTTP by the id that their clients name."""
        self.alarms = Alarms()
        """When to look after calls that take long."""
        self._sessions: dict[int, Connection] = {}
        self._tell: Callable[[Change], None] = _unheard

    @asynccontextmanager
    async def connected(self, toolset: Toolset) -> AsyncGenerator[Switchboard]:
        """Follow the toolset's changes until the server ends."""
        loop = asyncio.get_running_loop()
        send, receive = anyio.create_memory_object_stream[Change](float("inf"))

        def hear(change: Change) -> None:
            # The toolset may call from any thread: what is cached ends now, the telling is for the loop.
            self.generation += 1
            if not loop.is_closed():
                loop.call_soon_threadsafe(_put, change)

        def _put(change: Change) -> None:
            if send.statistics().open_receive_streams:
                send.send_nowait(change)

        async def tell_all() -> None:
            async for change in receive:
                if self._untold is not None and not self._sessions:
                    self._untold.add(change)
                await self._bus.publish(_event(change))
                for connection in list(self._sessions.values()):
                    # Each on its own: a client that does not read must not keep the news from the others.
                    tasks.start_soon(_tell_session, connection, change)

        async with send, receive, anyio.create_task_group() as tasks:
            self._tell = _put
            unsubscribe = toolset.subscribe(hear)
            tasks.start_soon(tell_all)
            try:
                yield self
            finally:
                unsubscribe()
                self.close()
                tasks.cancel_scope.cancel()

    def add_session(self, connection: Connection, owner: AuthorizationContext | None = None) -> None:
        """Remember a session of the handshake era until its connection ends."""
        self._sessions[id(connection)] = connection
        untold, self._untold = self._untold or (), None
        for change in list(untold):
            self._tell(change)
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


def _unheard(change: Change) -> None:
    """Before the server runs, nobody hears of anything."""


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
