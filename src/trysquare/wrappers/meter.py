"""Meter: how often each tool was called, how long it took and how much of that was work, for `/metrics` and others."""

from __future__ import annotations

import threading
from bisect import bisect_left
from dataclasses import dataclass

BOUNDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
"""Upper ends of the histogram's buckets, in seconds; one more bucket holds what took longer."""


_ALL_MEASURED, _MEASURED_EVERY = 200, 16
"""To ask for a thread's CPU time takes the kernel, which is much for the calls of a tool that does little."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolTimes:
    """What was measured of one tool. Times are in seconds."""

    tool: str
    calls: int
    failures: int
    wall: float
    wall_max: float
    cpu: float
    buckets: tuple[int, ...]
    """How many calls took at most `BOUNDS[i]` and longer than the bound before it."""


class Clock:
    """The running sums of one tool."""

    __slots__ = ("_begun", "_buckets", "_calls", "_cpu", "_failures", "_lock", "_tool", "_wall", "_wall_max")

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._lock = threading.Lock()
        self._begun = self._calls = self._failures = 0
        self._wall = self._wall_max = self._cpu = 0.0
        self._buckets = [0] * (len(BOUNDS) + 1)

    def weight(self) -> int:
        """For how many calls the CPU time of the one that begins now is to stand; 0 where it need not be measured.

        At first each stands for itself, and later one in so many for those around it: the sum only ever grows.
        """
        self._begun += 1
        if self._begun <= _ALL_MEASURED:
            return 1
        return 0 if self._begun % _MEASURED_EVERY else _MEASURED_EVERY

    def add(self, wall: float, cpu: float, *, failed: bool) -> None:
        """Count one call; `cpu` is what it took, for all calls that it stands for."""
        bucket = bisect_left(BOUNDS, wall)
        with self._lock:
            self._calls += 1
            self._failures += failed
            self._wall += wall
            self._cpu += cpu
            self._buckets[bucket] += 1
            if wall > self._wall_max:
                self._wall_max = wall

    def times(self) -> ToolTimes:
        """The sums as they are now."""
        with self._lock:
            return ToolTimes(
                tool=self._tool, calls=self._calls, failures=self._failures, wall=self._wall, wall_max=self._wall_max,
                cpu=self._cpu, buckets=tuple(self._buckets),
            )  # fmt: skip


class Meter:
    """The clocks of all tools."""

    def __init__(self) -> None:
        self._clocks: dict[str, Clock] = {}
        self._lock = threading.Lock()

    def clock(self, tool: str) -> Clock:
        """The clock of a tool, made when it is first asked for."""
        with self._lock:
            return self._clocks.setdefault(tool, Clock(tool))

    def times(self) -> list[ToolTimes]:
        """What was measured, of the tools that were called, by name."""
        with self._lock:
            clocks = sorted(self._clocks.items())
        return [times for _, clock in clocks if (times := clock.times()).calls]
