"""Circuit breaker and suspended calls of a server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import NamedTuple

from trysquare.gateway.upstream.request import UpstreamCall

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


class _Suspended(NamedTuple):
    key: bytes
    call: UpstreamCall
    timer: asyncio.TimerHandle


class SuspendedCalls:
    """Calls that wait for user input, by their key. A call is resumed when the client sends it again."""

    def __init__(self) -> None:
        self._calls: list[_Suspended] = []

    @property
    def is_empty(self) -> bool:
        return not self._calls

    def suspend(self, key: bytes, call: UpstreamCall) -> None:
        timer = asyncio.get_running_loop().call_later(SUSPEND_SECONDS, self._expire, call)
        self._calls.append(_Suspended(key, call, timer))

    def resume(self, key: bytes) -> UpstreamCall | None:
        """Remove and return the oldest call of this key, if there is one."""
        found = next((one for one in self._calls if one.key == key), None)
        if found is None:
            return None
        self._calls.remove(found)
        found.timer.cancel()
        return found.call

    def clear(self) -> None:
        for one in self._calls:
            one.timer.cancel()
        self._calls.clear()

    def _expire(self, call: UpstreamCall) -> None:
        self._calls = [one for one in self._calls if one.call is not call]
        call.cancel()
