"""Notifications of changes: to sessions (2025-11-25), and to open `subscriptions/listen` requests (2026-07-28)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import Final, TypeAlias

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.toolset import Change, Toolset
from trysquare.protocol.messages import RequestId, encode_notification
from trysquare.protocol.methods import SubscriptionFilter
from trysquare.protocol.versions import SUBSCRIPTION_KEY
from trysquare.server.caller import Request, Session

_LISTS: Final = ("tools", "prompts", "resources")
_MAX_WAITING: Final = 1024
"""Notifications that wait for one listener; a client that reads none of them has its request ended."""
_MAX_LISTENERS: Final = 1024
_MAX_CACHED: Final = 256


class _Listener:
    """One open `subscriptions/listen`: what it asked for, and what is not sent yet."""

    def __init__(self, request_id: RequestId, wanted: SubscriptionFilter) -> None:
        self.meta: JsonObject = {SUBSCRIPTION_KEY: request_id}
        self.honored = SubscriptionFilter(
            tools_list_changed=wanted.tools_list_changed or None,
            prompts_list_changed=wanted.prompts_list_changed or None,
            resources_list_changed=wanted.resources_list_changed or None,
            resource_subscriptions=wanted.resource_subscriptions or None,
        )
        lists = (wanted.tools_list_changed, wanted.prompts_list_changed, wanted.resources_list_changed)
        self._changes = {kind for kind, is_wanted in zip(_LISTS, lists, strict=True) if is_wanted}
        self._changes.update(wanted.resource_subscriptions or ())
        self.waiting: asyncio.Queue[bytes | None] = asyncio.Queue()
        """None ends the request."""

    def put(self, change: Change) -> None:
        if change in self._changes:
            self.send(_notification(change, self.meta))

    def send(self, message: bytes) -> None:
        """Have a notification sent, without waiting."""
        if self.waiting.qsize() < _MAX_WAITING:
            self.waiting.put_nowait(message)
        else:
            self.waiting.put_nowait(None)

    def send_task(self, task: JsonObject) -> None:
        """Have the state of a task sent, without waiting."""
        self.send(encode_notification("notifications/tasks", {**task, "_meta": self.meta}))


FollowTasks: TypeAlias = Callable[[Callable[[JsonObject], None]], AbstractContextManager[Collection[str]]]
"""Sends the state of tasks at each change, until the block ends; yields the tasks."""


class NotificationHub:
    """Clients that want to know of changes, and encoded lists that are valid until the next one."""

    def __init__(self, toolset: Toolset) -> None:
        self._toolset = toolset
        self._sessions: dict[Session, Callable[[bytes], None]] = {}
        self._listeners: set[_Listener] = set()
        self._cache: dict[Hashable, bytes] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self.follow: Callable[[Change], None] | None = None
        """Called at each change, and once at the start."""
        self.is_closed = False
        """Whether open subscriptions have been ended."""

    @property
    def cache(self) -> dict[Hashable, bytes]:
        """Encoded lists. Take it before making a list: what is put in after a change is then lost, not stale."""
        return self._cache

    def store(self, cache: dict[Hashable, bytes], key: Hashable, encoded: bytes) -> None:
        """Keep an encoded list in the cache that was taken before it was made."""
        if len(cache) >= _MAX_CACHED:
            cache.clear()
        cache[key] = encoded

    def start(self) -> None:
        """Follow the toolset's changes from now on. Needs a running loop; calling it again does nothing."""
        self.is_closed = False
        if self._unsubscribe is None:
            self._loop = asyncio.get_running_loop()
            self._unsubscribe = self._toolset.subscribe(self._on_change)
            if self.follow is not None:
                self.follow("tools")

    def close(self) -> None:
        """End the open requests of all listeners with their result, and follow no more changes."""
        self.is_closed = True
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        for listener in self._listeners:
            listener.waiting.put_nowait(None)

    def add(self, session: Session, send: Callable[[bytes], None]) -> None:
        """Notify a session, with a function that neither waits nor raises, until `remove`."""
        self._sessions[session] = send

    def remove(self, session: Session) -> None:
        self._sessions.pop(session, None)

    async def listen(
        self, request: Request, wanted: SubscriptionFilter, follow_tasks: FollowTasks | None = None
    ) -> JsonObject:
        """Send what a listener asked for, until it hangs up or the server ends."""
        if len(self._listeners) >= _MAX_LISTENERS:
            raise ToolError("Too many open subscriptions on this server.", code=ErrorCode.TOOL_FAILED)
        listener = _Listener(request.id, wanted)
        following = follow_tasks(listener.send_task) if follow_tasks is not None else nullcontext([])
        # Before the acknowledgement, so that no change is missed.
        self._listeners.add(listener)
        try:
            with following as followed:
                listener.honored.task_ids = list(followed) or None
                await self._serve(listener, request)
        finally:
            self._listeners.discard(listener)
        return {"_meta": dict(listener.meta)}

    async def _serve(self, listener: _Listener, request: Request) -> None:
        acknowledged = {"notifications": listener.honored, "_meta": listener.meta}
        await request.channel.notify(encode_notification("notifications/subscriptions/acknowledged", acknowledged))
        while (message := await listener.waiting.get()) is not None:
            await request.channel.notify(message)

    def _on_change(self, change: Change) -> None:
        # A toolset may call from any thread: what is cached ends now, the sending is for the loop.
        self._cache = {}
        if self.follow is not None:
            self.follow(change)
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._send, change)

    def _send(self, change: Change) -> None:
        for listener in self._listeners:
            listener.put(change)
        message = _notification(change)
        for session, send in list(self._sessions.items()):
            if change in _LISTS or change in session.subscribed:
                send(message)


def _notification(change: Change, meta: JsonObject | None = None) -> bytes:
    params: JsonObject = {} if meta is None else {"_meta": meta}
    if change in _LISTS:
        return encode_notification(f"notifications/{change}/list_changed", params or None)
    return encode_notification("notifications/resources/updated", {"uri": change, **params})
