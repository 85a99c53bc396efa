"""Python debug adapter: pydevd from the debugpy wheel, over a socket; debugpy's own adapter as the fallback.

debugpy puts two more processes between the client and the program. pydevd implements the Debug Adapter Protocol itself:
it connects to a listening port, and so does every process that the program starts.
"""

from __future__ import annotations

import asyncio
import importlib.util
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from trysquare.core.concurrency import BackgroundTasks
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_object
from trysquare.debug.adapters import base
from trysquare.debug.dap.python import PythonDebugger
from trysquare.debug.debugger import DEBUGGER_ERRORS, Event, Listener, Stopped
from trysquare.debug.sessions.launch import (
    AttachSpec,
    LaunchedProgram,
    LaunchEnvironment,
    LaunchSpec,
    SessionSpec,
    Target,
)
from trysquare.debug.sessions.session import DebugSession
from trysquare.processes.supervisor import ChildProcess

_INSTALL = (sys.executable, "-m", "pip", "install")
PACKAGE = base.AdapterPackage(name="pydevd", install=(*_INSTALL, "debugpy"), versioned=(*_INSTALL, "debugpy==VERSION"))
_PYDEVD = Path("debugpy") / "_vendored" / "pydevd" / "pydevd.py"
_VARIABLES = {
    "PYTHONUNBUFFERED": "1",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    # Seconds after which pydevd interrupts the evaluation of an expression.
    "PYDEVD_INTERRUPT_THREAD_TIMEOUT": "8",
}
_PROPERTIES: JsonObject = {
    "skipSuspendOnBreakpointException": ["BaseException"],
    "skipPrintBreakpointException": [],
    "multiThreadsSingleNotification": True,
}


async def launch(spec: LaunchSpec, environment: LaunchEnvironment) -> LaunchedProgram:
    pydevd = _pydevd_file(environment)
    try:
        return await _launch_directly(pydevd, spec, environment)
    except NotStarted as failure:
        error = base.not_started(environment.session, failure)
        if failure.was_connected:
            raise error from None
        # Another release of pydevd may not take these arguments; debugpy's adapter has a stable interface.
        return await _launch_by_adapter(spec, environment, error)


async def attach(spec: AttachSpec, environment: LaunchEnvironment) -> LaunchedProgram:
    if spec.pid is None:
        return await _attach_to_port(spec, environment)
    _pydevd_file(environment)
    base.require_own_process(spec.pid)
    return await _inject(spec, spec.pid, environment)


def _pydevd_file(environment: LaunchEnvironment) -> str:
    chosen = environment.chosen.get(PACKAGE.name)
    if chosen is not None and "/" in chosen:
        file = Path(chosen) / _PYDEVD
        if file.is_file():
            return str(file)
        raise _not_chosen(f"there is no debugpy in {chosen}")
    if chosen is not None and (present := base.package_version("debugpy")) != chosen:
        raise _not_chosen(f"version {present or 'none'} is installed, not {chosen}")
    found = importlib.util.find_spec("debugpy")
    if found is None or not found.submodule_search_locations:
        raise base.not_installed("debugpy", "pip install 'trysquare[debug]'")
    return str(Path(next(iter(found.submodule_search_locations))).parent / _PYDEVD)


def _not_chosen(reason: str) -> ToolError:
    return ToolError(
        f"The debugger that the setting debug_adapters chooses cannot be used: {reason}.",
        code=ErrorCode.ADAPTER_NOT_FOUND,
        instruction="Ask the user to change the setting: pydevd=VERSION, or pydevd=DIRECTORY with debugpy in it.",
    )


