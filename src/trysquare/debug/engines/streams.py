"""Streams: what a process writes, for its session to hear, and how it ends."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from trysquare.debug.debugger import Exited, Output, OutputStream
from trysquare.debug.session import Session
from trysquare.processes.child import Child
from trysquare.wire.pipes import Inlet

_LAST_OUTPUT = 1.0
"""Seconds in which an ended program's output has to come; what it started may hold its pipes open for ever."""
_SEEN = 20_000


class Streams:
    """Hears a child's two outputs. `clean` takes out of its errors what is the debugger's own."""

    def __init__(self, child: Child, session: Session, *, clean: Callable[[str], str] = lambda text: text) -> None:
        self._child = child
        self._session = session
        self._clean = clean
        self._seen = ""
        self._waiters: list[tuple[re.Pattern[str], asyncio.Future[re.Match[str]]]] = []
        self._open = {"stdout", "stderr"}
        self._all_read = asyncio.Event()
        self._inlets = [
            Inlet(child.stdout, self._hearing("stdout")),
            Inlet(child.stderr, self._hearing("stderr")),
        ]
        for inlet in self._inlets:
            inlet.start()

    async def wait_for(self, pattern: str, *, timeout: float) -> re.Match[str]:
        """Wait until the child has written something. `EOFError` where it ended without it."""
        wanted = re.compile(pattern)
        if (found := wanted.search(self._seen)) is not None:
            return found
        waiter: asyncio.Future[re.Match[str]] = asyncio.get_running_loop().create_future()
        self._waiters.append((wanted, waiter))
        if not self._open:
            raise EOFError
        async with asyncio.timeout(timeout):
            return await waiter

    async def tell_end(self) -> None:
        """Tell the session how the process ended, after all that it wrote. Only the process knows for certain."""
        await self._child.exited.wait()
        try:
            async with asyncio.timeout(_LAST_OUTPUT):
                await self._all_read.wait()
        except TimeoutError:
            pass
        self._session.hear(exited(self._child))

    def close(self) -> None:
        """Hear no more."""
        for inlet in self._inlets:
            inlet.stop()

    def _hearing(self, stream: OutputStream) -> Callable[[bytes], None]:
        def hear(chunk: bytes) -> None:
            text = chunk.decode(errors="replace")
            self._notice(text)
            if shown := self._clean(text) if stream == "stderr" else text:
                self._session.hear(Output(stream=stream, text=shown))
            if not chunk:
                self._end(stream)

        return hear

    def _end(self, stream: OutputStream) -> None:
        self._open.discard(stream)
        if self._open:
            return
        self._all_read.set()
        for _, waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(EOFError())

    def _notice(self, text: str) -> None:
        if len(self._seen) >= _SEEN and not self._waiters:
            return
        self._seen = (self._seen + text)[-_SEEN:]
        for wanted, waiter in self._waiters:
            if not waiter.done() and (found := wanted.search(self._seen)) is not None:
                waiter.set_result(found)
        self._waiters = [(wanted, waiter) for wanted, waiter in self._waiters if not waiter.done()]


def exited(child: Child) -> Exited:
    """How a process of ours has ended."""
    return Exited.with_status(child.exit_status())


def without_lines(own: re.Pattern[str]) -> Callable[[str], str]:
    """Takes out the lines that are a debugger's own."""

    def clean(text: str) -> str:
        return "".join(line for line in text.splitlines(keepends=True) if own.match(line) is None)

    return clean
