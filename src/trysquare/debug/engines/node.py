"""The engine for JavaScript and TypeScript: Node's own inspector."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.debug.cdp.debugger import NodeDebugger
from trysquare.debug.cdp.websocket import WebSocketError
from trysquare.debug.dap.client import ConnectionLost, RequestFailed
from trysquare.debug.debugger import Event, Exited, Listener, Output, OutputStream
from trysquare.debug.launching import Launched, LaunchSpec, Surroundings
from trysquare.debug.session import Session
from trysquare.processes.child import Child, Command
from trysquare.wire.pipes import Inlet

_LISTENING = re.compile(r"Debugger listening on (ws://\S+)")
_SCENERY = ("Debugger listening on", "For help, see:", "Debugger attached.", "Waiting for the debugger to disconnect")


class NodeEngine:
    """Starts programs under Node's inspector."""

    def __init__(self, language: str = "javascript") -> None:
        self.language = language

    async def launch(self, spec: LaunchSpec, session: Session, around: Surroundings) -> Launched:
        child = _start(spec, around)
        try:
            address = _Address(child, session)
            debugger = NodeDebugger(_without_exits(session.hear))
            await debugger.connect(await address.told(spec.timeout), timeout=spec.timeout)
            await debugger.set_exception_breakpoints(["uncaught"])
        except (ConnectionLost, RequestFailed, WebSocketError, TimeoutError, OSError) as error:
            status = child.exit_status()
            await around.nursery.end(child, grace=0.2)
            raise _not_started(session, status, str(error)) from None
        session.watch(_end_of(child, session))
        return Launched(debugger=debugger, child=child)


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


class _Address:
    """Hears what the program writes, and finds the inspector's address in it."""

    def __init__(self, child: Child, session: Session) -> None:
        self._session = session
        self._child = child
        self._address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._open = 2
        Inlet(child.stdout, self._hearing("stdout")).start()
        Inlet(child.stderr, self._hearing("stderr")).start()

    async def told(self, timeout: float) -> str:
        async with asyncio.timeout(timeout):
            return await self._address

    def _hearing(self, stream: OutputStream) -> Callable[[bytes], None]:
        def hear(chunk: bytes) -> None:
            text = chunk.decode(errors="replace")
            if stream == "stderr" and not self._address.done():
                self._look_for_address(text)
            shown = _without_scenery(text) if stream == "stderr" else text
            if shown:
                self._session.hear(Output(stream=stream, text=shown))
            if not chunk:
                self._ended()

        return hear

    def _look_for_address(self, text: str) -> None:
        if (found := _LISTENING.search(text)) is not None:
            self._address.set_result(found[1])

    def _ended(self) -> None:
        self._open -= 1
        if not self._open and not self._address.done():
            self._address.set_exception(ConnectionLost("The program ended before its debugger was there."))
            self._address.exception()


def _without_scenery(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(_SCENERY))


async def _end_of(child: Child, session: Session) -> None:
    await child.exited.wait()
    status = child.exit_status()
    if status is not None and status < 0:
        session.hear(Exited(signal=-status))
    else:
        session.hear(Exited(code=status))


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
