"""States: where a program under a debugger stands, how it ended, and what of its life can be subscribed to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trysquare.debug.debugger import Stopped


class EventKind(StrEnum):
    """What of a program's life can be subscribed to. Its end and its breakpoints always are."""

    BREAKPOINT = "breakpoint"
    EXCEPTION = "exception"
    STOPPED = "stopped"
    TERMINATED = "terminated"


ALWAYS = frozenset({EventKind.TERMINATED, EventKind.BREAKPOINT})


class Status(StrEnum):
    """Where a program stands."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    TERMINATED = "terminated"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a program came to its end. Both a code and a signal mean that nobody knows which of the two it was."""

    code: int | None = None
    signal: int | None = None
    reason: str = ""
    """Set where the debugger was lost, and not the program known to have ended."""

    def __str__(self) -> str:
        if self.signal is not None:
            either = "" if self.code is None else f"exit code {self.code} or "
            return f"{either}killed by signal {self.signal}"
        return f"exit code {self.code}" if self.code is not None else self.reason or "exit code unknown"


def kind_of(stop: Stopped) -> EventKind:
    """The kind of event that a stop is."""
    known = {"breakpoint": EventKind.BREAKPOINT, "exception": EventKind.EXCEPTION}
    return known.get(stop.reason, EventKind.STOPPED)
