"""Alarms: what is to happen unless somebody takes it back in time, over one timer of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable


class Alarms:
    """Any number of alarms. Nearly all are cleared before they ring, and then cost no timer of their own."""

    __slots__ = ("_next", "_set", "_timer")

    def __init__(self) -> None:
        self._set: dict[Hashable, tuple[float, Callable[[], object]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._next = 0.0
        """When the timer looks next. It is kept here, since uvloop's does not always know."""

    def set(self, key: Hashable, seconds: float, ring: Callable[[], object]) -> None:
        """Call `ring` after so many seconds, unless the key is cleared before."""
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        self._set[key] = (due, ring)
        if self._timer is None:
            self._look_at(due, loop)
        elif due < self._next:
            self._timer.cancel()
            self._look_at(due, loop)

    def clear(self, key: Hashable) -> None:
        """Have this alarm ring no more."""
        self._set.pop(key, None)

    def _look_at(self, due: float, loop: asyncio.AbstractEventLoop) -> None:
        self._next, self._timer = due, loop.call_at(due, self._look)

    def _look(self) -> None:
        """Ring those that are due, and look again when the next one is."""
        self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        ringing = [key for key, (due, _) in self._set.items() if due <= now]
        rings = [self._set.pop(key)[1] for key in ringing]
        if self._set:
            self._look_at(min(due for due, _ in self._set.values()), loop)
        for ring in rings:
            ring()
