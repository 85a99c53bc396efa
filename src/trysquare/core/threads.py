"""Threads for synchronous tools: reused, bounded, never joined at exit; and the bridge back to the event loop.

The standard executor joins its threads at exit, so one tool that hangs would keep the whole server from ending.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

from trysquare.core.errors import CallCancelled

T = TypeVar("T")

MAX_THREADS = 64
MAX_ABANDONED = 256
PATIENCE = 5.0
"""Seconds after which a function that still runs gives up its slot to those that wait."""
_IDLE_SECONDS = 30.0


class CpuTime:
    """The CPU time that work in threads took, in seconds."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds = 0.0


cpu_spent: ContextVar[CpuTime | None] = ContextVar("trysquare_cpu_spent", default=None)
"""Where work in a thread adds its CPU time, if it is measured."""


@dataclass(kw_only=True, slots=True, eq=False)
class _Work:
    run: Callable[[], Any]
    context: Context
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    finished: bool = False
    abandoned: bool = False
    """Whether its slot was given to another."""


class ThreadRunner:
    """Runs functions in daemon threads, at most `limit` at once; more wait their turn.

    A function whose caller has gone keeps its thread, since a thread cannot be interrupted. It frees its slot, and so
    does one that runs for longer than `patience` while others wait, so that tools that hang do not stop the others,
    until there are `abandoned_limit` of them.
    """

    def __init__(
        self, limit: int = MAX_THREADS, abandoned_limit: int = MAX_ABANDONED, patience: float = PATIENCE
    ) -> None:
        self._limit = limit
        self._abandoned_limit = abandoned_limit
        self._patience = patience
        self._running: dict[_Work, float] = {}
        """Work that has a slot, with the time at which it began, oldest first."""
        self._queue: deque[_Work] = deque()
        self._changed = threading.Condition()
        self._threads = 0
        self._idle = 0
        self._abandoned = 0

    async def run(self, function: Callable[[], T]) -> T:
        """Run the function in a thread and wait for what it returns. Being cancelled leaves the thread to itself."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        work = _Work(run=function, context=copy_context(), loop=loop, future=future)
        with self._changed:
            self._queue.append(work)
            if not self._call_worker():
                self._queue.remove(work)
                raise RuntimeError("cannot start a thread for a synchronous tool")
            if len(self._queue) > self._idle and self._threads >= self._limit:
                loop.call_later(self._patience, self._relieve, work)
        try:
            return await future
        except asyncio.CancelledError:
            self._abandon(work)
            raise

    def _call_worker(self) -> bool:
        """Wake or start a thread for what is queued; False if there is none and the system gives none."""
        if self._idle >= len(self._queue) or self._threads >= self._limit:
            self._changed.notify()
            return True
        try:
            threading.Thread(target=self._work, name="trysquare-tool", daemon=True).start()
        except RuntimeError:
            return self._threads > 0
        self._threads += 1
        return True

    def _abandon(self, work: _Work) -> None:
        with self._changed:
            if work in self._queue:
                self._queue.remove(work)
            else:
                self._free_slot(work)

    def _relieve(self, work: _Work) -> None:
        """Free the slots of what runs for too long, where this work still waits for one."""
        with self._changed:
            if work.future.done() or work.finished or work.abandoned or work in self._running:
                return
            latest = time.monotonic() - self._patience
            for busy in [each for each, began in self._running.items() if began <= latest][: len(self._queue)]:
                self._free_slot(busy)
            work.loop.call_later(self._patience, self._relieve, work)

    def _free_slot(self, work: _Work) -> None:
        if not work.finished and not work.abandoned and self._abandoned < self._abandoned_limit:
            work.abandoned = True
            self._abandoned += 1
            self._threads -= 1
            self._running.pop(work, None)
            if self._queue:
                self._call_worker()

    def _work(self) -> None:
        while (work := self._next()) is not None:
            _perform(work)
            if self._ends_after(work):
                return

    def _next(self) -> _Work | None:
        with self._changed:
            self._idle += 1
            try:
                while not self._queue:
                    if not self._changed.wait(timeout=_IDLE_SECONDS) and not self._queue:
                        self._threads -= 1
                        return None
                work = self._queue.popleft()
                self._running[work] = time.monotonic()
                return work
            finally:
                self._idle -= 1

    def _ends_after(self, work: _Work) -> bool:
        """Whether this thread ends now: its slot was given to another while its work was abandoned."""
        with self._changed:
            work.finished = True
            self._running.pop(work, None)
            if work.abandoned:
                self._abandoned -= 1
            return work.abandoned


def _perform(work: _Work) -> None:
    result: Any = None
    error: BaseException | None = None
    spent, started = work.context.get(cpu_spent), time.thread_time()
    try:
        result = work.context.run(work.run)
    except BaseException as raised:  # noqa: BLE001 - carried to the awaiting side, which decides
        error = raised
    if spent is not None:
        spent.seconds += time.thread_time() - started
    # A closed loop: the server ended while the tool still ran.
    with suppress(RuntimeError):
        work.loop.call_soon_threadsafe(_settle, work.future, result, error)


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    elif isinstance(error, (StopIteration, GeneratorExit, KeyboardInterrupt)):
        # A future takes no StopIteration, the others end a coroutine or a loop, and none of them can come from outside
        # of this thread: they are the tool's own doing.
        raised = RuntimeError(f"the tool raised {type(error).__name__}")
        raised.__cause__ = error
        future.set_exception(raised)
    else:
        future.set_exception(error)


_runner = ThreadRunner()


async def run_in_thread(function: Callable[[], T]) -> T:
    """Run a function in one of the process's tool threads."""
    return await _runner.run(function)


class ThreadBridge:
    """Lets one synchronous call wait for coroutines on its loop, until the call is cancelled."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: Future[Any] | None = None
        self._closed = False
        self._lock = threading.Lock()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for it here."""
        with self._lock:
            if self._closed:
                work.close()
                raise CallCancelled("The call was cancelled.")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
            self._waiting = future
        try:
            return future.result()
        except CancelledError:
            raise CallCancelled("The call was cancelled.") from None

    def close(self) -> None:
        """Cancel what the thread waits for, and refuse more."""
        with self._lock:
            self._closed = True
            if self._waiting is not None:
                self._waiting.cancel()


_current = threading.local()


def bridged(bridge: ThreadBridge, function: Callable[[], T]) -> T:
    """Run a function in this thread with a bridge to its loop."""
    _current.bridge = bridge
    try:
        return function()
    finally:
        _current.bridge = None


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Inside a synchronous tool: wait for a coroutine of the context, such as `context.ask(...)`."""
    bridge: ThreadBridge | None = getattr(_current, "bridge", None)
    if bridge is None:
        work.close()
        raise RuntimeError("wait_for() works only inside a synchronous tool; await the coroutine instead")
    return bridge.run(work)
