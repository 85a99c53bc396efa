"""Running: a command from its start to its certain end, with its output read and bounded meanwhile."""

from __future__ import annotations

import os
from dataclasses import dataclass

import anyio
import anyio.lowlevel

from trysquare.processes.child import Child, Command
from trysquare.processes.nursery import Nursery
from trysquare.workbench.shell.bounded_output import BoundedOutput
from trysquare.workbench.shell.census import outgrown
from trysquare.workbench.shell.job import Ended

MOST_OUTPUT = 64 * 1024 * 1024
"""Bytes after which a command is ended: nobody reads them, and it would go on forever."""
_CHUNK = 256 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """A command that is over, with all that it started."""

    status: int | None
    ended: Ended
    output: BoundedOutput
    errors: BoundedOutput


async def run_to_end(
    nursery: Nursery, command: Command, *, seconds: float, grace: float = 0.0, most_processes: int | None = None
) -> Ran:
    """Run a command. When this returns, or is cancelled, nothing of it is left.

    `most_processes` has its processes counted here, where nothing else limits them.
    """
    child = nursery.start(command)
    output, errors = BoundedOutput(), BoundedOutput()
    ended: Ended = "by itself"
    try:
        with anyio.move_on_after(seconds) as clock:
            ended = await _read_both(child, output, errors, most_processes)
        if clock.cancelled_caught:
            ended = "deadline"
        status = child.exit_status() if ended == "by itself" else None
    finally:
        with anyio.CancelScope(shield=True):
            await nursery.end(child, grace=grace)
    return Ran(status=status, ended=ended, output=output, errors=errors)


@dataclass(frozen=True, kw_only=True, slots=True)
class Collected:
    """A program of our own that is over, with all that it wrote."""

    status: int | None
    output: bytes


async def collect(nursery: Nursery, command: Command, *, given: bytes = b"") -> Collected:
    """Run a program whose output is wanted whole, and give it something to read first."""
    child = nursery.start(command)
    output = BoundedOutput(head=MOST_OUTPUT, tail=0)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_write, child.stdin, given)
            group.start_soon(_read_to_end, child.stderr, BoundedOutput())
            await _read_to_end(child.stdout, output)
            await child.exited.wait()
        return Collected(status=child.exit_status(), output=output.head())
    finally:
        with anyio.CancelScope(shield=True):
            await nursery.end(child, grace=0.0)


async def _write(descriptor: int, given: bytes) -> None:
    rest = memoryview(given)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            await anyio.wait_writable(descriptor)
        except BrokenPipeError:
            return


async def _read_both(child: Child, output: BoundedOutput, errors: BoundedOutput, most_processes: int | None) -> Ended:
    ended: Ended = "by itself"
    reading = 2

    async def read(descriptor: int, kept: BoundedOutput) -> None:
        nonlocal ended, reading
        whole = await _read_to_end(descriptor, kept)
        reading -= 1
        if not whole:
            ended = "output"
        if not whole or reading == 0:
            group.cancel_scope.cancel()

    async def count(most: int) -> None:
        nonlocal ended
        await outgrown(child.pid, most)
        ended = "processes"
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(read, child.stdout, output)
        group.start_soon(read, child.stderr, errors)
        if most_processes is not None:
            group.start_soon(count, most_processes)
    if ended == "by itself":
        await child.exited.wait()
    return ended


async def _read_to_end(descriptor: int, kept: BoundedOutput) -> bool:
    """Read a pipe to its end. False where there is more than anybody should read."""
    while True:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            await anyio.wait_readable(descriptor)
            continue
        if not chunk:
            return True
        kept.add(chunk)
        if kept.total > MOST_OUTPUT:
            return False
        # A program that writes without end must not keep the loop to itself.
        await anyio.lowlevel.checkpoint()
