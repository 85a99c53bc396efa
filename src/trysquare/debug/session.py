"""Session: one program under a debugger, from its start to its end, and all that is known of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.debug.debugger import (
    Bound,
    BreakpointMoved,
    BreakpointSpec,
    ChildStarted,
    Debugger,
    Event,
    Exited,
    Lost,
    Output,
    Resumed,
    Stopped,
)
from trysquare.debug.history import History
from trysquare.debug.output import OutputLog

_LAST_WORDS = 1.0
"""Seconds between the end of a debugger and the end of its program, which tells the exit code."""


class Status(StrEnum):
    """Where a program stands."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    TERMINATED = "terminated"


@dataclass(frozen=True, kw_only=True, slots=True)
class Breakpoint:
    """A breakpoint of a session: what was asked for, and what the debugger made of it."""

    number: int
    spec: BreakpointSpec
    bound: Bound

    @property
    def location(self) -> str:
        """Where it is, as a person writes it."""
        return f"{self.spec.file}:{self.bound.line or self.spec.line}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a program came to its end."""

    code: int | None = None
    signal: int | None = None
    reason: str = ""
    """Set where the debugger was lost, and not the program known to have ended."""


Outcome: TypeAlias = Stopped | Ended | None
"""What came of letting a program run: it stopped, it ended, or it still runs."""


