"""The engine for JavaScript and TypeScript: Node's own inspector."""

from __future__ import annotations

import asyncio
import http.client
import json
import math
import os
import re
import shutil
import signal
import socket
import time
from dataclasses import replace
from pathlib import Path

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.threads import run_in_thread
from trysquare.debug.cdp.debugger import NodeDebugger
from trysquare.debug.cdp.websocket import WebSocketError
from trysquare.debug.dap.client import ConnectionLost, RequestFailed
from trysquare.debug.debugger import ChildStarted, Event, Exited, Listener, Lost
from trysquare.debug.engines.attaching import (
    cannot_attach,
    hear_end_of,
    listening_ports,
    not_reached,
    require_own_process,
    require_pid_or_port,
)
from trysquare.debug.engines.children import begin_child
from trysquare.debug.engines.streams import Streams, without_lines
from trysquare.debug.launching import AttachSpec, Launched, LaunchSpec, Surroundings
from trysquare.debug.session import Session
from trysquare.processes.child import Child, Command

_LISTENING = r"Debugger listening on (ws://\S+)"
_SCENERY = re.compile(
    "Debugger listening on|For help, see:|Debugger attached.|Waiting for the debugger to disconnect|Debugger ending on"
)
_USUAL_PORT = 9229
_OPENING = 20.0
"""Seconds in which a program has to open its inspector once it is asked to; one that is busy does it between."""
_FAILURES = (ConnectionLost, RequestFailed, WebSocketError, TimeoutError, OSError, EOFError)


class NodeEngine:
    """Starts programs under Node's inspector."""

    def __init__(self, language: str = "javascript") -> None:
        self.language = language

    async def launch(self, spec: LaunchSpec, session: Session, around: Surroundings) -> Launched:
        child = _start(spec, around)
        streams = Streams(child, session, clean=without_lines(_SCENERY))
        debugger = NodeDebugger(_without_exits(session.hear))
        try:
            address = (await streams.wait_for(_LISTENING, timeout=spec.timeout))[1]
            workers = _Workers(debugger, session, around)
            await debugger.connect(address, timeout=spec.timeout)
            await debugger.set_exception_breakpoints(["uncaught"])
        except BaseException as error:
            status = child.exit_status()
            streams.close()
            await around.nursery.end(child, grace=0.2)
            if isinstance(error, _FAILURES):
                raise _not_started(session, status, str(error) or "its debugger did not answer") from None
            raise
        session.watch(streams.tell_end())

        def close() -> None:
            workers.close()
            streams.close()

        return Launched(debugger=debugger, child=child, close=close)

    async def attach(self, spec: AttachSpec, session: Session, around: Surroundings) -> Launched:
        require_pid_or_port(spec)
        place = spec if spec.pid is None else replace(spec, port=await _opened_port(spec.pid, spec.timeout))
        debugger = NodeDebugger(session.hear, closes_inspector=spec.pid is not None)
        workers = _Workers(debugger, session, around)
        try:
            await debugger.connect(await _address_at(place), timeout=spec.timeout, is_waiting=False)
        except _FAILURES as error:
            raise not_reached(place, str(error) or "no answer in time") from None
        if spec.pid is not None:
            session.watch(hear_end_of(spec.pid, session))
        return Launched(debugger=debugger, child=None, close=workers.close)


class _Workers:
    """The threads that a program starts, each of which becomes a session."""

    def __init__(self, debugger: NodeDebugger, session: Session, around: Surroundings) -> None:
        self._debugger = debugger
        self._session = session
        self._around = around
        self._tasks: set[asyncio.Task[None]] = set()
        session.on_child = self._hear

    def close(self) -> None:
        """Welcome no more."""
        for task in self._tasks:
            task.cancel()

    def _hear(self, event: ChildStarted) -> None:
        session = self._around.open_child(self._session, f"a thread that {self._session.id} started")
        if session is not None:
            task = asyncio.ensure_future(self._welcome(session, str(event.arguments["sessionId"])))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _welcome(self, session: Session, name: str) -> None:
        try:
            debugger = await self._debugger.worker(name, session.hear)
            await debugger.set_exception_breakpoints(["uncaught"])
            await begin_child(session, debugger, self._session)
        except (ConnectionLost, RequestFailed, TimeoutError) as error:
            session.hear(Lost(reason=str(error) or "no answer in time"))


