"""Supervised child processes, each in a session of its own.

A reaper process, started before the first child, ends them if this process is killed.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from trysquare.core.concurrency import shielded
from trysquare.core.threads import run_in_thread
from trysquare.processes import reaper
from trysquare.processes.reaper import TOKEN_VARIABLE, Entry, carries, end_all, handle_of, look_up, processes

_PIPE_BYTES = 1024 * 1024
_GRACE = 2.0
_FINAL_SECONDS = 5.0
_REAPER_SECONDS = 15.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """A program with its arguments and environment."""

    program: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    folder: str | None = None


class ChildProcess:
    """A child process with non-blocking pipes, which `end` closes."""

    def __init__(self, process: subprocess.Popen[bytes], token: str) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self.pid = process.pid
        self._pipes = (process.stdin, process.stdout, process.stderr)
        self.stdin, self.stdout, self.stderr = (pipe.fileno() for pipe in self._pipes)
        self.started = entry.started if (entry := look_up(process.pid)) else 0
        self.exited = asyncio.Event()
        """Set once the process itself has ended; its descendants may run until `end`."""
        self._process = process
        self._token = token
        self._ending: asyncio.Task[None] | None = None
        self._watch = _ExitWatch(process.pid, self.exited)

    def exit_status(self) -> int | None:
        """Exit status, negative for a signal, or None while it runs."""
        if self._process.returncode is not None:
            return self._process.returncode
        try:
            status = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return self._process.poll()
        if status is None:
            return None
        return status.si_status if status.si_code == os.CLD_EXITED else -status.si_status

    def close_input(self) -> None:
        """Close its standard input, so that it reads the end of it."""
        with suppress(OSError):
            self._pipes[0].close()

    async def end(self, *, grace: float) -> None:
        """End it and its descendants: close its input, then SIGTERM, then SIGKILL."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end(grace))
        await asyncio.shield(self._ending)

    async def _end(self, grace: float) -> None:
        _, stdout, stderr = self._pipes
        self.close_input()
        if not await self.exits_within(grace):
            self._signal_group(signal.SIGTERM)
            if not await self.exits_within(grace):
                self._signal_group(signal.SIGKILL)
                await self.exits_within(_FINAL_SECONDS)
        # The process has not been waited for, so its number, which is its group's, is still its own.
        self._signal_group(signal.SIGKILL)
        self._watch.stop()
        stdout.close()
        stderr.close()
        self._process.poll()
        # Descendants that left the group still have the token.
        await run_in_thread(lambda: end_all(self._strays, grace=0.0))

    async def exits_within(self, seconds: float) -> bool:
        """Wait for the process to exit; False after a timeout."""
        if self.exited.is_set():
            return True
        try:
            async with asyncio.timeout(seconds):
                await self.exited.wait()
        except TimeoutError:
            return False
        return True

    def _signal_group(self, number: int) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def _strays(self) -> list[Entry]:
        return [entry for entry in processes() if entry.started >= self.started and carries(entry, self._token)]


class _ExitWatch:
    """Set an event when a process has ended, without waiting for it."""

    def __init__(self, pid: int, exited: asyncio.Event) -> None:
        self._exited = exited
        self._loop = asyncio.get_running_loop()
        self._handle = handle_of(pid)
        if self._handle is None:
            threading.Thread(target=self._wait, args=(pid,), name="trysquare-exit", daemon=True).start()
        else:
            self._loop.add_reader(self._handle, self._on_exit)

    def stop(self) -> None:
        if self._handle is not None:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = None

    def _on_exit(self) -> None:
        self._exited.set()
        self.stop()

    def _wait(self, pid: int) -> None:
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._exited.set)


class ProcessSupervisor:
    """Start and end child processes."""

    def __init__(self) -> None:
        self._token = secrets.token_hex(16)
        self._children: dict[int, ChildProcess] = {}
        self._started = 0
        self._reaper: subprocess.Popen[bytes] | None = None

    @property
    def children(self) -> tuple[ChildProcess, ...]:
        """Children that have not been ended."""
        return tuple(self._children.values())

    def start(self, command: Command) -> ChildProcess:
        """Start a child. Raises `OSError`."""
        self._ensure_reaper()
        self._started += 1
        child = _start(command, f"{self._token}.{self._started}.")
        self._children[child.pid] = child
        self._notify(f"+{child.pid} {child.started}\n")
        return child

    async def end(self, child: ChildProcess, *, grace: float = _GRACE) -> None:
        """End a child and its descendants."""
        await child.end(grace=grace)
        if self._children.pop(child.pid, None) is not None:
            self._notify(f"-{child.pid}\n")

    async def close(self, *, grace: float = _GRACE) -> None:
        """End all children concurrently."""
        await asyncio.gather(*(self.end(child, grace=grace) for child in self.children))
        if self._reaper is not None:
            await _dismiss(self._reaper)
            self._reaper = None

    def _ensure_reaper(self) -> None:
        if self._reaper is not None and self._reaper.poll() is None:
            return
        if self._reaper is not None and self._reaper.stdin is not None:
            self._reaper.stdin.close()
        self._reaper = _start_reaper(self._token)
        for child in self.children:
            self._notify(f"+{child.pid} {child.started}\n")

    def _notify(self, line: str) -> None:
        assert self._reaper is not None
        assert self._reaper.stdin is not None
        # A reaper that was killed is replaced at the next start.
        with suppress(BrokenPipeError):
            self._reaper.stdin.write(line.encode())


@asynccontextmanager
async def supervise() -> AsyncGenerator[ProcessSupervisor]:
    """Open a supervisor; all its children have ended when the context exits."""
    supervisor = ProcessSupervisor()
    try:
        yield supervisor
    finally:
        await shielded(supervisor.close())


def _start(command: Command, token: str) -> ChildProcess:
    process = subprocess.Popen(
        [command.program, *command.arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env={**command.environment, TOKEN_VARIABLE: token},
        cwd=command.folder,
        start_new_session=True,
    )
    child = ChildProcess(process, token)
    for descriptor in (child.stdin, child.stdout, child.stderr):
        os.set_blocking(descriptor, False)
    _widen(child.stdout)
    return child


def _widen(descriptor: int) -> None:
    """Enlarge a pipe where the system can, so that a large answer takes fewer reads."""
    with suppress(ImportError, OSError):
        from fcntl import F_SETPIPE_SZ, fcntl

        fcntl(descriptor, F_SETPIPE_SZ, _PIPE_BYTES)


def _start_reaper(token: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", reaper.__file__, token, str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        # Without a token, or the reaper of our own parent would end it.
        env={name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE},
        cwd="/",
        start_new_session=True,
    )


async def _dismiss(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(b"!\n")
    process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        await run_in_thread(lambda: process.wait(_REAPER_SECONDS))