@dataclass(kw_only=True, slots=True)
class _Place:
    """The state that events change."""

    status: Status = Status.STARTING
    stop: Stopped | None = None
    ended: Ended | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class Session:
    """One program under a debugger. Its owner makes it, gives its `hear` to a debugger and then sets `debugger`.

    Operations of one session take turns (`lock`); what the debugger tells is heard at any time.
    """

    def __init__(self, *, session_id: str, language: str, principal: str, title: str) -> None:
        self.id = session_id
        self.language = language
        self.principal = principal
        self.title = title
        self.output = OutputLog()
        self.history = History()
        self.root: Path | None = None
        """The workspace that it was started in."""
        self.lock = asyncio.Lock()
        self.started = time.monotonic()
        self.allows_side_effects = False
        """Whether expressions may call and assign."""
        self.on_child: Callable[[ChildStarted], None] | None = None
        self._debugger: Debugger | None = None
        self._breakpoints: dict[int, Breakpoint] = {}
        self._numbers = 0
        self._place = _Place()
        self._stop_count = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def debugger(self) -> Debugger:
        """The debugger, once it is connected."""
        if self._debugger is None:
            raise ToolError(
                f"Session `{self.id}` has not started yet.",
                code=ErrorCode.SESSION_NOT_STARTED,
                instruction="Wait for session_start to answer.",
            )
        return self._debugger

    @debugger.setter
    def debugger(self, debugger: Debugger) -> None:
        self._debugger = debugger

    @property
    def status(self) -> Status:
        return self._place.status

    @property
    def stop(self) -> Stopped | None:
        """The stop at which the program stands, if it does."""
        return self._place.stop

    @property
    def ended(self) -> Ended | None:
        return self._place.ended

    @property
    def stop_count(self) -> int:
        """How often the program has stopped: what was read at one stop is old at the next."""
        return self._stop_count

    @property
    def breakpoints(self) -> Sequence[Breakpoint]:
        return tuple(self._breakpoints.values())

    def hear(self, event: Event) -> None:
        """Take what the debugger tells. Called on the event loop, in order."""
        match event:
            case Output():
                self.output.add(event)
            case Stopped():
                self._stop_count += 1
                self._move(Status.PAUSED, stop=event)
            case Resumed():
                self._move(Status.RUNNING)
            case Exited(code=None, signal=None):
                self._end_soon(Ended())
            case Exited():
                self._end(Ended(code=event.code, signal=event.signal))
            case Lost():
                self._end_soon(Ended(reason=event.reason))
            case BreakpointMoved():
                self._rebind(event.bound)
            case ChildStarted():
                if self.on_child is not None:
                    self.on_child(event)

    def has_started(self) -> None:
        """The debugger has let the program go."""
        if self._place.status is Status.STARTING:
            self._move(Status.RUNNING)

    def watch(self, work: Coroutine[None, None, None]) -> None:
        """Keep a task for as long as the session lives."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def drop_tasks(self) -> None:
        """End what `watch` was given."""
        for task in self._tasks:
            task.cancel()

    def require_stopped(self) -> Stopped:
        """The stop at which the program stands, or an error that says what it does instead."""
        if self._place.stop is not None:
            return self._place.stop
        if self._place.ended is not None:
            raise ToolError(
                f"Session `{self.id}` has ended.",
                code=ErrorCode.SESSION_TERMINATED,
                instruction="Start the program again with session_start, or `session restart`.",
            )
        raise ToolError(
            "The program is running, so it cannot be looked into.",
            code=ErrorCode.STATE_NOT_PAUSED,
            instruction="Stop it with `execute pause`, or wait for a breakpoint with `execute continue`.",
        )

    async def run(self, move: Callable[[int], Awaitable[None]], *, timeout: float) -> Outcome:
        """Let the program go on by `move`, which gets the thread that stands, and wait for what comes of it."""
        stop = self.require_stopped()
        self._move(Status.RUNNING)
        try:
            await move(stop.thread)
        except BaseException:
            # It was refused, so the program stands where it stood, unless something was heard meanwhile.
            if self._place.status is Status.RUNNING:
                self._move(Status.PAUSED, stop=stop)
            raise
        return await self.wait(timeout=timeout)

    async def go(self, *, timeout: float) -> Outcome:
        """Let the program begin, once its breakpoints are set, and wait for what comes of it."""
        await self.debugger.start()
        self.has_started()
        return await self.wait(timeout=timeout)

    async def wait(self, *, timeout: float) -> Outcome:
        """Wait until the program stands or has ended; None after the time, and it still runs."""
        try:
            async with asyncio.timeout(timeout):
                while self._place.status in (Status.RUNNING, Status.STARTING):
                    await self._place.changed.wait()
                    self._place.changed.clear()
        except TimeoutError:
            return None
        return self._place.ended or self._place.stop

    async def add_breakpoint(self, spec: BreakpointSpec) -> Breakpoint:
        """Set one more breakpoint; those in the same file stay. One at the same place is replaced."""
        same = next((each.number for each in self.breakpoints if _same_place(each.spec, spec)), None)
        number = same or self._next_number()
        self._breakpoints[number] = Breakpoint(number=number, spec=spec, bound=Bound(verified=False))
        await self._send_breakpoints(spec.file)
        return self._breakpoints[number]

    async def remove_breakpoints(self, numbers: Sequence[int]) -> list[Breakpoint]:
        """Take some breakpoints away, and tell which they were."""
        gone = [self._breakpoints.pop(number) for number in numbers if number in self._breakpoints]
        for file in dict.fromkeys(each.spec.file for each in gone):
            await self._send_breakpoints(file)
        return gone

    async def send_all_breakpoints(self) -> None:
        """Give the debugger every breakpoint, as after a restart."""
        for file in dict.fromkeys(each.spec.file for each in self.breakpoints):
            await self._send_breakpoints(file)

    async def _send_breakpoints(self, file: str) -> None:
        of_file = [each for each in self.breakpoints if each.spec.file == file]
        bound = await self.debugger.set_breakpoints(file, [each.spec for each in of_file])
        for breakpoint, made in zip(of_file, bound, strict=False):
            self._breakpoints[breakpoint.number] = replace(breakpoint, bound=made)

    def _next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _move(self, status: Status, *, stop: Stopped | None = None) -> None:
        if self._place.ended is not None:
            return
        self._place.status = status
        self._place.stop = stop
        self._place.changed.set()

    def _end_soon(self, ended: Ended) -> None:
        """It is over, but how is not known yet: whoever knows has a moment to say so."""
        if self._place.ended is None:
            asyncio.get_running_loop().call_later(_LAST_WORDS, self._end, ended)

    def _end(self, ended: Ended) -> None:
        known = self._place.ended
        if known is None or (known.code is None and ended.code is not None):
            self._place.ended = ended
        self._place.status = Status.TERMINATED
        self._place.stop = None
        self._place.changed.set()

    def _rebind(self, bound: Bound) -> None:
        for breakpoint in self.breakpoints:
            if bound.id is not None and breakpoint.bound.id == bound.id:
                self._breakpoints[breakpoint.number] = replace(breakpoint, bound=bound)


def _same_place(one: BreakpointSpec, other: BreakpointSpec) -> bool:
    return (one.file, one.line, one.column) == (other.file, other.line, other.column)
