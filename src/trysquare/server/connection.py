"""Connection: one client on a duplex channel of messages, such as a pair of pipes or a test's memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, NoReturn

from msgspec import UNSET, Raw

from trysquare.core.json import JsonObject
from trysquare.net.rpc import ConnectionLost, PendingRequests
from trysquare.protocol.envelope import envelope_version, is_enveloped, require_version
from trysquare.protocol.messages import (
    INVALID_REQUEST,
    UNSUPPORTED_VERSION,
    Message,
    RequestId,
    RpcError,
    decode,
    decode_batch,
    decode_each,
    encode_error,
    encode_notification,
    encode_request,
    error_of,
    member,
)
from trysquare.protocol.methods import cancelled_id
from trysquare.protocol.versions import STATELESS_VERSIONS, VERSIONS
from trysquare.server.caller import Request, Session
from trysquare.server.server import McpServer, Reply, Route

_ENDLESS: Final = "subscriptions/listen"
"""The request that is answered only when the connection ends."""
_PROGRESS_GAP: Final = 0.02
"""Seconds between the last progress report of a call and its result.

Clients of the TypeScript SDK drop a report that they read in one piece with the result. So the result also waits until
the report is read; where it is a program in between that reads, these seconds keep the two apart.
"""


class Connection:
    """Answers the requests of one client, each in a task of its own. Its first request decides the protocol version."""

    def __init__(
        self,
        server: McpServer,
        write: Callable[[bytes], None],
        drained: Callable[[], Awaitable[None]] | None = None,
        read: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._server = server
        self.write = write
        """Send one message; neither waits nor raises."""
        self.drained = drained
        """Wait until the client has taken most of what was written."""
        self._was_read = read
        """Wait until the client has read all that was written, where that can be found out."""
        self._session = Session()
        self._is_stateless: bool | None = None
        self._running: dict[RequestId, asyncio.Task[None]] = {}
        self._endless: set[RequestId] = set()
        self._on_ends: dict[RequestId, Callable[[], None]] = {}
        """What is to happen when a request of a batch has ended."""
        self._cancelled: set[RequestId] = set()
        """Requests that the client took back: a tool that goes on in spite of it is not answered for."""
        self._asked: PendingRequests[Raw] = PendingRequests()
        self._changes: dict[bytes, None] = {}
        self._sending: asyncio.Task[None] | None = None
        self.on_idle: Callable[[], None] | None = None
        """Called when the last open request has ended."""
        server.hub.start()

    @property
    def is_idle(self) -> bool:
        """Whether no request is open, but for those that end with the connection."""
        return self._running.keys() <= self._endless

    @property
    def is_busy(self) -> bool:
        """Whether several requests are open, so that their responses may come at the same time."""
        return len(self._running) > 1

    def receive(self, data: bytes | bytearray) -> None:
        """Take one message as it came in, or a batch of a version that has them."""
        try:
            batch = decode_batch(data) if self._takes_batches else None
            if batch is not None:
                self._receive_batch(batch)
                return
            message = decode(data)
            if message.method is UNSET or message.id is UNSET:
                self._take(message)
            else:
                self._on_request(message, message.id, self.write)
        except RpcError as error:
            self.write(encode_error(error, error.request_id))

    async def ask(self, method: str, params: JsonObject) -> Raw:
        """Send a request to the client and wait for its result."""
        request_id, answer = self._asked.begin()
        self.write(encode_request(request_id, method, params))
        try:
            return await answer
        finally:
            if self._asked.take(request_id) is not None:
                self.write(encode_notification("notifications/cancelled", {"requestId": request_id}))

    async def close(self, reason: str, *, grace: float) -> None:
        """End everything. Subscriptions that were ended before send their result; other open requests are cancelled."""
        self._server.hub.remove(self._session)
        if self._server.hub.is_closed:
            await _wait([self._running[request_id] for request_id in self._endless], grace)
        self._asked.disconnect(reason)
        running = [*self._running.values()]
        if self._sending is not None:
            running.append(self._sending)
        for task in running:
            task.cancel()
        await _wait(running, grace)

    @property
    def _takes_batches(self) -> bool:
        version = VERSIONS.get(self._session.version or "")
        return version is not None and version.has_batches

    def _receive_batch(self, batch: list[Raw]) -> None:
        requests, errors = decode_each(batch, self._take)
        replies = _Replies(self.write, [encode_error(error, error.request_id) for error in errors], len(requests))
        for message in requests:
            self._on_request(message, message.id, replies.add, replies.count_end)

    def _take(self, message: Message) -> None:
        """Take a notification or a response of the client."""
        if message.method is UNSET:
            self._on_response(message)
        else:
            self._on_notification(message)

    def _on_response(self, message: Message) -> None:
        answer = self._asked.take(message.id)
        if answer is None:
            return
        if len(message.result):
            answer.set_result(message.result)
        else:
            answer.set_exception(error_of(message))

    def _on_notification(self, message: Message) -> None:
        if message.method == "notifications/cancelled":
            cancelled = cancelled_id(message.params)
            task = None if cancelled is None else self._running.get(cancelled)
            if cancelled is not None and task is not None:
                self._cancel(cancelled, task)
        elif message.method == "notifications/initialized" and not (self._session.is_ready or self._is_stateless):
            self._session.is_ready = True
            self._server.hub.add(self._session, self._notify)

    def _notify(self, message: bytes) -> None:
        """Send a notification of a change; once, if the same one still waits for the client to read."""
        if self.drained is None:
            self.write(message)
            return
        self._changes[message] = None
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send_changes(self.drained))

    async def _send_changes(self, drained: Callable[[], Awaitable[None]]) -> None:
        try:
            while self._changes:
                message = next(iter(self._changes))
                del self._changes[message]
                self.write(message)
                await drained()
        finally:
            self._sending = None

    def _on_request(
        self,
        message: Message,
        request_id: Any,
        reply: Callable[[bytes], None],
        on_end: Callable[[], None] | None = None,
    ) -> None:
        try:
            if request_id in self._running:
                raise RpcError(INVALID_REQUEST, "A request with this `id` is still open.")
            route, params = self._read(message)
        except RpcError as error:
            reply(encode_error(error, request_id))
            if on_end is not None:
                on_end()
            return
        options = self._server.options
        channel = _Channel(self)
        request = Request(
            request_id,
            str(message.method),
            params,
            session=None if self._is_stateless else self._session,
            channel=channel,
            principal=options.principal,
            profiles=options.profiles,
        )
        if request.method == _ENDLESS:
            self._endless.add(request_id)
        if on_end is not None:
            self._on_ends[request_id] = on_end
        work = self._answer(route, request, channel, reply)
        self._running[request_id] = asyncio.get_running_loop().create_task(work)

    def _read(self, message: Message) -> tuple[Route | None, Any]:
        if self._is_stateless is None:
            self._is_stateless = message.method != "initialize" and is_enveloped(member(message.params, "_meta"))
            if self._is_stateless:
                # Its client said that it is initialized, which this version does not have.
                self._server.hub.remove(self._session)
        if not self._is_stateless:
            route, params = self._server.read(message, stateless=False)
            if is_enveloped(params.meta) and message.method != "initialize":
                text = "This connection began with `initialize`; it takes no requests of 2026-07-28."
                raise RpcError(INVALID_REQUEST, text)
            return route, params
        if message.method == "initialize":
            _refuse_handshake(message)
        route, params = self._server.read(message, stateless=True)
        require_version(envelope_version(params.meta))
        return route, params

    async def _answer(
        self, route: Route | None, request: Request, channel: _Channel, reply: Callable[[bytes], None]
    ) -> None:
        try:
            answer: Reply = await self._server.respond(route, request)
            channel.is_over = True
            if channel.reported:
                await asyncio.sleep(channel.reported + _PROGRESS_GAP - asyncio.get_running_loop().time())
                if self._was_read is not None:
                    await self._was_read()
            if request.id not in self._cancelled:
                reply(answer.body)
            if self.drained is not None:
                await self.drained()
        finally:
            channel.is_over = True
            self._on_end(request.id)

    def _cancel(self, request_id: RequestId, task: asyncio.Task[None]) -> None:
        def on_done(_: asyncio.Task[None]) -> None:
            # A task that is cancelled before its first step does nothing, not even what stands in its `finally`.
            if self._running.get(request_id) is task:
                self._on_end(request_id)

        self._cancelled.add(request_id)
        task.add_done_callback(on_done)
        task.cancel()

    def _on_end(self, request_id: RequestId) -> None:
        del self._running[request_id]
        self._endless.discard(request_id)
        self._cancelled.discard(request_id)
        if (on_end := self._on_ends.pop(request_id, None)) is not None:
            on_end()
        if self.on_idle is not None and self.is_idle:
            self.on_idle()


class _Channel:
    """The way back of one request."""

    __slots__ = ("_connection", "is_over", "reported")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.reported = 0.0
        """When the request last reported progress, on the loop's clock; 0 for never."""
        self.is_over = False
        """Whether the request is answered."""

    async def notify(self, message: bytes, *, is_progress: bool = False) -> None:
        # What a tool left running has nobody to report to.
        if not self.is_over:
            self._connection.write(message)
            if is_progress:
                self.reported = asyncio.get_running_loop().time()
            if self._connection.drained is not None:
                await self._connection.drained()
        # Sending seldom waits. A tool that does nothing else must let others run, and its cancellation come.
        await asyncio.sleep(0)

    async def ask(self, method: str, params: JsonObject) -> Raw:
        if self.is_over:
            raise ConnectionLost("the request has been answered")
        return await self._connection.ask(method, params)


class _Replies:
    """The responses to a batch, which go out together once each of its requests has ended, answered or cancelled."""

    def __init__(self, write: Callable[[bytes], None], replies: list[bytes], requests: int) -> None:
        self._write = write
        self._replies = replies
        self._open = requests + 1
        self.count_end()

    def add(self, reply: bytes) -> None:
        self._replies.append(reply)

    def count_end(self) -> None:
        self._open -= 1
        if not self._open and self._replies:
            self._write(b"[" + b",".join(self._replies) + b"]")


def _refuse_handshake(message: Message) -> NoReturn:
    requested = member(message.params, "protocolVersion")
    data: JsonObject = {"supported": list(STATELESS_VERSIONS)}
    if isinstance(requested, str):
        data["requested"] = requested
    raise RpcError(UNSUPPORTED_VERSION, "This connection began with 2026-07-28, which has no `initialize`.", data)


async def _wait(tasks: list[asyncio.Task[None]], timeout: float) -> None:
    if tasks:
        await asyncio.wait(tasks, timeout=timeout)
