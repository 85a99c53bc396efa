"""The engine for JavaScript and TypeScript: Node's own inspector."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
from dataclasses import replace
from pathlib import Path

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.threads import run_in_thread
from trysquare.debug.cdp.debugger import NodeDebugger
from trysquare.debug.cdp.websocket import WebSocketError
from trysquare.debug.dap.client import ConnectionLost, RequestFailed
from trysquare.debug.debugger import Event, Exited, Listener
from trysquare.debug.engines.attaching import hear_end_of, not_reached, require_own_process, require_pid_or_port
from trysquare.debug.engines.streams import Streams, without_lines
from trysquare.debug.launching import AttachSpec, Launched, LaunchSpec, Surroundings
from trysquare.debug.session import Session
from trysquare.processes.child import Child, Command

_LISTENING = r"Debugger listening on (ws://\S+)"
_SCENERY = re.compile(
    "Debugger listening on|For help, see:|Debugger attached.|Waiting for the debugger to disconnect|Debugger ending on"
)
_USUAL_PORT = 9229
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
        return Launched(debugger=debugger, child=child, close=streams.close)

    async def attach(self, spec: AttachSpec, session: Session, around: Surroundings) -> Launched:
        require_pid_or_port(spec)
        if spec.pid is not None:
            require_own_process(spec.pid)
            # The signal makes Node listen where it was told to, or at its usual port.
            os.kill(spec.pid, signal.SIGUSR1)
        place = replace(spec, host="127.0.0.1", port=_USUAL_PORT) if spec.pid is not None else spec
        debugger = NodeDebugger(session.hear)
        try:
            await debugger.connect(await _address_at(place), timeout=spec.timeout, is_waiting=False)
        except _FAILURES as error:
            raise not_reached(place, str(error) or "no answer in time") from None
        if spec.pid is not None:
            session.watch(hear_end_of(spec.pid, session))
        return Launched(debugger=debugger, child=None)


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