async def _launch_directly(pydevd: str, spec: LaunchSpec, environment: LaunchEnvironment) -> LaunchedProgram:
    session = environment.session
    listener = PydevdListener(environment, spec)
    port = await listener.open()
    try:
        arguments = [
            *spec.target.options,
            "-X",
            "frozen_modules=off",
            pydevd,
            "--json-dap-http",
            "--client",
            "127.0.0.1",
        ]
        arguments += ["--port", str(port), "--multiprocess", *_program_arguments(spec.target)]
        extended = replace(spec, env={**_VARIABLES, **spec.env})
        child = base.start_child(spec.target.python, arguments, extended, environment)
        streams = base.OutputStreams(child, session, clean=TracebackCleaner())
        async with base.end_on_error(child, environment, lambda: None):
            debugger = await listener.first(child)
    except BaseException:
        listener.close()
        raise
    session.watch(streams.report_exit())
    send = base.open_input(child, spec, session)
    return LaunchedProgram(
        debugger=debugger, child=child, close=lambda: (listener.close(), streams.close()), send_input=send
    )


def _program_arguments(target: Target) -> list[str]:
    modules = {"pytest": ["pytest"], "unittest": ["unittest"], "module": []}
    if target.kind in modules:
        return ["--module", "--file", *modules[target.kind], *target.words]
    return ["--file", *target.words]


async def _inject(spec: AttachSpec, pid: int, environment: LaunchEnvironment) -> LaunchedProgram:
    """Inject pydevd into a running process; it then connects to the listening port."""
    session = environment.session
    listener = PydevdListener(environment, spec)
    port = await listener.open()
    target = LaunchSpec(target=Target(kind="module", words=("debugpy",)), root=spec.root)
    arguments = ["-m", "debugpy", "--connect", f"127.0.0.1:{port}", "--pid", str(pid)]
    injector = base.start_child(sys.executable, arguments, target, environment)
    injected = DebugSession(
        session_id="injector", language="python", principal=session.principal, title="", root=spec.root
    )
    streams = base.OutputStreams(injector, injected)
    try:
        debugger = await listener.first(injector)
    except NotStarted:
        listener.close()
        raise ToolError(
            f"Could not attach to process {pid}.",
            code=ErrorCode.SESSION_START_FAILED,
            instruction="Attaching requires gdb, a Python program, and permission to trace it "
            "(kernel.yama.ptrace_scope). Read `output` for the cause.",
            fields={"output": injected.output.tail()[-1500:]},
        ) from None
    finally:
        # It ends when the program is released, or with us; ended before that, it would leave the program stopped.
        environment.run_in_background(_end_injector(injector, streams, environment))
    session.watch(base.report_exit(pid, session))
    return LaunchedProgram(debugger=debugger, child=None, close=listener.close)


async def _end_injector(injector: ChildProcess, streams: base.OutputStreams, environment: LaunchEnvironment) -> None:
    await injector.exited.wait()
    streams.close()
    await environment.supervisor.end(injector, grace=0.2)


async def _attach_to_port(spec: AttachSpec, environment: LaunchEnvironment) -> LaunchedProgram:
    """Attach to a program that was started with `python -m debugpy --listen`."""
    debugger = _debugger(environment.session, environment)
    await base.connect(debugger, spec)
    close_children = _follow_children(environment, spec)
    connect = {"host": spec.host, "port": spec.port}
    arguments: JsonObject = {"connect": connect, "justMyCode": spec.just_my_code, "subProcess": True}
    try:
        await debugger.initialize(timeout=spec.timeout)
        await debugger.begin("attach", arguments, timeout=spec.timeout)
        debugger.load()
        await debugger.set_exception_breakpoints(["uncaught"])
    except DEBUGGER_ERRORS as error:
        debugger.client.close()
        raise ToolError(
            f"Could not attach to {spec.host}:{spec.port}: {error or 'timeout'}.",
            code=ErrorCode.SESSION_START_FAILED,
            instruction="Start the program with `python -m debugpy --listen HOST:PORT` and attach to that port.",
        ) from None
    return LaunchedProgram(debugger=debugger, child=None, close=lambda: (close_children(), debugger.client.close()))


