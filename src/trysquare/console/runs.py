"""What somebody has started on a page: kept for a while, and found and cancelled by the same session only."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from trysquare.console.sessions import Session
from trysquare.core.errors import NotFound


@dataclass(kw_only=True, eq=False)
class OwnedRun:
    """Something that runs for a session, and what is known of it."""

    owner: str
    id: str = field(default_factory=lambda: secrets.token_hex(6))
    began: float = field(default_factory=time.monotonic)
    task: asyncio.Task[None] | None = None
    seconds: float | None = None
    is_cancelled: bool = False

    @property
    def is_over(self) -> bool:
        """Whether it has ended, in whichever way."""
        return self.seconds is not None


R = TypeVar("R", bound=OwnedRun)


class OwnedRuns(Generic[R]):
    """The runs of one kind in a console; the oldest that are over go first."""

    def __init__(self, what: str, *, kept: int, patience: float | None = None) -> None:
        """`patience` is how many seconds a cancellation waits for the end; None is until it has ended."""
        self._what, self._kept, self._patience = what, kept, patience
        self._known: dict[str, R] = {}

    def of(self, session: Session) -> list[R]:
        """The runs of a session, the newest first."""
        return [each for each in reversed(self._known.values()) if each.owner == session.id]

    def find(self, run: str, session: Session) -> R:
        """A run of this session."""
        found = self._known.get(run)
        if found is None or found.owner != session.id:
            raise NotFound(f"There is no such {self._what}.", instruction="Send it again.")
        return found

    async def cancel(self, run: R) -> None:
        """Cancel a run, with whatever it started."""
        if run.task is not None and not run.is_over:
            run.task.cancel()
            await asyncio.wait((run.task,), timeout=self._patience)

    async def close(self) -> None:
        """Cancel whatever runs."""
        await asyncio.gather(*(self.cancel(each) for each in self._known.values()))

    def count_running(self) -> int:
        """How many have not ended."""
        return sum(not each.is_over for each in self._known.values())

    def begin(self, run: R, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start the work of a run, and keep it."""
        over = [each for each in self._known.values() if each.is_over]
        for old in over[: max(0, len(self._known) - self._kept + 1)]:
            del self._known[old.id]
        self._known[run.id] = run
        run.task = asyncio.create_task(work)
        return run.task
