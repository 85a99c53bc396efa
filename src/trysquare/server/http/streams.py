"""Streams of server-sent events, which a client that lost one can resume."""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict, deque
from typing import Final

from trysquare.server.http.exchange import Exchange, Headers

PING_SECONDS: Final = 15.0
"""Seconds of silence after which a proxy might close the connection."""
_PING: Final = b": ping\r\n\r\n"
_MAX_EVENTS, _MAX_EVENT_BYTES = 1000, 16 * 1024 * 1024
"""Events of one stream that are kept for a client that comes back."""
_MAX_KEPT_BYTES: Final = 64 * 1024 * 1024


class EventBudget:
    """Memory for the events of all streams together. Where there is too little, the oldest stream loses its events."""

    def __init__(self, limit: int = _MAX_KEPT_BYTES) -> None:
        self._limit = limit
        self._used: OrderedDict[EventStream, int] = OrderedDict()
        self._total = 0

    def charge(self, stream: EventStream, size: int) -> None:
        """Count bytes that a stream keeps, or with a negative size no longer keeps."""
        self._used[stream] = self._used.get(stream, 0) + size
        self._total += size
        while self._total > self._limit and len(self._used) > 1:
            next(iter(self._used)).forget()

    def release(self, stream: EventStream) -> None:
        """Count a stream no longer."""
        self._total -= self._used.pop(stream, 0)


class EventStream:
    """Server-sent events of one response. With a budget, they have ids, and a client that lost them gets them again."""

    _names = itertools.count(1)

    def __init__(
        self,
        exchange: Exchange,
        headers: Headers,
        budget: EventBudget | None = None,
        *,
        primes: bool = False,
        is_standalone: bool = False,
    ) -> None:
        self.name = str(next(self._names))
        self.is_standalone = is_standalone
        """Whether it belongs to no request."""
        self.exchange: Exchange | None = exchange
        """Where events go; None while the client is away."""
        self.ended = asyncio.Event()
        self.left: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done once events no longer go to this exchange; each exchange has its own."""
        self._headers = headers
        self._budget = budget
        self._keeps = budget is not None
        self._kept: deque[tuple[int, bytes]] = deque()
        self._kept_bytes = 0
        self._primes = primes
        self._last = 0
        self._sent = 0
        """The last event that was written, or need not be, on this exchange."""
        self._is_open = False
        self._sending = asyncio.Lock()
        self._closing: asyncio.Future[None] | None = None

    @property
    def can_resume(self) -> bool:
        """Whether there is, or will be, something for a client that comes back."""
        return bool(self._kept) or not self.ended.is_set()

    async def send(self, message: bytes, *, is_last: bool = False) -> None:
        """Send one event; waits while the client does not read."""
        # Before waiting for its turn: whoever is cancelled while it waits has still sent its event.
        number = self._keep(message)
        async with self._sending:
            await self._open()
            if number > self._sent:
                self._sent = number
                await self._write(self._event(number, message), is_last=is_last)
            elif is_last:
                await self._write(b"", is_last=True)
            if is_last:
                self.ended.set()

    async def open(self) -> None:
        """Send the head of the response, and in versions that have it an empty event to resume from."""
        async with self._sending:
            await self._open()

    async def ping(self) -> None:
        """Keep the connection open."""
        if not self._sending.locked():
            async with self._sending:
                await self._open()
                await self._write(_PING)

    async def finish(self) -> None:
        """End without a further event."""
        async with self._sending:
            await self._open()
            await self._write(b"", is_last=True)
            self.ended.set()

    async def resume(self, exchange: Exchange, after: int) -> None:
        """Go on in another response, after the event that its client saw last."""
        previous = self.exchange
        self.leave()
        if previous is not None:
            # The client came back before its former connection was found lost; that one gets no more.
            self._closing = asyncio.ensure_future(previous.write(b"", is_last=True))
        async with self._sending:
            self.exchange, self._is_open = exchange, True
            self.left = asyncio.get_running_loop().create_future()
            await exchange.begin_events(self._headers)
            self._sent = self._last
            for number, message in [*self._kept]:
                if number > after:
                    await self._write(self._event(number, message))
            if self.ended.is_set():
                await self._write(b"", is_last=True)

    def leave(self, exchange: Exchange | None = None) -> None:
        """Keep further events for a client that comes back: it has hung up, on this exchange or whichever it is."""
        if self.exchange is not None and exchange in (None, self.exchange):
            self.exchange = None
            self.left.set_result(None)

    def forget(self, *, for_good: bool = False) -> None:
        """Keep none of the events so far, or for good none at all."""
        self._keeps = self._keeps and not for_good
        self._kept.clear()
        self._kept_bytes = 0
        if self._budget is not None:
            self._budget.release(self)

    async def _open(self) -> None:
        if self._is_open:
            return
        self._is_open = True
        if self.exchange is not None:
            await self.exchange.begin_events(self._headers)
            if self._primes:
                await self._write(self._event(0, b""))

    async def _write(self, data: bytes, *, is_last: bool = False) -> None:
        exchange, left = self.exchange, self.left
        if exchange is None:
            return
        if self._budget is None:
            await exchange.write(data, is_last=is_last)
            return
        # A connection that was lost without a word takes nothing for minutes. Its client may come back meanwhile on
        # another one, and what it waits for must not wait for the lost one.
        writing = asyncio.ensure_future(exchange.write(data, is_last=is_last))
        await asyncio.wait((writing, left), return_when=asyncio.FIRST_COMPLETED)
        if writing.done():
            writing.result()

    def _keep(self, message: bytes) -> int:
        self._last += 1
        if self._budget is not None and self._keeps:
            before = self._kept_bytes
            self._kept.append((self._last, message))
            self._kept_bytes += len(message)
            while len(self._kept) > 1 and (len(self._kept) > _MAX_EVENTS or self._kept_bytes > _MAX_EVENT_BYTES):
                self._kept_bytes -= len(self._kept.popleft()[1])
            self._budget.charge(self, self._kept_bytes - before)
        return self._last

    def _event(self, number: int, message: bytes) -> bytes:
        event = b"event: message\r\ndata: %b\r\n\r\n" % message if message else b"data: \r\n\r\n"
        return event if self._budget is None else b"id: %b_%d\r\n%b" % (self.name.encode(), number, event)


async def hold(exchange: Exchange, stream: EventStream, closed: asyncio.Event) -> None:
    """Keep a stream open until its client hangs up or comes back on another connection, or it ends, or its session."""
    left = stream.left
    waits = (exchange.disconnected(), stream.ended.wait(), closed.wait())
    endings = [left, *(asyncio.ensure_future(each) for each in waits)]
    try:
        while not (await asyncio.wait(endings, timeout=PING_SECONDS, return_when=asyncio.FIRST_COMPLETED))[0]:
            await stream.ping()
    finally:
        for ending in endings[1:]:
            ending.cancel()
        is_own = stream.exchange is exchange
        stream.leave(exchange)
    if is_own and closed.is_set() and not stream.ended.is_set():
        await exchange.write(b"", is_last=True)
