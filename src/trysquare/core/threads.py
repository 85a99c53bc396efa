"""Threads for synchronous tools: reused, bounded, and never in the way of the process's end.

The standard executor joins its threads at exit, so one tool that hangs would keep the whole server from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

MAX_THREADS = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class _Work:
    run: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class ThreadRunner:
    """Runs functions in daemon threads, at most `limit` at once; more wait their turn."""

    def __init__(self, limit: int = MAX_THREADS) -> None:
        self._limit = limit
        self._queue: deque[_Work] = deque()
        self._changed = threading.Condition()
        self._threads = 0
        self._idle = 0

    async def run(self, function: Callable[[], T]) -> T:
        """Run the function in a thread and wait for what it returns. Being cancelled leaves the thread to itself."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        work = _Work(run=function, loop=loop, future=future)
        with self._changed:
            self._queue.append(work)
            if self._idle < len(self._queue) and self._threads < self._limit:
                self._threads += 1
                threading.Thread(target=self._work, name=f"trysquare-tool-{self._threads}", daemon=True).start()
            else:
                self._changed.notify()
        try:
            return await future
        except asyncio.CancelledError:
            self._forget(work)
            raise

    def _forget(self, work: _Work) -> None:
        with self._changed:
            if work in self._queue:
                self._queue.remove(work)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                while not self._queue:
                    if not self._changed.wait(timeout=30.0) and not self._queue:
                        self._idle -= 1
                        self._threads -= 1
                        return
                self._idle -= 1
                work = self._queue.popleft()
            _perform(work)


def _perform(work: _Work) -> None:
    result: Any = None
    error: BaseException | None = None
    try:
        result = work.run()
    except BaseException as raised:  # noqa: BLE001 - carried to the awaiting side, which decides
        error = raised
    try:
        work.loop.call_soon_threadsafe(_settle, work.future, result, error)
    except RuntimeError:
        # The loop has closed: the server ended while the tool still ran, and nobody waits any more.
        return


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    elif isinstance(error, StopIteration):
        future.set_exception(RuntimeError("the tool raised StopIteration"))
    else:
        future.set_exception(error)


_runner = ThreadRunner()


async def run_in_thread(function: Callable[[], T]) -> T:
    """Run a function in one of the process's tool threads."""
    return await _runner.run(function)
