"""The bridge from a synchronous tool, which runs in a thread, back to the event loop of its call."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from trysquare.core.errors import CallCancelled

T = TypeVar("T")


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
        """Cancel what the thread waits for, and refuse more: nobody wants the answer any longer."""
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
