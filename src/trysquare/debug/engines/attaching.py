"""What attaching has in common: whose process it is, where its debugger listens, and when it ends."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.debug.dap.debugger import DapDebugger
from trysquare.debug.debugger import Exited
from trysquare.debug.launching import AttachSpec
from trysquare.debug.session import Session
from trysquare.processes.guardian import look_up

_LISTENS = "0A"
"""The state of a socket that listens, as the kernel writes it."""


def require_pid_or_port(spec: AttachSpec) -> None:
    """There has to be one thing to attach to."""
    if (spec.pid is None) == (spec.port is None):
        raise InvalidArguments(
            "Attaching takes either `pid` or `port`.",
            code=ErrorCode.VALIDATION_MISSING_PARAM,
            instruction="Give the process's number, or the host and port where its debugger listens.",
        )


def require_own_process(pid: int) -> None:
    """A process of this user, and not ourselves. That of another user is refused, also to root."""
    if look_up(pid) is None:
        raise NotFound(
            f"There is no process {pid}.",
            code=ErrorCode.SESSION_START_FAILED,
            instruction="Look its number up again; it may have ended.",
        )
    if pid == os.getpid():
        raise InvalidArguments(f"Process {pid} is the debugger itself.", instruction="Attach to another process.")
    owner = os.stat(f"/proc/{pid}").st_uid
    if owner != os.geteuid():
        raise ToolError(
            f"Process {pid} belongs to another user ({owner}).",
            code=ErrorCode.EXECUTION_NOT_ALLOWED,
            instruction="Only processes of the user who runs the debugger can be attached to.",
        )


def cannot_attach(language: str, what: str, instead: str) -> ToolError:
    """A debugger that has no way to a running program, and what to do about it."""
    return ToolError(
        f"The debugger of {language} cannot attach to {what}.",
        code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
        instruction=instead,
    )


def listening_ports(pid: int) -> frozenset[int]:
    """The TCP ports at which a process of this machine listens."""
    sockets: set[str] = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # it was closed since
            sockets.add(os.readlink(descriptor))
    rows = Path(f"/proc/{pid}/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    fields = (row.split() for row in rows)
    return frozenset(
        int(each[1].rpartition(":")[2], 16)
        for each in fields
        if each[3] == _LISTENS and f"socket:[{each[9]}]" in sockets
    )


async def connect(debugger: DapDebugger, spec: AttachSpec) -> None:
    """Connect to a debugger that listens."""
    try:
        async with asyncio.timeout(spec.timeout):
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: debugger.client, spec.host, spec.port or 0)
    except (OSError, TimeoutError) as error:
        raise not_reached(spec, str(error) or "no answer in time") from None


def not_reached(spec: AttachSpec, reason: str) -> ToolError:
    """Nobody listens where a debugger was said to be."""
    return ToolError(
        f"There is no debugger at {spec.host}:{spec.port}: {reason}.",
        code=ErrorCode.SESSION_START_FAILED,
        instruction="Start the program so that its debugger listens there, and check host and port.",
    )


async def hear_end_of(pid: int, session: Session) -> None:
    """Tell a session when a process ends that is not ours to collect; its exit code is its parent's to know."""
    try:
        handle = os.pidfd_open(pid)
    except (OSError, AttributeError):
        return
    try:
        await _readable(handle)
    finally:
        os.close(handle)
    session.hear(Exited())


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
