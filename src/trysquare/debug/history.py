"""History: what was done with a session, and what came of it, the last of it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

_KEPT = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One operation: its name, how long it took, and what came of it."""

    operation: str
    outcome: str
    milliseconds: float
    at: float

    def told(self) -> str:
        """The entry in one line."""
        return f"{self.operation}: {self.outcome} ({self.milliseconds:.0f} ms)"


class History:
    """The operations of one session, oldest first, bounded."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=_KEPT)

    def add(self, operation: str, outcome: str, *, began: float) -> None:
        """Note an operation that began at a time of `time.perf_counter`."""
        taken = (time.perf_counter() - began) * 1000
        self._entries.append(Entry(operation=operation, outcome=outcome, milliseconds=taken, at=time.time()))

    def last(self, count: int) -> Sequence[Entry]:
        """The last operations, oldest first."""
        return list(self._entries)[-count:]
