"""Runs of a child process with bounded output and a process limit."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from pathlib import Path

from trysquare.core.concurrency import cancel_all, shielded
from trysquare.core.threads import run_in_thread
from trysquare.processes.sandbox.job import Ended, Outcome
from trysquare.processes.sandbox.landlock_exec import descendants
from trysquare.processes.supervisor import ChildProcess, Command, ProcessSupervisor
from trysquare.processes.worker import read_pipe

HEAD = 12 * 1024
TAIL = 20 * 1024


class BoundedOutput:
    """Retains the head and the tail of an output."""

    def __init__(self, *, head: int = HEAD, tail: int = TAIL) -> None:
        self._head_size, self._tail_size = head, tail
        self._head, self._tail = bytearray(), bytearray()
        self.left_out = 0

    def add(self, chunk: bytes) -> None:
        space = self._head_size - len(self._head)
        self._head += chunk[:space]
        self._tail += chunk[space:]
        excess = max(0, len(self._tail) - self._tail_size)
        del self._tail[:excess]
        self.left_out += excess

    def text(self) -> str:
        if not self.left_out:
            return (self._head + self._tail).decode("utf-8", "replace")
        head, tail = (part.decode("utf-8", "replace") for part in (self._head, self._tail))
        return f"{head}\n… {self.left_out:,} bytes left out …\n{tail}"


_SECONDS = 0.01


async def exceeds_process_limit(pid: int, most: int) -> None:
    """Return once a process has more than `most` descendants."""
    before = _all_tasks()
    while True:
        await asyncio.sleep(_SECONDS)
        # The number of tasks of the whole system is cheap to read; descendants are counted only after it has grown.
        if _all_tasks() - before > most // 2:
            started = await run_in_thread(lambda: descendants(pid, zombies=True))
            if len(started) > most:
                return


def _all_tasks() -> int:
    with open("/proc/loadavg", "rb") as file:
        return int(file.read().split()[3].partition(b"/")[2])


_MOUNT = Path("/sys/fs/cgroup")
_TRIES = 50
_PAUSE = 0.02


class ProcessGroup:
    """cgroup that limits the processes of one command."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def entering(self, command: list[str]) -> list[str]:
        """Command line of a shell that enters the group and then execs the command."""
        enter = 'echo $$ >"$0" || exit 126; exec "$@"'
        return ["/bin/sh", "-c", enter, str(self._folder / "cgroup.procs"), *command]

    async def remove(self) -> None:
        """Remove the group; its last process may take a moment to exit."""
        for _ in range(_TRIES):
            if self.is_removed():
                return
            await asyncio.sleep(_PAUSE)

    def remove_blocking(self) -> None:
        """The same for callers in a thread."""
        for _ in range(_TRIES):
            if self.is_removed():
                return
            time.sleep(_PAUSE)

    def is_removed(self) -> bool:
        """Try to remove the group; False while a process of it is left."""
        try:
            self._folder.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True


def process_group(most: int, *, mount: Path = _MOUNT, own: Path = Path("/proc/self/cgroup")) -> ProcessGroup | None:
    """Create a group; None if the system does not allow it."""
    for parent in _parents(mount, own):
        folder = parent / f"trysquare-{os.getpid()}-{secrets.token_hex(4)}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            (folder / "pids.max").write_text(str(most), encoding="ascii")
        except OSError:
            folder.rmdir()
            continue
        return ProcessGroup(folder)
    return None


def _parents(mount: Path, own: Path) -> list[Path]:
    """Our own cgroups, in hierarchy v2 and in the pids controller of v1."""
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found: list[Path] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "" or "pids" in controllers.split(","):
            found.append(mount / ("pids" if controllers else "") / path.lstrip("/"))
    return found


async def run_to_end(
    supervisor: ProcessSupervisor,
    command: Command,
    *,
    seconds: float,
    grace: float = 0.0,
    most_processes: int | None = None,
) -> Outcome:
    """Run a command to its end. On return or cancellation none of its processes is left."""
    child = supervisor.start(command)
    output, errors = BoundedOutput(), BoundedOutput()
    try:
        try:
            async with asyncio.timeout(seconds):
                ended = await _read_both(child, output, errors, most_processes)
        except TimeoutError:
            ended = "deadline"
        status = child.exit_status() if ended == "exit" else None
    finally:
        await shielded(supervisor.end(child, grace=grace))
    return Outcome(status=status, ended=ended, output=output.text(), errors=errors.text(), left_out=output.left_out)


async def _read_both(
    child: ChildProcess, output: BoundedOutput, errors: BoundedOutput, most_processes: int | None
) -> Ended:
    reading = {asyncio.ensure_future(_read(child.stdout, output)), asyncio.ensure_future(_read(child.stderr, errors))}
    counting = () if most_processes is None else (asyncio.ensure_future(_count(child.pid, most_processes)),)
    try:
        while reading:
            done, _ = await asyncio.wait((*reading, *counting), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if (ended := task.result()) != "exit":
                    return ended
            reading -= done
    finally:
        await cancel_all((*reading, *counting))
    await child.exited.wait()
    return "exit"


async def _read(descriptor: int, output: BoundedOutput) -> Ended:
    return "exit" if await read_pipe(descriptor, output.add) else "output"


async def _count(pid: int, most: int) -> Ended:
    await exceeds_process_limit(pid, most)
    return "processes"
