"""Background tasks that nothing awaits, clean-up that outlasts a cancellation, and many timeouts on one timer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Hashable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

logger = logging.getLogger("trysquare.background")


async def shielded(work: Coroutine[Any, Any, T]) -> T:
    """Await work that a cancellation does not interrupt, such as clean-up; the cancellation is raised after it.

    `asyncio.shield` alone would raise it at once, and leave the work to end after its caller.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancelled = error
    result = task.result()
    if cancelled is not None:
        raise cancelled
    return result


async def cancel_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait for their end, whatever they raise."""
    cancelled = list(tasks)
    for task in cancelled:
        task.cancel()
    await asyncio.gather(*cancelled, return_exceptions=True)


class BackgroundTasks:
    """A set of tasks that nothing awaits, referenced until each ends. A task that fails is logged."""

    def __init__(self, on_error: Callable[[BaseException], None] | None = None) -> None:
        self._on_error = on_error
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task. After `close` it is cancelled before its first step."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        if self._closed:
            task.cancel()
        return task

    async def wait(self, timeout: float | None = None) -> None:
        """Wait until all tasks have ended, also those started meanwhile, or the timeout has passed."""
        while self._tasks:
            _, pending = await asyncio.wait(self._tasks, timeout=timeout)
            if pending:
                return

    def cancel(self) -> None:
        """Cancel all tasks without waiting for their end."""
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """Cancel all tasks, wait for their end, and refuse further ones."""
        self._closed = True
        self.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            logger.error("background task failed", exc_info=error)
            if self._on_error is not None:
                self._on_error(error)


class TimeoutScheduler:
    """Any number of timeouts. Nearly all are cancelled before they are due, and then cost no timer of their own."""

    __slots__ = ("_next", "_scheduled", "_timer")

    def __init__(self) -> None:
        self._scheduled: dict[Hashable, tuple[float, Callable[[], object]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._next = 0.0
        """When the timer fires next. Stored here, since uvloop's handle does not always have it."""

    def schedule(self, key: Hashable, seconds: float, callback: Callable[[], object]) -> None:
        """Call `callback` after so many seconds, unless the key is cancelled or scheduled anew before."""
        # The loop is not asked for until a timer is needed: on Python 3.11 that is a system call.
        due = time.monotonic() + seconds
        self._scheduled[key] = (due, callback)
        if self._timer is None:
            self._arm(due)
        elif due < self._next:
            self._timer.cancel()
            self._arm(due)

    def limit(self, seconds: float, task: asyncio.Task[Any] | None = None) -> TimeLimit:
        """`with timeouts.limit(30):` raises `TimeoutError` where what is awaited inside takes longer.

        Who knows the task that runs names it: to find it out costs a system call on Python 3.11.
        """
        return TimeLimit(self, seconds, task)

    def cancel(self, key: Hashable) -> None:
        """Drop the timeout of a key, if there is one."""
        self._scheduled.pop(key, None)

    def _arm(self, due: float) -> None:
        self._next = due
        self._timer = asyncio.get_running_loop().call_later(max(0.0, due - time.monotonic()), self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = time.monotonic()
        keys = [key for key, (due, _) in self._scheduled.items() if due <= now]
        callbacks = [self._scheduled.pop(key)[1] for key in keys]
        if self._scheduled:
            self._arm(min(due for due, _ in self._scheduled.values()))
        for callback in callbacks:
            callback()


class TimeLimit:
    """What `asyncio.timeout` does, on the timer of a scheduler: nearly all limits end without a timer of their own."""

    __slots__ = ("_cancelling", "_given", "_is_over", "_seconds", "_task", "_timeouts")

    def __init__(self, timeouts: TimeoutScheduler, seconds: float, task: asyncio.Task[Any] | None) -> None:
        self._timeouts = timeouts
        self._seconds = seconds
        self._given = task
        self._is_over = False

    def __enter__(self) -> None:
        task = self._given or asyncio.current_task()
        if task is None:
            raise RuntimeError("a time limit needs a task")
        self._task, self._cancelling = task, task.cancelling()
        self._timeouts.schedule(self, self._seconds, self._expire)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        self._timeouts.cancel(self)
        # A task that somebody else has cancelled as well stays cancelled.
        if self._is_over and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _expire(self) -> None:
        self._is_over = True
        self._task.cancel()


class TurnBuffer:
    """Bytes that are written in one turn of the event loop, sent together at its end: each sending costs a system call.

    What would be more than `limit` does not wait, so that it reaches the flow control behind it.
    """

    __slots__ = ("_limit", "_parts", "_send", "size")

    def __init__(self, send: Callable[[list[bytes]], object], limit: int = 64 * 1024) -> None:
        self._send = send
        self._limit = limit
        self._parts: list[bytes] = []
        self.size = 0
        """Bytes that wait for the end of the turn."""

    def add(self, data: bytes) -> None:
        """Send this with the rest of the turn."""
        if not self._parts:
            asyncio.get_running_loop().call_soon(self.flush)
        self._parts.append(data)
        self.size += len(data)
        if self.size > self._limit:
            self.flush()

    def flush(self) -> None:
        """Send now what waits."""
        if self._parts:
            parts = self.take()
            self._send(parts)

    def take(self) -> list[bytes]:
        """What waits, which is then not sent."""
        parts, self._parts, self.size = self._parts, [], 0
        return parts