async def _opened_port(pid: int, timeout: float) -> int:
    """Have a process open its inspector, and find where it listens: at Node's usual port there may be another one."""
    require_own_process(pid)
    if Path(os.readlink(f"/proc/{pid}/exe")).name not in ("node", "nodejs"):
        raise cannot_attach(
            "javascript", f"process {pid}, which is no Node", "Give the `pid` of the Node process itself."
        )
    before = listening_ports(pid)
    is_taken = _is_taken(_USUAL_PORT)
    os.kill(pid, signal.SIGUSR1)
    patience = min(timeout, _OPENING)
    again_at = time.monotonic() + patience / 2
    try:
        async with asyncio.timeout(patience):
            while True:
                # One that was open before is open still; a new one is the inspector's for certain.
                for port in sorted(listening_ports(pid), key=lambda port: port in before):
                    if await run_in_thread(lambda port=port: _is_inspector(port)):
                        return port
                is_free_now = is_taken and not _is_taken(_USUAL_PORT)
                is_late = time.monotonic() > again_at
                if is_free_now or is_late:
                    # Node tries its port once a signal, and whoever had it may have been about to go.
                    is_taken = is_taken and not is_free_now
                    again_at = math.inf if is_late else again_at
                    os.kill(pid, signal.SIGUSR1)
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise ToolError(
            f"Process {pid} did not open its inspector.",
            code=ErrorCode.SESSION_START_FAILED,
            instruction=f"Another program may have Node's usual port {_USUAL_PORT}: let go of that one first, or start "
            "this one with `node --inspect=127.0.0.1:PORT` and give that `port`.",
        ) from None


def _is_taken(port: int) -> bool:
    with socket.socket() as tried:
        tried.settimeout(1.0)
        return tried.connect_ex(("127.0.0.1", port)) == 0


def _is_inspector(port: int) -> bool:
    try:
        return b"webSocketDebuggerUrl" in _told_at(f"http://127.0.0.1:{port}/json/list")
    except (OSError, http.client.HTTPException):
        return False


async def _address_at(spec: AttachSpec) -> str:
    """The address of the inspector's socket, which the inspector tells over HTTP; it may take a moment to listen."""
    async with asyncio.timeout(spec.timeout):
        while True:
            try:
                told = await run_in_thread(lambda: _told_at(f"http://{spec.host}:{spec.port}/json/list"))
                return str(json.loads(told)[0]["webSocketDebuggerUrl"])
            except ConnectionError:
                await asyncio.sleep(0.05)


def _told_at(address: str) -> bytes:
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return answer.read()
    except urllib.error.URLError as error:
        raise ConnectionError(str(error.reason)) from None


def node_program(runtime: str | None = None) -> str:
    """The Node to use, or an error that says how to get one."""
    found = runtime or shutil.which("node")
    if found is not None:
        return found
    raise ToolError(
        "There is no Node here.",
        code=ErrorCode.ADAPTER_NOT_FOUND,
        instruction="Ask the person to install it, such as with: apt-get install nodejs",
    )


def _start(spec: LaunchSpec, around: Surroundings) -> Child:
    words = list(spec.target.words)
    runtime = spec.target.python or None
    if Path(words[0]).name in ("node", "nodejs"):
        runtime = runtime or (words[0] if "/" in words[0] else None)
        words = words[1:]
    program = node_program(runtime)
    command = Command(
        program=program,
        arguments=["--inspect-brk=127.0.0.1:0", "--enable-source-maps", *words],
        environment={**os.environ, **spec.env},
        folder=str(spec.root),
    )
    try:
        return around.nursery.start(command)
    except OSError as error:
        raise ToolError(
            f"`{program}` cannot be started: {error.strerror}.",
            code=ErrorCode.SESSION_START_FAILED,
            instruction="Check runtime_path and cwd.",
        ) from None


def _without_exits(listener: Listener) -> Listener:
    """The process tells how it ended; the inspector knows only that the program is over."""

    def hear(event: Event) -> None:
        if not isinstance(event, Exited):
            listener(event)

    return hear


def _not_started(session: Session, status: int | None, reason: str) -> ToolError:
    how = f"it ended with exit code {status}" if status is not None else reason
    return ToolError(
        f"The program could not be started under Node's inspector: {how}.",
        code=ErrorCode.SESSION_START_FAILED,
        instruction="The output says why. Check target, runtime_path and cwd.",
        fields={"output": session.output.tail()},
    )
