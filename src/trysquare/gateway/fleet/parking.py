"""Parking: calls that wait for a person, until their client calls again with the answer."""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict, deque
from dataclasses import dataclass

from trysquare.gateway.upstream.call import Call, Request

PARKED_SECONDS = 900.0
"""How long a person may take; then the server is told that nobody waits any more."""


@dataclass(frozen=True, slots=True)
class _Parked:
    call: Call
    timer: asyncio.TimerHandle


class ParkingLot:
    """Calls under way that nobody waits for at the moment, by who called what with which arguments."""

    def __init__(self, seconds: float = PARKED_SECONDS) -> None:
        self._seconds = seconds
        self._parked: defaultdict[bytes, deque[_Parked]] = defaultdict(deque)

    @property
    def is_empty(self) -> bool:
        """Whether no call waits."""
        return not self._parked

    def park(self, key: bytes, call: Call) -> None:
        """Keep a call until it is taken up again."""
        timer = asyncio.get_running_loop().call_later(self._seconds, self._expire, key, call)
        self._parked[key].append(_Parked(call, timer))

    def take(self, key: bytes) -> Call | None:
        """The call that waits under this key, if there is one; it is parked no more."""
        if key not in self._parked:
            return None
        parked = self._parked[key].popleft()
        parked.timer.cancel()
        if not self._parked[key]:
            del self._parked[key]
        return parked.call

    def clear(self) -> None:
        """Give up all of them."""
        for waiting in self._parked.values():
            for parked in waiting:
                parked.timer.cancel()
        self._parked.clear()

    def _expire(self, key: bytes, call: Call) -> None:
        kept = deque(parked for parked in self._parked[key] if parked.call is not call)
        self._parked[key] = kept
        if not kept:
            del self._parked[key]
        call.abandon()


def call_key(server: str, subject: str, request: Request) -> bytes:
    """By what a call is known when it comes again."""
    digest = hashlib.sha256()
    for part in (server.encode(), subject.encode("utf-8", "surrogatepass"), request.method.encode(), request.fields):
        digest.update(b"%d:" % len(part) + part)
    return digest.digest()
