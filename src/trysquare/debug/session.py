"""Session: one program under a debugger, from its start to its end, and all that is known of it."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.debug.dap.client import ConnectionLost, RequestFailed
from trysquare.debug.debugger import (
    Bound,
    BreakpointMoved,
    BreakpointSpec,
    ChildStarted,
    ConditionFailed,
    Debugger,
    Event,
    Exited,
    Lost,
    Output,
    Resumed,
    Stopped,
    require_able,
)
from trysquare.debug.history import History
from trysquare.debug.output import OutputLog
from trysquare.debug.states import ALWAYS, Ended, EventKind, Status, kind_of
from trysquare.debug.stop_rules import StopRules

_LAST_WORDS = 1.0
"""Seconds between the end of a debugger and the end of its program, which tells the exit code."""
_EVENTS_KEPT = 100


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


Outcome: TypeAlias = Stopped | Ended | None
"""What came of letting a program run: it stopped, it ended, or it still runs."""


@dataclass(kw_only=True, slots=True)
class _Place:
    """The state that events change."""

    status: Status = Status.STARTING
    stop: Stopped | None = None
    ended: Ended | None = None
    is_ending: bool = False
    """Whether the debugger has gone, and how the program ends is about to be known."""
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
        self.output_shown = 0
        """Up to where its output was shown by letting it run."""
        self.history = History()
        self.root: Path | None = None
        """The workspace that it was started in."""
        self.lock = asyncio.Lock()
        self.started = time.monotonic()
        self.waited = 0.0  # seconds, the last time that something was waited for
        self.allows_side_effects = False
        """Whether expressions may call and assign."""
        self.on_child: Callable[[ChildStarted], None] = lambda event: None
        self.on_end: Callable[[], None] = lambda: None
        """Called once, when the program has ended."""
        self.parent: str | None = None
        """The session of the program that started this one."""
        self.on_stop: Callable[[], None] = lambda: None
        """Called whenever the program has come to stand."""
        self.stopped_child: Session | None = None
        """A program that this one started and that came to stand while this one was waited for."""
        self.subscribed: frozenset[EventKind] = ALWAYS
        self.rules = StopRules(self)
        self.failed_conditions: dict[str, str] = {}  # why they could not be told, by place
        self._events: deque[str] = deque(maxlen=_EVENTS_KEPT)
        self._debugger: Debugger | None = None
        self._breakpoints: dict[int, Breakpoint] = {}
        self._numbers = 0
        self._place = _Place()
        self._stop_count = 0
        self._tasks: set[asyncio.Future[None]] = set()

    @property
    def key(self) -> str:
        """What tells it from every other one: two principals may have sessions of the same id."""
        return f"{self.principal}\0{self.id}"

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
                self._note(kind_of(event), event.text or event.reason)
                self._move(Status.PAUSED, stop=event)
                self.on_stop()
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
            case ConditionFailed():
                self.failed_conditions[event.place] = event.why
            case ChildStarted():
                self.on_child(event)

    def hear_child_stop(self, child: Session) -> None:
        """Take that a program which this one started has come to stand."""
        self.stopped_child = child
        self._place.changed.set()

    def successor(self) -> Session:
        """A session in place of this one, for the same program from its beginning: same name, same permissions."""
        fresh = Session(session_id=self.id, language=self.language, principal=self.principal, title=self.title)
        fresh.root, fresh.history = self.root, self.history
        fresh.allows_side_effects, fresh.subscribed = self.allows_side_effects, self.subscribed
        return fresh

    def take_events(self) -> list[str]:
        """What was subscribed to and has happened since this was last asked."""
        taken = list(self._events)
        self._events.clear()
        return taken

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

    def require_alive(self) -> None:
        """An error where the program has ended."""
        if self._place.ended is not None:
            raise ToolError(
                f"Session `{self.id}` has ended.",
                code=ErrorCode.SESSION_TERMINATED,
                instruction="Start the program again with session_start, or `session restart`.",
            )

    def require_stopped(self) -> Stopped:
        """The stop at which the program stands, or an error that says what it does instead."""
        if self._place.is_ending and self._place.ended is None:
            raise ToolError(
                f"The debugger of session `{self.id}` is gone.",
                code=ErrorCode.CONNECTION_LOST,
                instruction="Start the program again with `session restart`.",
            )
        if self._place.stop is not None:
            return self._place.stop
        self.require_alive()
        raise ToolError(
            "The program is running, so it cannot be looked into.",
            code=ErrorCode.STATE_NOT_PAUSED,
            instruction="Stop it with `execute pause`, or wait for a breakpoint with `execute wait`.",
        )

    async def run(self, move: Callable[[int], Awaitable[None]], *, timeout: float) -> Outcome:
        """Let the program go on by `move`, which gets the thread that stands, and wait for what comes of it."""
        stop = self.require_stopped()
        self._move(Status.RUNNING)
        try:
            await self._sent(move(stop.thread))
        except RequestFailed:
            # It was refused, so the program stands where it stood, unless something was heard meanwhile.
            if self._place.status is Status.RUNNING:
                self._move(Status.PAUSED, stop=stop)
            raise
        except ConnectionLost:
            if not self._place.is_ending:  # a killed program takes its debugger with it; how it ended is told
                raise
        return await self.wait(timeout=timeout)

    async def _sent(self, move: Awaitable[None]) -> None:
        """Wait until a move is answered, or is seen to have come to something: a debugger may lose its answer then."""
        sent = asyncio.ensure_future(move)
        self._tasks.add(sent)
        sent.add_done_callback(self._dropped)
        while not sent.done() and self._place.status is Status.RUNNING:
            changed = asyncio.ensure_future(self._place.changed.wait())
            await asyncio.wait({sent, changed}, return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
            self._place.changed.clear()
        if sent.done():
            sent.result()

    def _dropped(self, task: asyncio.Future[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # Asked for, so that an error which nobody waits for any more is not told as a forgotten one.
            task.exception()

    async def go(self, *, timeout: float) -> Outcome:
        """Let the program begin, once its breakpoints are set, and wait for what comes of it."""
        await self.debugger.start()
        self.has_started()
        return await self.wait(timeout=timeout)

    async def wait(self, *, timeout: float) -> Outcome:
        """Wait until the program stands or has ended; None after the time, or with `stopped_child`: it still runs."""
        self.stopped_child = None
        began = time.monotonic()
        try:
            async with asyncio.timeout(timeout):
                while self._place.ended is None and (self._place.stop is None or self._place.is_ending):
                    if self.stopped_child is not None:
                        return None
                    await self._place.changed.wait()
                    self._place.changed.clear()
        except TimeoutError:
            return None
        finally:
            self.waited = time.monotonic() - began
        return self._place.ended or self._place.stop

    async def add_breakpoint(self, spec: BreakpointSpec) -> Breakpoint:
        """Set one more breakpoint; those in the same file stay. One at the same place is replaced."""
        self.require_alive()
        require_able(self.debugger.abilities, spec, self.language)
        same = next((each.number for each in self.breakpoints if _same_place(each.spec, spec)), None)
        number = same or self._next_number()
        self.failed_conditions.pop(f"{spec.file}:{spec.line}", None)
        before = dict(self._breakpoints)
        self._breakpoints[number] = Breakpoint(number=number, spec=spec, bound=Bound(verified=False))
        try:
            await self._send_breakpoints(spec.file)
        except (RequestFailed, ConnectionLost, TimeoutError):
            self._breakpoints = before
            raise
        return self._breakpoints[number]

    async def remove_breakpoints(self, numbers: Sequence[int]) -> list[Breakpoint]:
        """Take some breakpoints away, and tell which they were."""
        gone = [self._breakpoints.pop(number) for number in numbers if number in self._breakpoints]
        for each in gone:
            self.failed_conditions.pop(f"{each.spec.file}:{each.spec.line}", None)
        for file in dict.fromkeys(each.spec.file for each in gone if self.ended is None):
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
            self._place.is_ending = True
            asyncio.get_running_loop().call_later(_LAST_WORDS, self._end, ended)

    def _end(self, ended: Ended) -> None:
        known = self._place.ended
        if known is None or (known.code is None and known.signal is None and not ended.reason):
            self._place.ended = ended
        if known is None:
            self._note(EventKind.TERMINATED, str(ended))
            self.on_end()
        self._place.status = Status.TERMINATED
        self._place.stop = None
        self._place.changed.set()

    def _note(self, kind: EventKind, text: str) -> None:
        if kind in self.subscribed:
            self._events.append(f"{kind}: {text}" if text != kind else str(kind))

    def _rebind(self, bound: Bound) -> None:
        for breakpoint in self.breakpoints:
            if bound.id is not None and breakpoint.bound.id == bound.id:
                self._breakpoints[breakpoint.number] = replace(breakpoint, bound=bound)


def _same_place(one: BreakpointSpec, other: BreakpointSpec) -> bool:
    return (one.file, one.line, one.column) == (other.file, other.line, other.column)
