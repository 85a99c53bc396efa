"""Streams of server-sent events, which a client that lost one can resume."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from typing import Final

from trysquare.server.http.exchange import Exchange, Headers

PING_SECONDS: Final = 15.0
"""Seconds of silence after which a proxy might close the connection."""
_PING: Final = b": ping\r\n\r\n"
_MAX_EVENTS, _MAX_EVENT_BYTES = 1000, 16 * 1024 * 1024
"""Events that are kept for a client that comes back."""


class EventStream:
    """Server-sent events of one response. With `keeps`, they have ids, and a client that lost them gets them again."""

    _names = itertools.count(1)

    def __init__(self, exchange: Exchange, headers: Headers, *, keeps: bool = False, primes: bool = False) -> None:
        self.name = str(next(self._names))
        self.exchange: Exchange | None = exchange
        """Where events go; None while the client is away."""
        self.ended = asyncio.Event()
        self._headers = headers
        self._kept: deque[tuple[int, bytes]] | None = deque() if keeps else None
        self._kept_bytes = 0
        self._primes = primes
        self._last = 0
        self._is_open = False
        self._sending = asyncio.Lock()

    async def send(self, message: bytes, *, is_last: bool = False) -> None:
        """Send one event; waits while the client does not read."""
        async with self._sending:
            await self._open()
            event = self._event(message)
            if self.exchange is not None:
                await self.exchange.write(event, is_last=is_last)
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
                if self.exchange is not None:
                    await self.exchange.write(_PING)

    async def finish(self) -> None:
        """End without a further event."""
        async with self._sending:
            await self._open()
            self.ended.set()
            if self.exchange is not None:
                await self.exchange.write(b"", is_last=True)

    async def resume(self, exchange: Exchange, after: int) -> None:
        """Go on in another response, after the event that its client saw last."""
        async with self._sending:
            await exchange.begin_events(self._headers)
            for number, message in self._kept or ():
                if number > after and message:
                    await exchange.write(self._written(number, message))
            self.exchange, self._is_open = exchange, True
            if self.ended.is_set():
                await exchange.write(b"", is_last=True)

    async def _open(self) -> None:
        if self._is_open:
            return
        self._is_open = True
        if self.exchange is not None:
            await self.exchange.begin_events(self._headers)
            if self._primes:
                await self.exchange.write(self._event(b""))

    def _event(self, message: bytes) -> bytes:
        self._last += 1
        if self._kept is not None:
            self._kept.append((self._last, message))
            self._kept_bytes += len(message)
            while len(self._kept) > _MAX_EVENTS or self._kept_bytes > _MAX_EVENT_BYTES:
                self._kept_bytes -= len(self._kept.popleft()[1])
        return self._written(self._last, message)

    def _written(self, number: int, message: bytes) -> bytes:
        event = b"event: message\r\ndata: %b\r\n\r\n" % message if message else b"data: \r\n\r\n"
        return event if self._kept is None else b"id: %b_%d\r\n%b" % (self.name.encode(), number, event)


async def hold(exchange: Exchange, stream: EventStream, closed: asyncio.Event) -> None:
    """Keep a stream open until its client hangs up, it has ended, or its session is closed."""
    endings = {asyncio.ensure_future(each) for each in (exchange.disconnected(), stream.ended.wait(), closed.wait())}
    try:
        while not (await asyncio.wait(endings, timeout=PING_SECONDS, return_when=asyncio.FIRST_COMPLETED))[0]:
            await stream.ping()
    finally:
        for ending in endings:
            ending.cancel()
        if stream.exchange is exchange:
            stream.exchange = None
    if closed.is_set() and not stream.ended.is_set():
        await exchange.write(b"", is_last=True)
