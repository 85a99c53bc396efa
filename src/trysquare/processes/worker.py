"""One-shot worker processes with a deadline and an output limit."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trysquare.core.concurrency import shielded
from trysquare.processes.supervisor import Command, ProcessSupervisor

MAX_OUTPUT = 64 * 1024 * 1024
_CHUNK = 256 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerResult:
    """Exit status and output of a process, each output up to the limit."""

    status: int | None
    output: bytes
    errors: bytes = b""


def run_worker(
    command: Sequence[str],
    *,
    seconds: float,
    given: bytes = b"",
    limit: int = MAX_OUTPUT,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    descriptors: Sequence[int] = (),
    grace: float = 0.0,
) -> WorkerResult:
    """Run a program to its end; blocks. Raises `OSError`, or `TimeoutError` after killing its group.

    With `grace`, the program is asked to end what it started, for so many seconds, before it is killed.
    """
    # Files instead of pipes: endless output does not fill the memory, and an orphaned child does not block the end.
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        stdin.write(given)
        stdin.seek(0)
        process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=folder,
            env=None if environment is None else dict(environment),
            pass_fds=descriptors,
            start_new_session=True,
        )
        try:
            status = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{command[0]} took longer than {seconds:g} seconds") from None
        finally:
            if process.returncode is None and grace:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=grace)
            if process.returncode is None:
                # It leads its own group and has not been waited for, so the number is still its own.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        stdout.seek(0)
        stderr.seek(0)
        return WorkerResult(status=status, output=stdout.read(limit), errors=stderr.read(limit))


async def run_supervised(supervisor: ProcessSupervisor, command: Command, *, given: bytes = b"") -> WorkerResult:
    """Run a program under the supervisor; it is gone when this returns or is cancelled."""
    child = supervisor.start(command)
    output = bytearray()
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_write(child.stdin, given))
            group.create_task(read_pipe(child.stderr, len))
            await read_pipe(child.stdout, output.extend)
            await child.exited.wait()
        return WorkerResult(status=child.exit_status(), output=bytes(output[:MAX_OUTPUT]))
    finally:
        await shielded(supervisor.end(child, grace=0.0))


async def read_pipe(descriptor: int, take: Callable[[bytes], object], *, limit: int = MAX_OUTPUT) -> bool:
    """Read a pipe to its end; False above the limit."""
    loop, total = asyncio.get_running_loop(), 0
    while True:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            await _ready(descriptor, loop.add_reader, loop.remove_reader)
            continue
        if not chunk:
            return True
        take(chunk)
        total += len(chunk)
        if total > limit:
            return False
        # Endless output must not block the loop.
        await asyncio.sleep(0)


async def _write(descriptor: int, given: bytes) -> None:
    loop, rest = asyncio.get_running_loop(), memoryview(given)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            await _ready(descriptor, loop.add_writer, loop.remove_writer)
        except BrokenPipeError:
            return


async def _ready(descriptor: int, add: Callable[..., object], remove: Callable[[int], object]) -> None:
    """Wait until a pipe can be read or written, as the loop's methods say."""
    ready = asyncio.Event()
    add(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        remove(descriptor)
