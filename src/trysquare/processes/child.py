"""Child: one process that we have started, in a session of its own, from its start to its certain end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from trysquare.core.threads import run_in_thread
from trysquare.processes.guardian import Entry, carries, end_all, look_up, processes

_PIPE_BYTES = 1024 * 1024
_FINAL_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """What to start, and with which surroundings."""

    program: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    folder: str | None = None


class Child:
    """A process of ours. Our ends of its three pipes are non-blocking; whoever reads them leaves them open."""

    def __init__(self, process: subprocess.Popen[bytes], token: str) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self.pid = process.pid
        self.stdin, self.stdout, self.stderr = (
            process.stdin.fileno(),
            process.stdout.fileno(),
            process.stderr.fileno(),
        )
        self.started = entry.started if (entry := look_up(process.pid)) else 0
        self.exited = asyncio.Event()
        """Set once the process itself has ended; what it has started may live on until `end`."""
        self._process = process
        self._token = token
        self._ending: asyncio.Task[None] | None = None
        self._watch = _ExitWatch(process.pid, self.exited)

    def exit_status(self) -> int | None:
        """How it ended, as the shell counts (a signal is negative), or None while it runs."""
        if self._process.returncode is not None:
            return self._process.returncode
        try:
            told = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            # Somebody else has collected it, and the way it ended with it.
            return self._process.poll()
        if told is None:
            return None
        return told.si_status if told.si_code == os.CLD_EXITED else -told.si_status

    async def end(self, *, grace: float) -> None:
        """End it and all that it has started: by closing its input, by asking, by force. Returns when it is over."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end(grace))
        await asyncio.shield(self._ending)

    async def _end(self, grace: float) -> None:
        assert self._process.stdin
        assert self._process.stdout
        assert self._process.stderr
        with suppress(OSError):
            self._process.stdin.close()
        if not await self._exits_within(grace):
            self._signal_group(signal.SIGTERM)
            if not await self._exits_within(grace):
                self._signal_group(signal.SIGKILL)
                await self._exits_within(_FINAL_SECONDS)
        # The process has not been collected yet, so that its number, which is its group's, is still its own.
        self._signal_group(signal.SIGKILL)
        self._watch.stop()
        self._process.stdout.close()
        self._process.stderr.close()
        self._process.poll()
        await run_in_thread(self._end_strays)

    async def _exits_within(self, seconds: float) -> bool:
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

    def _end_strays(self) -> None:
        """What has left the group, but still carries our token."""
        end_all(self._strays, grace=0.0)

    def _strays(self) -> list[Entry]:
        return [entry for entry in processes() if entry.started >= self.started and carries(entry, self._token)]


def start(command: Command, token: str, variable: str) -> Child:
    """Start a process in a session of its own. Raises `OSError` where it cannot be."""
    process = subprocess.Popen(
        [command.program, *command.arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env={**command.environment, variable: token},
        cwd=command.folder,
        start_new_session=True,
    )
    child = Child(process, token)
    for descriptor in (child.stdin, child.stdout, child.stderr):
        os.set_blocking(descriptor, False)
    _widen(child.stdout)
    return child


def _widen(descriptor: int) -> None:
    """Let a pipe hold more, so that a large answer takes fewer turns. Systems that cannot, or will not, need not."""
    try:
        from fcntl import F_SETPIPE_SZ, fcntl

        fcntl(descriptor, F_SETPIPE_SZ, _PIPE_BYTES)
    except (ImportError, OSError):
        return


class _ExitWatch:
    """Sets an event when a process has ended, without collecting it."""

    def __init__(self, pid: int, exited: asyncio.Event) -> None:
        self._exited = exited
        self._loop = asyncio.get_running_loop()
        try:
            self._handle: int | None = os.pidfd_open(pid)
        except (OSError, AttributeError):
            self._handle = None
            threading.Thread(target=self._wait, args=(pid,), name="trysquare-exit", daemon=True).start()
        else:
            self._loop.add_reader(self._handle, self._tell)

    def stop(self) -> None:
        """Watch no more."""
        if self._handle is not None:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = None

    def _tell(self) -> None:
        self._exited.set()
        self.stop()

    def _wait(self, pid: int) -> None:
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._exited.set)
