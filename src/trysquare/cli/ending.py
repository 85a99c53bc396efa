"""How a serving process ends: in order on SIGTERM, also while it still opens its tools, and within some seconds."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

logger = logging.getLogger("trysquare.server")

SECONDS = 5.0
"""How long tools may take to end after they were cancelled, and to close what they opened."""
_STOPPED = 128 + signal.SIGTERM


class Ending:
    """The end of this process.

    SIGTERM cancels what still opens, so that what is open already is closed in its order; while it closes, SIGTERM
    only bounds the time that is left. Transports take the signal over while they serve.
    """

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._code: int | None = None
        self._is_signalled = False
        self._has_begun = threading.Event()
        self._is_over = threading.Event()

    @contextmanager
    def handled(self) -> Generator[None]:
        """Take SIGTERM, as far as nobody inside does, and bound the end. Only the main thread takes signals."""
        # It waits from the start on: a handler of signals must start no thread, since it may interrupt that very act.
        threading.Thread(target=self._watch, name="trysquare-ending", daemon=True).start()
        try:
            with self._signal_taken():
                yield
        finally:
            self._is_over.set()
            self._has_begun.set()

    @contextmanager
    def _signal_taken(self) -> Generator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGTERM, self._on_sigterm)
        try:
            yield
        except asyncio.CancelledError:
            if self._is_signalled:
                raise SystemExit(_STOPPED) from None
            raise
        finally:
            signal.signal(signal.SIGTERM, before)

    @contextmanager
    def cancels(self) -> Generator[None]:
        """The part of the running task that SIGTERM cancels: from its first opening on, until it begins to close."""
        self._task, self._loop = asyncio.current_task(), asyncio.get_running_loop()
        try:
            yield
        finally:
            self._task = None

    def begin(self, code: int) -> None:
        """Exit some seconds from now, unless everything has ended before.

        A tool may go on although it was cancelled, or hang in a thread, and the event loop waits for it for ever.
        """
        if self._code is None:
            self._code = code
            self._has_begun.set()

    def _on_sigterm(self, number: int, frame: FrameType | None) -> None:
        if self._loop is None:
            raise SystemExit(_STOPPED)
        self._is_signalled = True
        self.begin(_STOPPED)
        if self._task is not None:
            self._task.cancel()
            self._task = None
            # The loop may be asleep.
            self._loop.call_soon_threadsafe(lambda: None)

    def _watch(self) -> None:
        self._has_begun.wait()
        if not self._is_over.wait(SECONDS):
            logger.warning("tools are still running %.0f seconds after they were cancelled; exiting", SECONDS)
            os._exit(self._code or 0)


def exit_code(error: BaseException | None) -> int:
    """The code with which a process ends that raises this."""
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        return error.code
    return 0 if error is None else 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
