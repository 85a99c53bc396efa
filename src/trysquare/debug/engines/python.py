"""The engine for Python: pydevd, out of debugpy's wheel, spoken to directly.

debugpy would put two more processes between us and the program. pydevd itself speaks the Debug Adapter Protocol when
it is told to: it connects to a port of ours, and so does every process that the program starts.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.debug.dap.client import ConnectionLost, RequestFailed
from trysquare.debug.dap.debugger import DapDebugger
from trysquare.debug.debugger import Event, Exited, Listener, Output, OutputStream, Stopped
from trysquare.debug.launching import Launched, LaunchSpec, Surroundings
from trysquare.debug.session import Session
from trysquare.debug.targets import Target
from trysquare.processes.child import Child, Command
from trysquare.wire.pipes import Inlet

_PROPERTIES: JsonObject = {
    "skipSuspendOnBreakpointException": ["BaseException"],
    "skipPrintBreakpointException": ["NameError"],
    "multiThreadsSingleNotification": True,
}


class PythonEngine:
    """Starts Python programs under pydevd."""

    language = "python"

    async def launch(self, spec: LaunchSpec, session: Session, around: Surroundings) -> Launched:
        pydevd = pydevd_file()
        door = _Door(session, around, spec)
        port = await door.open()
        child = _start(pydevd, port, spec, around)
        try:
            _listen_to(child, session)
            debugger = await door.first(child, spec.timeout)
        except BaseException:
            door.close()
            await around.nursery.end(child, grace=0.2)
            raise
        return Launched(debugger=debugger, child=child, close=door.close)


def pydevd_file() -> str:
    """The program that debugs, or an error that says how to get it."""
    found = importlib.util.find_spec("debugpy")
    if found is None or not found.submodule_search_locations:
        raise ToolError(
            "There is no debugger for Python here.",
            code=ErrorCode.ADAPTER_NOT_FOUND,
            instruction="Ask the person to run: pip install 'trysquare[debug]'",
        )
    return str(Path(next(iter(found.submodule_search_locations))) / "_vendored" / "pydevd" / "pydevd.py")


class _Door:
    """The port to which the program connects, and after it every process that it starts."""

    def __init__(self, session: Session, around: Surroundings, spec: LaunchSpec) -> None:
        self._session = session
        self._around = around
        self._spec = spec
        self._first: asyncio.Future[DapDebugger] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None
        self._welcoming: set[asyncio.Task[None]] = set()

    async def open(self) -> int:
        """Listen on a free port of this machine."""
        self._server = await asyncio.get_running_loop().create_server(self._connected, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    async def first(self, child: Child, timeout: float) -> DapDebugger:
        """The program's own debugger, ready for breakpoints."""
        ended = asyncio.ensure_future(child.exited.wait())
        try:
            await asyncio.wait({self._first, ended}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if not self._first.done():
                raise _not_started(self._session, child, timeout)
            debugger = self._first.result()
            await _prepare(debugger, self._spec)
            return debugger
        except (ConnectionLost, RequestFailed, TimeoutError) as error:
            raise _not_started(self._session, child, timeout, str(error)) from None
        finally:
            ended.cancel()

    def close(self) -> None:
        """Let nobody else in."""
        if self._server is not None:
            self._server.close()
        for task in self._welcoming:
            task.cancel()

    def _connected(self) -> asyncio.Protocol:
        if not self._first.done():
            debugger = DapDebugger(_without_exits(self._session.hear, lambda: debugger), adapter_id="python")
            self._first.set_result(debugger)
            return debugger.client
        return self._welcome_child()

    def _welcome_child(self) -> asyncio.Protocol:
        session = self._around.open_child(self._session, "a process that the program started")
        debugger = DapDebugger(_with_system_exits(session.hear, lambda: debugger), adapter_id="python")
        task = asyncio.ensure_future(self._begin_child(session, debugger))
        self._welcoming.add(task)
        task.add_done_callback(self._welcoming.discard)
        return debugger.client

    async def _begin_child(self, session: Session, debugger: DapDebugger) -> None:
        """Give a child process its parent's breakpoints and let it run."""
        try:
            await _prepare(debugger, self._spec)
            session.debugger = debugger
            for breakpoint in self._session.breakpoints:
                await session.add_breakpoint(breakpoint.spec)
            await debugger.start()
            session.has_started()
        except (ConnectionLost, RequestFailed, TimeoutError):
            # Short-lived children are often gone before they were asked; the session has heard of its end.
            return


async def _prepare(debugger: DapDebugger, spec: LaunchSpec) -> None:
    await debugger.initialize(timeout=spec.timeout)
    await debugger.client.request("setDebuggerProperty", _PROPERTIES)
    await debugger.begin("attach", {"justMyCode": spec.just_my_code, "redirectOutput": False, "subProcess": True})
    await debugger.set_exception_breakpoints(["uncaught"])


def _start(pydevd: str, port: int, spec: LaunchSpec, around: Surroundings) -> Child:
    target = spec.target
    command = Command(
        program=target.python,
        arguments=[
            *("-X", "frozen_modules=off", pydevd, "--json-dap-http", "--client", "127.0.0.1", "--port", str(port)),
            *("--multiprocess", *_what_to_run(target)),
        ],
        environment={**os.environ, "PYTHONUNBUFFERED": "1", **spec.env},
        folder=str(spec.root),
    )
    try:
        return around.nursery.start(command)
    except OSError as error:
        raise ToolError(
            f"`{target.python}` cannot be started: {error.strerror}.",
            code=ErrorCode.SESSION_START_FAILED,
            instruction="Check runtime_path and cwd.",
        ) from None


def _what_to_run(target: Target) -> list[str]:
    modules = {"pytest": ["pytest"], "unittest": ["unittest"], "module": []}
    if target.kind in modules:
        return ["--module", "--file", *modules[target.kind], *target.words]
    return ["--file", *target.words]


def _listen_to(child: Child, session: Session) -> None:
    """Hear what the program writes, and how it ends: only its process knows both for certain."""
    open_streams = {"stdout", "stderr"}

    def hearing(stream: OutputStream) -> Callable[[bytes], None]:
        def hear(chunk: bytes) -> None:
            if chunk:
                session.hear(Output(stream=stream, text=chunk.decode(errors="replace")))
            else:
                open_streams.discard(stream)

        return hear

    Inlet(child.stdout, hearing("stdout")).start()
    Inlet(child.stderr, hearing("stderr")).start()
    session.watch(_end_of(child, session))


async def _end_of(child: Child, session: Session) -> None:
    await child.exited.wait()
    status = child.exit_status()
    if status is not None and status < 0:
        session.hear(Exited(signal=-status))
    else:
        session.hear(Exited(code=status))


def _without_exits(listener: Listener, debugger: Callable[[], DapDebugger]) -> Listener:
    """Our own process tells how it ended; what the debugger says of it comes first and knows less."""
    heard = _with_system_exits(listener, debugger)

    def hear(event: Event) -> None:
        if not isinstance(event, Exited):
            heard(event)

    return hear


def _with_system_exits(listener: Listener, debugger: Callable[[], DapDebugger]) -> Listener:
    """`sys.exit(3)` is a way to end and no crash: a program that stops there goes on at once."""
    going: set[asyncio.Task[None]] = set()

    def hear(event: Event) -> None:
        if isinstance(event, Stopped) and event.reason == "exception" and event.text == "SystemExit":
            task = asyncio.ensure_future(debugger().resume(event.thread))
            going.add(task)
            task.add_done_callback(going.discard)
            return
        listener(event)

    return hear


def _not_started(session: Session, child: Child, timeout: float, reason: str = "") -> ToolError:
    status = child.exit_status()
    how = f"it ended with exit code {status}" if status is not None else f"it was not ready after {timeout:g} s"
    return ToolError(
        f"The program could not be started under the debugger: {how}." + (f" {reason}" if reason else ""),
        code=ErrorCode.SESSION_START_FAILED,
        instruction="The output says why. Check target, runtime_path and cwd.",
        fields={"output": session.output.tail()},
    )
