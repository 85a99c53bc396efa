"""Responder: the response to one request over HTTP, and the request's way back to its client."""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec import Raw

from trysquare.core.concurrency import TimeoutScheduler
from trysquare.core.json import JsonObject
from trysquare.net.rpc import ConnectionLost
from trysquare.protocol.messages import HTTP_STATUS, encode_notification, encode_request
from trysquare.server.http import streams
from trysquare.server.http.exchange import JSON, Exchange
from trysquare.server.http.sessions import SessionUse
from trysquare.server.http.streams import EventStream
from trysquare.server.server import Reply

_QUICK: Final = 0.1
"""Seconds after which a call is watched: most are answered before."""


class Responder:
    """The response to one request: JSON, or events once there is more to send. It is the request's way back."""

    __slots__ = (
        "_exchange", "_gone", "_is_over", "_session", "_stream", "_task", "_timeouts", "_use", "_watching",
        "is_cancelled",
    )  # fmt: skip

    def __init__(
        self,
        exchange: Exchange,
        use: SessionUse | None,
        timeouts: TimeoutScheduler,
        stream: EventStream | None = None,
        *,
        watches: bool = True,
    ) -> None:
        self._exchange = exchange
        self._use = use
        self._session = None if use is None else use.session
        self._timeouts = timeouts
        self._stream = stream
        self._task = exchange.task if watches else asyncio.current_task()
        self._gone: asyncio.Future[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._is_over = False
        """Whether the response is under way, so that nothing else of the request can be sent."""
        self.is_cancelled = False
        """Whether the client took the request back or, without a session, hung up."""
        if watches:
            timeouts.schedule(self, _QUICK, self._watch)

    async def notify(self, message: bytes, *, is_progress: bool = False) -> None:
        # What a tool left running has nowhere to send its reports.
        if not self._is_over:
            await self._events().send(message)
        # Sending seldom waits. A tool that does nothing else must let others run, and its cancellation come.
        await asyncio.sleep(0)

    async def ask(self, method: str, params: JsonObject) -> Raw:
        assert self._session is not None
        if self._is_over:
            raise ConnectionLost("the request has been answered")
        asked = self._session.asked
        request_id, answer = asked.begin()
        try:
            await self.notify(encode_request(request_id, method, params))
            return await answer
        finally:
            if asked.take(request_id) is not None and not self.is_cancelled:
                await self.notify(encode_notification("notifications/cancelled", {"requestId": request_id}))

    async def finish(self, reply: Reply) -> None:
        """Send the response and end."""
        self.close()
        if self._stream is not None:
            await self._stream.send(reply.body, is_last=True)
        elif self._session is not None:
            await self._exchange.reply(200, self._session.json_headers, reply.body)
        else:
            await self._exchange.reply(
                200 if reply.error is None else HTTP_STATUS.get(reply.error, 200), [JSON], reply.body
            )

    async def abandon(self) -> None:
        """End without a response, since the client cancelled the request.

        As events, not as JSON: an empty stream is a valid response, an empty body is not.
        """
        self.close()
        await self._events().finish()

    def cancel(self) -> None:
        """Stop the work: nobody waits for its result. Once its response is under way, it is too late."""
        if self._task is not None and not self._is_over and not self.is_cancelled:
            self.is_cancelled = True
            self._task.cancel()

    def close(self) -> None:
        """Stop watching the client."""
        if self._is_over:
            return
        self._is_over = True
        self._timeouts.cancel(self)
        if self._gone is not None:
            # Not the watching task itself, which may be writing.
            self._gone.cancel()

    def _events(self) -> EventStream:
        if self._stream is None:
            self._stream = (
                EventStream(self._exchange, []) if self._session is None else self._session.open_stream(self._exchange)
            )
        return self._stream

    def _watch(self) -> None:
        self._gone = asyncio.ensure_future(self._exchange.disconnected())
        self._watching = asyncio.get_running_loop().create_task(self._keep_alive(self._gone))

    async def _keep_alive(self, gone: asyncio.Future[None]) -> None:
        """Keep the connection of a long call open, and notice when its client hangs up."""
        while not (await asyncio.wait({gone}, timeout=streams.PING_SECONDS))[0]:
            await self._events().ping()
        if self._is_over:
            return
        if self._use is None:
            self.cancel()
            return
        # In a session a lost connection does not cancel the call: its events wait for the client to come back. One
        # that does not come back must not keep the session.
        self._use.end()
        if self._stream is not None:
            self._stream.leave(self._exchange)