async def _launch_by_adapter(spec: LaunchSpec, environment: LaunchEnvironment, failure: ToolError) -> LaunchedProgram:
    """Start a program through debugpy's adapter; where that fails too, the first failure is raised."""
    session = environment.session
    child = base.start_child(sys.executable, ["-m", "debugpy.adapter"], spec, environment)
    debugger = _debugger(session, environment)
    stop = base.connect_pipes(debugger, child, session)
    close_children = _follow_children(environment, spec)
    async with base.end_on_error(child, environment, stop):
        try:
            await base.begin(debugger, _adapter_arguments(spec), child, spec, session)
            debugger.load()
            await debugger.set_exception_breakpoints(["uncaught"])
        except (ToolError, *DEBUGGER_ERRORS):
            raise failure from None
    return LaunchedProgram(debugger=debugger, child=child, close=lambda: (close_children(), stop()))


def _adapter_arguments(spec: LaunchSpec) -> JsonObject:
    target = spec.target
    if target.kind in ("pytest", "unittest"):
        program: JsonObject = {"module": target.kind, "args": list(target.words)}
    else:
        first, *rest = target.words
        program = {"module" if target.kind == "module" else "program": first, "args": rest}
    return {
        "python": [target.python, *target.options], **program, "cwd": str(spec.root), "env": dict(spec.env),
        "stopOnEntry": spec.stop_on_entry, 
        "console": "internalConsole", "justMyCode": spec.just_my_code, "subProcess": True, "redirectOutput": True,
    }  # fmt: skip


def _follow_children(environment: LaunchEnvironment, spec: SessionSpec) -> Callable[[], None]:
    """Debug the child processes under debugpy's adapter, which reports a port for each; the result disconnects them."""
    debuggers: list[PythonDebugger] = []

    async def connect(session: DebugSession, arguments: JsonObject) -> PythonDebugger:
        address = as_object(arguments.get("connect"))
        host, port = str(address.get("host", "127.0.0.1")), int(address.get("port", 0))
        debugger = _debugger(session, environment)
        debuggers.append(debugger)
        await asyncio.get_running_loop().create_connection(lambda: debugger.client, host, port)
        await debugger.initialize(timeout=spec.timeout)
        await debugger.begin("attach", arguments)
        debugger.load()
        return debugger

    sessions = base.ChildSessions(environment, "process", connect)

    def close() -> None:
        sessions.close()
        for debugger in debuggers:
            debugger.client.close()

    return close


def _debugger(session: DebugSession, environment: LaunchEnvironment) -> PythonDebugger:
    return PythonDebugger(session.receive, shows_secrets=environment.shows_secrets)


class NotStarted(Exception):
    """The program did not connect to the debugger, or lost the connection."""

    def __init__(self, reason: str, *, was_connected: bool) -> None:
        super().__init__(reason)
        self.was_connected = was_connected


