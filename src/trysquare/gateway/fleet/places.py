"""Places: how many calls a server gets at a time. Who comes while all are taken waits, first come, first served."""

from __future__ import annotations

import asyncio
from collections import deque


class Places:
    """A number of places. Taking a free one is no work for the event loop, which is how nearly every call goes."""

    __slots__ = ("_free", "_waiting")

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take_free(self) -> bool:
        """Take a place if one is free."""
        if not self._free:
            return False
        self._free -= 1
        return True

    async def take(self) -> None:
        """Take a place as soon as there is one."""
        if self.take_free():
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except BaseException:
            if waiter.cancelled():
                self._waiting.remove(waiter)
            else:
                # It was given the place in the moment it went away.
                self.leave()
            raise

    def leave(self) -> None:
        """Give a place back: to whoever waits longest, if anybody does."""
        for waiter in self._waiting:
            if not waiter.done():
                self._waiting.remove(waiter)
                waiter.set_result(None)
                return
        self._free += 1
