"""Circuit breaker, concurrency limiter and suspended calls of a server."""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict, deque
from dataclasses import dataclass

from trysquare.gateway.upstream.request import UpstreamCall, UpstreamRequest

FIRST_REST = 1.0
LONGEST_REST = 60.0
SUSPEND_SECONDS = 900.0
"""Seconds that the user has to answer a server's question until the call is cancelled."""


@dataclass(slots=True)
class CircuitBreaker:
    """Consecutive failures. The first allows an immediate retry; each further one doubles the wait."""

    failures: int = 0
    reason: str = ""
    until: float = 0.0

    def record_failure(self, now: float, reason: str) -> None:
        self.failures += 1
        self.reason = reason
        rest = 0.0 if self.failures == 1 else min(FIRST_REST * 2 ** min(self.failures - 2, 16), LONGEST_REST)
        self.until = now + rest

    def record_success(self) -> None:
        self.failures, self.reason, self.until = 0, "", 0.0

    def retry_after(self, now: float) -> float:
        """Seconds until the next attempt is allowed; 0 if it is allowed now."""
        return max(0.0, self.until - now)


class ConcurrencyLimiter:
    """A number of slots. Acquiring a free one never suspends, which is the case for nearly every call."""

    __slots__ = ("_free", "_waiting")

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[asyncio.Future[None]] = deque()

    def try_acquire(self) -> bool:
        """Acquire a slot if one is free."""
        if not self._free:
            return False
        self._free -= 1
        return True

    async def acquire(self) -> None:
        """Acquire a slot as soon as one is free."""
        if self.try_acquire():
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except BaseException:
            if waiter.cancelled():
                self._waiting.remove(waiter)
            else:
                # It got the slot at the moment it was cancelled.
                self.release()
            raise

    def release(self) -> None:
        """Pass a slot to the longest waiter, or free it."""
        for waiter in self._waiting:
            if not waiter.done():
                self._waiting.remove(waiter)
                waiter.set_result(None)
                return
        self._free += 1


@dataclass(frozen=True, slots=True)
class _Suspended:
    call: UpstreamCall
    timer: asyncio.TimerHandle


class SuspendedCalls:
    """Calls that wait for user input, by `call_key`. A call is resumed when the client sends it again."""

    def __init__(self, seconds: float = SUSPEND_SECONDS) -> None:
        self._seconds = seconds
        self._calls: defaultdict[bytes, deque[_Suspended]] = defaultdict(deque)

    @property
    def is_empty(self) -> bool:
        return not self._calls

    def suspend(self, key: bytes, call: UpstreamCall) -> None:
        """Store a call until it is resumed or expires."""
        timer = asyncio.get_running_loop().call_later(self._seconds, self._expire, key, call)
        self._calls[key].append(_Suspended(call, timer))

    def resume(self, key: bytes) -> UpstreamCall | None:
        """Remove and return the oldest call of this key, if there is one."""
        if key not in self._calls:
            return None
        suspended = self._calls[key].popleft()
        suspended.timer.cancel()
        if not self._calls[key]:
            del self._calls[key]
        return suspended.call

    def clear(self) -> None:
        for calls in self._calls.values():
            for suspended in calls:
                suspended.timer.cancel()
        self._calls.clear()

    def _expire(self, key: bytes, call: UpstreamCall) -> None:
        remaining = deque(suspended for suspended in self._calls[key] if suspended.call is not call)
        self._calls[key] = remaining
        if not remaining:
            del self._calls[key]
        call.cancel()


def call_key(server: str, subject: str, request: UpstreamRequest) -> bytes:
    """Digest that identifies a call when the client sends it again."""
    digest = hashlib.sha256()
    for part in (server.encode(), subject.encode("utf-8", "surrogatepass"), request.method.encode(), request.fields):
        digest.update(b"%d:" % len(part) + part)
    return digest.digest()