class PydevdListener:
    """Listening socket for pydevd, from the program and every process it starts."""

    def __init__(self, environment: LaunchEnvironment, spec: SessionSpec) -> None:
        self._environment = environment
        self._spec = spec
        self._first: asyncio.Future[PythonDebugger] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None
        self._children = base.ChildSessions(environment, "process")
        self._child_debuggers: set[PythonDebugger] = set()

    async def open(self) -> int:
        """Listen on a free local port and return it."""
        self._server = await asyncio.get_running_loop().create_server(self._on_connection, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    async def first(self, child: ChildProcess) -> PythonDebugger:
        """The debugger of the program, ready for breakpoints. Raises `NotStarted`."""
        ended = asyncio.ensure_future(child.exited.wait())
        try:
            await asyncio.wait({self._first, ended}, timeout=self._spec.timeout, return_when=asyncio.FIRST_COMPLETED)
            if not self._first.done():
                raise NotStarted(self._reason(child), was_connected=False)
            return await _prepared(self._first.result(), self._spec)
        except DEBUGGER_ERRORS as error:
            raise NotStarted(f"{self._reason(child)} {error}".strip(), was_connected=True) from None
        finally:
            ended.cancel()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self._children.close()
        for debugger in self._child_debuggers:
            debugger.client.close()
        if self._first.done():
            self._first.result().client.close()

    def _reason(self, child: ChildProcess) -> str:
        status = child.exit_status()
        return f"timeout ({self._spec.timeout:g} s)" if status is None else f"it ended with exit code {status}"

    def _on_connection(self) -> asyncio.Protocol:
        is_first = not self._first.done()
        session = self._environment.session if is_first else self._children.open()
        if session is None:
            return _RefusedConnection()
        listener = base.without_exits(session.receive) if is_first else session.receive
        secrets = self._environment.shows_secrets
        debugger = PythonDebugger(_without_system_exits(listener, lambda: debugger), shows_secrets=secrets)
        if is_first:
            self._first.set_result(debugger)
        else:
            self._child_debuggers.add(debugger)
            self._children.begin(session, _prepared(debugger, _of_child(self._spec)))
        return debugger.client


def _of_child(spec: SessionSpec) -> SessionSpec:
    return replace(spec, stop_on_entry=False) if isinstance(spec, LaunchSpec) else spec


class _RefusedConnection(asyncio.Protocol):
    """A connection that is closed at once, so that the process continues without a debugger."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


async def _prepared(debugger: PythonDebugger, spec: SessionSpec) -> PythonDebugger:
    """pydevd at the point where breakpoints can be set."""
    await debugger.initialize(timeout=spec.timeout)
    await debugger.client.request("setDebuggerProperty", _PROPERTIES)
    debugger.load()
    arguments: JsonObject = {"justMyCode": spec.just_my_code, "redirectOutput": False, "subProcess": True}
    if not (isinstance(spec, LaunchSpec) and spec.stop_on_entry):
        await debugger.begin("attach", arguments)
    else:
        # The first line of a test runner is not the user's.
        is_runner = spec.target.kind in ("pytest", "unittest")
        arguments |= {"stopOnEntry": True, "justMyCode": spec.just_my_code or is_runner}
        await debugger.begin("launch", arguments)
    await debugger.set_exception_breakpoints(["uncaught"])
    return debugger


def _without_system_exits(listener: Listener, debugger: Callable[[], PythonDebugger]) -> Listener:
    """A listener without stops at `sys.exit(3)`, which is not a crash: the program continues at once."""
    background = BackgroundTasks()

    async def resume(thread: int) -> None:
        with suppress(*DEBUGGER_ERRORS):  # it was about to end, and is gone
            await debugger().resume(thread)

    def receive(event: Event) -> None:
        # In a program that was attached to, more words come after the name.
        match event:
            case Stopped(reason="exception") if event.text.split()[:1] == ["SystemExit"]:
                background.start(resume(event.thread))
            case _:
                listener(event)

    return receive


_FRAME = '  File "'
_OWN = re.compile(r'  File "[^"]*[/\\]debugpy[/\\](?:_vendored[/\\]pydevd|server|launcher|adapter)[/\\]')
_WARNING = re.compile(
    r"\d+\.\d\ds - "
    r"(?:Debugger warning:|make the debugger miss|to python to disable frozen|Note: Debugging will proceed)"
)


class TracebackCleaner:
    """Filter for the debugger's own lines in a stream of text, whatever its chunks."""

    def __init__(self) -> None:
        self._rest = ""
        self._inside = False

    def __call__(self, text: str) -> str:
        """The part of a chunk that is the program's own. An empty chunk is the end of the stream."""
        *lines, last = (self._rest + text).split("\n")
        shown = "".join(f"{line}\n" for line in lines if not self._is_own(line))
        if text and last and self._may_be_own(last):
            self._rest = last
            return shown
        self._rest = ""
        return shown if not last or self._is_own(last) else shown + last

    def _may_be_own(self, start: str) -> bool:
        """Whether an incomplete line may become one of the debugger's."""
        return self._inside or start.startswith(_FRAME) or _FRAME.startswith(start) or start[0].isdigit()

    def _is_own(self, line: str) -> bool:
        if line.startswith(_FRAME):
            self._inside = _OWN.match(line) is not None
        elif not line.startswith("    "):
            self._inside = False
        return self._inside or _WARNING.match(line) is not None
