"""Nursery: where children are started, and from which none gets away, whatever becomes of us."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio

from trysquare.core.threads import run_in_thread
from trysquare.processes import guardian
from trysquare.processes.child import Child, Command, start
from trysquare.processes.guardian import TOKEN_VARIABLE

_GRACE = 2.0
_GUARDIAN_SECONDS = 15.0


class Nursery:
    """Starts children and ends them. A guardian, started before the first of them, does it where we no longer can."""

    def __init__(self) -> None:
        self._token = secrets.token_hex(16)
        self._children: dict[int, Child] = {}
        self._started = 0
        self._guardian: subprocess.Popen[bytes] | None = None

    @property
    def children(self) -> tuple[Child, ...]:
        """Those that have not been ended yet."""
        return tuple(self._children.values())

    def start(self, command: Command) -> Child:
        """Start a child. Raises `OSError` where the system cannot."""
        self._need_guardian()
        self._started += 1
        child = start(command, f"{self._token}.{self._started}.", TOKEN_VARIABLE)
        self._children[child.pid] = child
        self._tell(f"+{child.pid} {child.started}\n")
        return child

    async def end(self, child: Child, *, grace: float = _GRACE) -> None:
        """End a child and all that it has started."""
        await child.end(grace=grace)
        if self._children.pop(child.pid, None) is not None:
            self._tell(f"-{child.pid}\n")

    async def close(self, *, grace: float = _GRACE) -> None:
        """End all of them, at the same time."""
        await asyncio.gather(*(self.end(child, grace=grace) for child in self.children))
        if self._guardian is not None:
            await _dismiss(self._guardian)
            self._guardian = None

    def _need_guardian(self) -> None:
        if self._guardian is not None and self._guardian.poll() is None:
            return
        if self._guardian is not None and self._guardian.stdin is not None:
            self._guardian.stdin.close()
        self._guardian = _start_guardian(self._token)
        for child in self.children:
            self._tell(f"+{child.pid} {child.started}\n")

    def _tell(self, line: str) -> None:
        assert self._guardian is not None
        assert self._guardian.stdin is not None
        # A guardian that was killed is replaced at the next start.
        with suppress(BrokenPipeError):
            self._guardian.stdin.write(line.encode())


@asynccontextmanager
async def open_nursery() -> AsyncGenerator[Nursery]:
    """A nursery, all of whose children have ended when it is left."""
    nursery = Nursery()
    try:
        yield nursery
    finally:
        with anyio.CancelScope(shield=True):
            await nursery.close()


def _start_guardian(token: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", guardian.__file__, token, str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        # Without a token, lest it is ended as a stray by the guardian of whoever started us.
        env={name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE},
        cwd="/",
        start_new_session=True,
    )


async def _dismiss(process: subprocess.Popen[bytes]) -> None:
    """Let the guardian see that all is over, and collect it."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(b"!\n")
    process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        await run_in_thread(lambda: process.wait(_GUARDIAN_SECONDS))
