"""DebugSession: one program under a debugger: state, output, history, breakpoints."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from trysquare.core.concurrency import BackgroundTasks
from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.debug.debugger import (
    DEBUGGER_ERRORS,
    Access,
    Bound,
    BreakpointMoved,
    BreakpointSpec,
    ChildStarted,
    ConditionFailed,
    DataBreakpoint,
    Debugger,
    Disconnected,
    Event,
    Exited,
    FunctionBreakpoint,
    Output,
    OutputStream,
    RequestFailed,
    Resumed,
    Stopped,
    require_capable,
    unsupported,
)
from trysquare.net.rpc import ConnectionLost

EventKind: TypeAlias = Literal["breakpoint", "exception", "stopped", "terminated"]
"""Events that can be subscribed to. The end of the program and its breakpoints always are."""
ALWAYS: frozenset[EventKind] = frozenset({"terminated", "breakpoint"})


class Status(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    TERMINATED = "terminated"


_STOP_EVENTS: dict[str, EventKind] = {"breakpoint": "breakpoint", "exception": "exception"}
_HISTORY_LENGTH = 200
LIMIT = 256 * 1024


class OutputPage(NamedTuple):
    """A part of the output. `cursor` is the position after it; `lost` counts the characters dropped before it."""

    text: str
    cursor: int
    lost: int = 0
    more: bool = False


class OutputLog:
    """The last output of a program. Positions count characters from its start, also those dropped since."""

    def __init__(self, *, limit: int = LIMIT) -> None:
        self._pieces: deque[tuple[OutputStream, str]] = deque()
        self._size = 0
        self.total = 0  # characters written so far
        self._limit = limit

    def add(self, output: Output) -> None:
        """Append output, and drop the oldest beyond the limit."""
        text = output.text[-self._limit :]
        self.total += len(output.text)
        self._pieces.append((output.stream, text))
        self._size += len(text)
        while self._size > self._limit:
            stream, oldest = self._pieces.popleft()
            excess = self._size - self._limit
            if len(oldest) > excess:
                self._pieces.appendleft((stream, oldest[excess:]))
            self._size -= min(len(oldest), excess)

    def page(self, cursor: int = 0, *, size: int = 4000, stream: OutputStream | None = None) -> OutputPage:
        """The output from a position on, at most `size` characters."""
        first = self.total - self._size
        begin = max(cursor, first)
        end = min(begin + size, self.total)
        return OutputPage(
            text=self._between(begin - first, end - first, stream),
            cursor=max(end, begin),
            lost=max(0, first - max(cursor, 0)),
            more=end < self.total,
        )

    def tail(self, size: int = 2000) -> str:
        return self.page(self.total - min(size, self._size), size=size).text

    def _between(self, begin: int, end: int, stream: OutputStream | None) -> str:
        found: list[str] = []
        position = 0
        for piece_stream, text in self._pieces:
            if position >= end:
                break
            if position + len(text) > begin and (stream is None or stream == piece_stream):
                found.append(text[max(0, begin - position) : end - position])
            position += len(text)
        return "".join(found)


_EXIT_DELAY = 1.0
"""Seconds to wait for the exit code after the debugger has disconnected."""
_MAX_EVENTS = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Breakpoint:
    """A breakpoint of a session: as requested, and as the debugger set it."""

    number: int
    spec: BreakpointSpec
    bound: Bound

    @property
    def location(self) -> str:
        return f"{self.spec.file}:{self.bound.line or self.spec.line}"

    @property
    def is_moved(self) -> bool:
        """Whether the debugger set it at another line than the requested one."""
        return self.bound.verified and self.bound.line not in (None, self.spec.line)


Outcome: TypeAlias = Stopped | Exited | None
"""How a run came out: stopped, ended, or (None) still running."""


class DebugSession:
    """One program under a debugger, which gets `receive` as its listener and is then set as `debugger`.

    Operations hold `lock`; events are received at any time.
    """

    def __init__(self, *, session_id: str, language: str, principal: str, title: str, root: Path) -> None:
        self.id = session_id
        self.language = language
        self.principal = principal
        self.title = title
        self.output = OutputLog()
        self.output_shown = 0
        """Position up to which its output has been shown."""
        self.history: deque[str] = deque(maxlen=_HISTORY_LENGTH)
        """The operations with their outcome and duration, oldest first."""
        self.root = root
        self.lock = asyncio.Lock()
        self.started = time.monotonic()
        self.waited = 0.0  # seconds of the last wait
        self.allows_side_effects = False
        self.send_input: Callable[[str], None] | None = None
        """Writes to the standard input of the program."""
        self.on_child: Callable[[ChildStarted], None] = lambda event: None
        self.on_end: Callable[[], object] = lambda: None
        self.parent: str | None = None
        """The id of the session whose program started this one."""
        self.on_stop: Callable[[], None] = lambda: None
        self.stopped_child: DebugSession | None = None
        """A child that stopped while this program was awaited."""
        self.subscribed: frozenset[EventKind] = ALWAYS
        self.rules = StopConditions(self)
        self.failed_conditions: dict[str, str] = {}  # reason by location
        self._events: deque[str] = deque(maxlen=_MAX_EVENTS)
        self._debugger: Debugger | None = None
        self._breakpoints: dict[int, Breakpoint] = {}
        self._numbers = itertools.count(1)
        self.status = Status.STARTING
        self.stop: Stopped | None = None
        """The present stop, if the program is stopped."""
        self.stop_count = 0
        self.shown_frame = 0
        """The number of the frame that the present stop showed."""
        self.ended: Exited | None = None
        self._is_ending = False
        """Whether the debugger is gone and the exit code is awaited."""
        self._changed = asyncio.Event()
        self._background = BackgroundTasks()
        self.watch = self._background.start  # runs a task until the session is closed
        self._moves: set[asyncio.Future[None]] = set()

    @property
    def key(self) -> str:
        """Unique key: two principals may have sessions of the same id."""
        return f"{self.principal}\0{self.id}"

    @property
    def debugger(self) -> Debugger:
        if self._debugger is None:
            raise ToolError(
                f"Session `{self.id}` has not started yet.",
                code=ErrorCode.SESSION_NOT_STARTED,
                instruction="Wait for the result of session_start.",
            )
        return self._debugger

    @debugger.setter
    def debugger(self, debugger: Debugger) -> None:
        self._debugger = debugger

    @property
    def breakpoints(self) -> Sequence[Breakpoint]:
        return tuple(self._breakpoints.values())

    def receive(self, event: Event) -> None:
        """Handle an event of the debugger. Called on the event loop, in order."""
        match event:
            case Output():
                self.output.add(event)
            case Stopped():
                self.stop_count += 1
                self._add_event(_STOP_EVENTS.get(event.reason, "stopped"), event.text or event.reason)
                self._change(Status.PAUSED, stop=event)
                self.on_stop()
            case Resumed():
                self._change(Status.RUNNING)
            case Exited(code=None, signal=None):
                self._end_soon(event)
            case Exited():
                self._end(event)
            case Disconnected():
                self._end_soon(Exited(reason=event.reason))
            case BreakpointMoved():
                self._rebind(event.bound)
            case ConditionFailed():
                self.failed_conditions[event.location] = event.reason
            case ChildStarted():
                self.on_child(event)

    def on_child_stop(self, child: DebugSession) -> None:
        self.stopped_child = child
        self._changed.set()

    def successor(self, session_id: str, title: str) -> DebugSession:
        """A session of the same program, or of one that it started: same permissions."""
        fresh = DebugSession(
            session_id=session_id, language=self.language, principal=self.principal, title=title, root=self.root
        )
        fresh.allows_side_effects, fresh.subscribed = self.allows_side_effects, self.subscribed
        return fresh

    def take_events(self) -> list[str]:
        taken = list(self._events)
        self._events.clear()
        return taken

    def mark_started(self) -> None:
        if self.status is Status.STARTING:
            self._change(Status.RUNNING)

    def cancel_tasks(self) -> None:
        self._background.cancel()
        for move in self._moves:
            move.cancel()

    def require_alive(self) -> None:
        if self.ended is not None:
            raise ToolError(
                f"Session `{self.id}` has ended.",
                code=ErrorCode.SESSION_TERMINATED,
                instruction="Start the program again with session_start, or `session restart`.",
            )

    def require_stopped(self) -> Stopped:
        """The present stop, or an error with the actual state."""
        if self._is_ending and self.ended is None:
            raise ToolError(
                f"The debugger of session `{self.id}` is disconnected.",
                code=ErrorCode.SESSION_LOST,
                instruction="Start the program again with `session restart`.",
            )
        if self.stop is not None:
            return self.stop
        self.require_alive()
        raise ToolError(
            "The program is running, so it cannot be inspected.",
            code=ErrorCode.STATE_NOT_PAUSED,
            instruction="Stop it with `execute pause`, or wait for a breakpoint with `execute wait`.",
        )

    async def run(self, move: Callable[[int], Awaitable[None]], *, timeout: float) -> Outcome:
        """Continue the program by `move`, which gets the stopped thread, and wait for the outcome."""
        stop = self.require_stopped()
        self._change(Status.RUNNING)
        try:
            await self._sent(move(stop.thread))
        except RequestFailed:
            # Refused: the program is still stopped, unless an event said otherwise meanwhile.
            if self.status is Status.RUNNING:
                self._change(Status.PAUSED, stop=stop)
            raise
        except ConnectionLost:
            if not self._is_ending:  # a killed program takes its debugger with it
                raise
        return await self.wait(timeout=timeout)

    async def _sent(self, move: Awaitable[None]) -> None:
        """Wait until a move is answered or changes the state: a debugger may not answer after the latter."""
        sent = asyncio.ensure_future(move)
        self._moves.add(sent)
        sent.add_done_callback(self._on_answer)
        while not sent.done() and self.status is Status.RUNNING:
            changed = asyncio.ensure_future(self._changed.wait())
            await asyncio.wait({sent, changed}, return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
            self._changed.clear()
        if sent.done():
            sent.result()

    def _on_answer(self, move: asyncio.Future[None]) -> None:
        self._moves.discard(move)
        if not move.cancelled():
            # Retrieved, so that an error which nothing awaits is not logged.
            move.exception()

    async def go(self, *, timeout: float) -> Outcome:
        """Start the program, after its breakpoints are set, and wait for the outcome."""
        await self.debugger.start()
        self.mark_started()
        return await self.wait(timeout=timeout)

    async def wait(self, *, timeout: float) -> Outcome:
        """Wait until the program stops or ends; None on timeout, or when `stopped_child` is set."""
        self.stopped_child = None
        began = time.monotonic()
        try:
            async with asyncio.timeout(timeout):
                while self.ended is None and (self.stop is None or self._is_ending):
                    if self.stopped_child is not None:
                        return None
                    await self._changed.wait()
                    self._changed.clear()
        except TimeoutError:
            return None
        finally:
            self.waited = time.monotonic() - began
        return self.ended or self.stop

    async def add_breakpoint(self, spec: BreakpointSpec) -> Breakpoint:
        """Set a breakpoint; one at the same location is replaced."""
        [made] = await self.add_breakpoints([spec])
        return made

    async def add_breakpoints(self, specs: Sequence[BreakpointSpec]) -> list[Breakpoint]:
        """Set breakpoints with one request per file; those at the same locations are replaced."""
        self.require_alive()
        for spec in specs:
            require_capable(self.debugger.capabilities, spec, self.language)
        before = dict(self._breakpoints)
        known = {_location(each.spec): each.number for each in self.breakpoints}
        numbers: list[int] = []
        for spec in specs:
            number = known.setdefault(_location(spec), 0) or next(self._numbers)
            known[_location(spec)] = number
            numbers.append(number)
            self.failed_conditions.pop(f"{spec.file}:{spec.line}", None)
            self._breakpoints[number] = Breakpoint(number=number, spec=spec, bound=Bound())
        try:
            for file in dict.fromkeys(spec.file for spec in specs):
                await self._send_breakpoints(file)
        except DEBUGGER_ERRORS:
            self._breakpoints = before
            raise
        return [self._breakpoints[number] for number in numbers]

    async def remove_breakpoints(self, numbers: Sequence[int]) -> list[Breakpoint]:
        gone = [self._breakpoints.pop(number) for number in numbers if number in self._breakpoints]
        for each in gone:
            self.failed_conditions.pop(f"{each.spec.file}:{each.spec.line}", None)
        for file in dict.fromkeys(each.spec.file for each in gone if self.ended is None):
            await self._send_breakpoints(file)
        return gone

    async def _send_breakpoints(self, file: str) -> None:
        of_file = [each for each in self.breakpoints if each.spec.file == file]
        bound = await self.debugger.set_breakpoints(file, [each.spec for each in of_file])
        for breakpoint, made in zip(of_file, bound, strict=False):
            self._breakpoints[breakpoint.number] = replace(breakpoint, bound=made)

    def _change(self, status: Status, *, stop: Stopped | None = None) -> None:
        if self.ended is not None:
            return
        self.status = status
        self.stop = stop
        self.shown_frame = 0
        self._changed.set()

    def _end_soon(self, ended: Exited) -> None:
        """End the session unless the exit code arrives first."""
        if self.ended is None:
            self._is_ending = True
            asyncio.get_running_loop().call_later(_EXIT_DELAY, self._end, ended)

    def _end(self, ended: Exited) -> None:
        known = self.ended
        if known is None or (known.code is None and known.signal is None and not ended.reason):
            self.ended = ended
        if known is None:
            self._add_event("terminated", str(ended))
            self.on_end()
        self.status = Status.TERMINATED
        self.stop = None
        self._changed.set()

    def _add_event(self, kind: EventKind, text: str) -> None:
        if kind in self.subscribed:
            self._events.append(f"{kind}: {text}" if text != kind else kind)

    def _rebind(self, bound: Bound) -> None:
        for breakpoint in self.breakpoints:
            if bound.id is not None and breakpoint.bound.id == bound.id:
                self._breakpoints[breakpoint.number] = replace(breakpoint, bound=bound)


def _location(spec: BreakpointSpec) -> tuple[str, int, int | None]:
    return spec.file, spec.line, spec.column


_INSTEAD_OF_WATCHING = {
    "python": "Use who_wrote, trace or explain, or a breakpoint with a condition on the value.",
}
_INSTEAD = "Use a breakpoint with a condition on the value at the lines that may change it."


class StopConditions:
    """Exceptions, functions and values at which a session stops. Debuggers require all of a kind at each change."""

    def __init__(self, session: DebugSession) -> None:
        self._session = session
        self.exception_filters: tuple[str, ...] | None = None
        """None for the adapter's own choice."""
        self.functions: dict[str, FunctionBreakpoint] = {}
        self.watched: dict[str, DataBreakpoint] = {}

    async def stop_at_exceptions(self, filters: Sequence[str]) -> None:
        """Stop at exceptions that match these filters of the debugger, and at no others."""
        known = self._session.debugger.capabilities.exception_filters
        unknown = [each for each in filters if each not in known]
        if unknown:
            raise InvalidArguments(
                f"Unknown exception filter `{', '.join(unknown)}` for the debugger of {self._session.language}.",
                code=ErrorCode.VALIDATION_INVALID_PARAM if known else ErrorCode.CAPABILITY_NOT_SUPPORTED,
                instruction=f"Use any of {', '.join(known)}." if known else "Set a breakpoint where it is raised.",
            )
        await self._session.debugger.set_exception_breakpoints(filters)
        self.exception_filters = tuple(filters)

    async def stop_at_function(self, wanted: FunctionBreakpoint) -> Bound:
        if not self._session.debugger.capabilities.function_breakpoints:
            raise unsupported(
                f"The debugger of {self._session.language} does not support function breakpoints.",
                "Set a breakpoint at the function's first line.",
            )
        self.functions[wanted.name] = replace(wanted, bound=Bound())
        await self._send_functions()
        return self.functions[wanted.name].bound

    async def remove_function(self, name: str) -> None:
        if self.functions.pop(name, None) is None:
            raise InvalidArguments(f"No breakpoint at a function `{name}`.")
        await self._send_functions()

    async def watch(self, expression: str, *, frame: int, access: Access, condition: str | None) -> None:
        """Stop when a value is written or read. `frame` is the id of the frame that has its name."""
        language = self._session.language
        instruction = _INSTEAD_OF_WATCHING.get(language, _INSTEAD)
        if not self._session.debugger.capabilities.data_breakpoints:
            raise unsupported(f"The debugger of {language} does not support data breakpoints.", instruction)
        identity = await self._data_id(expression, frame)
        if identity is None:
            raise unsupported(f"The debugger cannot watch `{expression}` here.", instruction)
        self.watched[expression] = DataBreakpoint(data_id=identity, access=access, condition=condition)
        await self._send_watched()

    async def unwatch(self, expression: str) -> None:
        if self.watched.pop(expression, None) is None:
            raise InvalidArguments(f"`{expression}` is not watched.")
        await self._send_watched()

    async def clear(self) -> int:
        """Remove the function and data breakpoints, and return how many there were."""
        functions, self.functions = self.functions, {}
        watched, self.watched = self.watched, {}
        if functions:
            await self._send_functions()
        if watched:
            await self._send_watched()
        return len(functions) + len(watched)

    async def copy_from(self, earlier: StopConditions) -> None:
        """Copy the conditions of another session, but not its watched values: they are addresses in its memory."""
        if earlier.exception_filters is not None:
            await self.stop_at_exceptions(earlier.exception_filters)
        for wanted in earlier.functions.values():
            await self.stop_at_function(wanted)

    async def _data_id(self, name: str, frame: int) -> str | None:
        """The debugger's id of a value: by the scope that has it, or as an expression."""
        debugger = self._session.debugger
        for scope in await debugger.scopes(frame):
            if scope.kind != "other" and (found := await debugger.data_id(name, reference=scope.reference, frame=None)):
                return found
        return await debugger.data_id(name, reference=0, frame=frame)

    async def _send_functions(self) -> None:
        wanted = list(self.functions.values())
        bound = await self._session.debugger.set_function_breakpoints(wanted)
        self.functions |= {each.name: replace(each, bound=made) for each, made in zip(wanted, bound, strict=False)}

    async def _send_watched(self) -> None:
        watched = list(self.watched.items())
        bound = await self._session.debugger.set_data_breakpoints([each for _, each in watched])
        self.watched |= {name: replace(each, bound=made) for (name, each), made in zip(watched, bound, strict=False)}
