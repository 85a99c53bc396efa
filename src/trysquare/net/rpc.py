"""Pending requests of an RPC connection: id to future, timeout, disconnect."""

from __future__ import annotations

import asyncio
import itertools
from typing import Generic, TypeVar

T = TypeVar("T")


class ConnectionLost(Exception):
    """The connection is gone, so no response will come."""


class PendingRequests(Generic[T]):
    """Requests without a response yet. Ids count from 1."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._futures: dict[object, asyncio.Future[T]] = {}
        self.lost: str | None = None
        """Why the connection was lost; None while it is open."""

    def next_id(self) -> int:
        """Id for a message without a response."""
        return next(self._ids)

    def begin(self) -> tuple[int, asyncio.Future[T]]:
        """Id and future of a new request. Raises `ConnectionLost` after `disconnect`."""
        if self.lost is not None:
            raise ConnectionLost(self.lost)
        request_id = self.next_id()
        future = self._futures[request_id] = asyncio.get_running_loop().create_future()
        return request_id, future

    async def wait(self, request_id: int, future: asyncio.Future[T], *, timeout: float) -> T:
        """Wait for the response. Raises `TimeoutError`, `ConnectionLost`, or the exception of the future."""
        try:
            async with asyncio.timeout(timeout):
                return await future
        finally:
            self._futures.pop(request_id, None)

    def take(self, request_id: object) -> asyncio.Future[T] | None:
        """Remove the future of a response; None if nothing waits for it."""
        future = self._futures.pop(request_id, None)
        return None if future is None or future.done() else future

    def disconnect(self, reason: str) -> bool:
        """Fail all requests with `ConnectionLost`; False if that was done before."""
        if self.lost is not None:
            return False
        self.lost = reason
        for future in self._futures.values():
            if not future.done():
                future.set_exception(ConnectionLost(reason))
        self._futures.clear()
        return True
