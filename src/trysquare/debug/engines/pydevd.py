"""The door at which pydevd knocks: the program's own, and after it that of every process which the program starts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.debug.dap.client import ConnectionLost, RequestFailed
from trysquare.debug.dap.python import PythonDebugger
from trysquare.debug.debugger import Event, Exited, Listener, Stopped
from trysquare.debug.engines.children import begin_child
from trysquare.debug.launching import SessionSpec, Surroundings
from trysquare.debug.session import Session
from trysquare.processes.child import Child

_PROPERTIES: JsonObject = {
    "skipSuspendOnBreakpointException": ["BaseException"],
    "skipPrintBreakpointException": [],
    "multiThreadsSingleNotification": True,
}


class NotStarted(Exception):
    """The program did not come under the debugger."""

    def __init__(self, reason: str, *, was_connected: bool) -> None:
        super().__init__(reason)
        self.was_connected = was_connected

    def told(self, session: Session) -> ToolError:
        """The same for a caller, with what the program wrote."""
        return ToolError(
            f"The program could not be started under the debugger: {self}.",
            code=ErrorCode.SESSION_START_FAILED,
            instruction="The output says why. Check target, runtime_path and cwd.",
            fields={"output": session.output.tail()},
        )


class Door:
    """The port to which the program connects, and after it every process that it starts."""

    def __init__(self, session: Session, around: Surroundings, spec: SessionSpec) -> None:
        self._session = session
        self._around = around
        self._spec = spec
        self._first: asyncio.Future[PythonDebugger] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None
        self._children: set[PythonDebugger] = set()
        self._welcoming: set[asyncio.Task[None]] = set()

    async def open(self) -> int:
        """Listen on a free port of this machine."""
        self._server = await asyncio.get_running_loop().create_server(self._connected, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    async def first(self, child: Child) -> PythonDebugger:
        """The program's own debugger, ready for breakpoints; `NotStarted` where the child ends before that."""
        ended = asyncio.ensure_future(child.exited.wait())
        try:
            await asyncio.wait({self._first, ended}, timeout=self._spec.timeout, return_when=asyncio.FIRST_COMPLETED)
            if not self._first.done():
                raise NotStarted(self._why(child), was_connected=False)
            debugger = self._first.result()
            await prepare(debugger, self._spec)
            return debugger
        except (ConnectionLost, RequestFailed, TimeoutError) as error:
            raise NotStarted(f"{self._why(child)} {error}".strip(), was_connected=True) from None
        finally:
            ended.cancel()

    def close(self) -> None:
        """Let nobody else in, and let go of the children that are still there."""
        if self._server is not None:
            self._server.close()
        for task in self._welcoming:
            task.cancel()
        for debugger in self._children:
            debugger.client.close()
        if self._first.done():
            self._first.result().client.close()

    def _why(self, child: Child) -> str:
        status = child.exit_status()
        if status is None:
            return f"it was not ready after {self._spec.timeout:g} s"
        return f"it ended with exit code {status}"

    def _connected(self) -> asyncio.Protocol:
        if not self._first.done():
            debugger = PythonDebugger(
                _without_exits(self._session.hear, lambda: debugger), shows_secrets=self._around.shows_secrets
            )
            self._first.set_result(debugger)
            return debugger.client
        return self._welcome_child()

    def _welcome_child(self) -> asyncio.Protocol:
        session = self._around.open_child(self._session, f"a process that {self._session.id} started")
        if session is None:
            return _Refused()
        debugger = PythonDebugger(
            _with_system_exits(session.hear, lambda: debugger), shows_secrets=self._around.shows_secrets
        )
        self._children.add(debugger)
        task = asyncio.ensure_future(self._begin_child(session, debugger))
        self._welcoming.add(task)
        task.add_done_callback(self._welcoming.discard)
        return debugger.client

    async def _begin_child(self, session: Session, debugger: PythonDebugger) -> None:
        """Give a child process its parent's breakpoints and let it run."""
        try:
            await prepare(debugger, self._spec)
            await begin_child(session, debugger, self._session)
        except (ConnectionLost, RequestFailed, TimeoutError):
            # Short-lived children are often gone before they were asked; the session has heard of its end.
            return


class _Refused(asyncio.Protocol):
    """A connection that is closed at once, so that the process runs on without a debugger."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


async def prepare(debugger: PythonDebugger, spec: SessionSpec) -> None:
    """Bring pydevd to the point where breakpoints can be set."""
    await debugger.initialize(timeout=spec.timeout)
    await debugger.client.request("setDebuggerProperty", _PROPERTIES)
    debugger.load()
    await debugger.begin("attach", {"justMyCode": spec.just_my_code, "redirectOutput": False, "subProcess": True})
    await debugger.set_exception_breakpoints(["uncaught"])


def _without_exits(listener: Listener, debugger: Callable[[], PythonDebugger]) -> Listener:
    """The process tells how it ended; what the debugger says of it comes first and knows less."""
    heard = _with_system_exits(listener, debugger)

    def hear(event: Event) -> None:
        if not isinstance(event, Exited):
            heard(event)

    return hear


def _with_system_exits(listener: Listener, debugger: Callable[[], PythonDebugger]) -> Listener:
    """`sys.exit(3)` is a way to end and no crash: a program that stops there goes on at once."""
    going: set[asyncio.Task[None]] = set()

    async def go_on(thread: int) -> None:
        try:
            await debugger().resume(thread)
        except (ConnectionLost, RequestFailed, TimeoutError):
            # It was on its way out, and is gone.
            return

    def hear(event: Event) -> None:
        if isinstance(event, Stopped) and event.reason == "exception" and _is_system_exit(event):
            task = asyncio.ensure_future(go_on(event.thread))
            going.add(task)
            task.add_done_callback(going.discard)
            return
        listener(event)

    return hear


def _is_system_exit(stop: Stopped) -> bool:
    # In a program that was attached to, more words come after the name.
    return stop.text.split(maxsplit=1)[:1] == ["SystemExit"]
