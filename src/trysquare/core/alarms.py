"""Alarms: what is to happen unless somebody takes it back in time, over one timer of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable


class Alarms:
    """Any number of alarms. Nearly all are cleared before they ring, and then cost no timer of their own."""

    __slots__ = ("_set", "_timer")

    def __init__(self) -> None:
        self._set: dict[Hashable, tuple[float, Callable[[], object]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def set(self, key: Hashable, seconds: float, ring: Callable[[], object]) -> None:
        """Call `ring` after so many seconds, unless the key is cleared before."""
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        self._set[key] = (due, ring)
        if self._timer is None:
            self._timer = loop.call_at(due, self._look)
        elif due < self._timer.when():
            self._timer.cancel()
            self._timer = loop.call_at(due, self._look)

    def clear(self, key: Hashable) -> None:
        """Have this alarm ring no more."""
        self._set.pop(key, None)

    def _look(self) -> None:
        """Ring those that are due, and look again when the next one is."""
        self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        ringing = [key for key, (due, _) in self._set.items() if due <= now]
        rings = [self._set.pop(key)[1] for key in ringing]
        if self._set:
            self._timer = loop.call_at(min(due for due, _ in self._set.values()), self._look)
        for ring in rings:
            ring()
