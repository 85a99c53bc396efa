"""The engine for Python: pydevd, out of debugpy's wheel, spoken to directly.

debugpy would put two more processes between us and the program. pydevd itself speaks the Debug Adapter Protocol when
it is told to: it connects to a port of ours, and so does every process that the program starts.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.debug.engines.adapter import start_child
from trysquare.debug.engines.attaching import hear_end_of, require_own_process, require_pid_or_port
from trysquare.debug.engines.debugpy import attach_remotely, launch_by_adapter
from trysquare.debug.engines.pydevd import Door, NotStarted
from trysquare.debug.engines.streams import Streams
from trysquare.debug.engines.tracebacks import TracebackCleaner
from trysquare.debug.launching import AttachSpec, Launched, LaunchSpec, Surroundings
from trysquare.debug.session import Session
from trysquare.debug.targets import Target
from trysquare.processes.child import Child

_INTERRUPT_AFTER = "8"
"""Seconds after which pydevd interrupts the evaluation of an expression."""


class PythonEngine:
    """Starts Python programs under pydevd, and attaches to running ones."""

    language = "python"

    async def launch(self, spec: LaunchSpec, session: Session, around: Surroundings) -> Launched:
        pydevd = pydevd_file()
        try:
            return await _launch_directly(pydevd, spec, session, around)
        except NotStarted as failure:
            if failure.was_connected:
                raise failure.told(session) from None
            # Another release of the debugger may not know our way of starting it; its adapter has a stable one.
            return await launch_by_adapter(spec, session, around, failure)

    async def attach(self, spec: AttachSpec, session: Session, around: Surroundings) -> Launched:
        require_pid_or_port(spec)
        if spec.pid is None:
            return await attach_remotely(spec, session, around)
        pydevd_file()
        require_own_process(spec.pid)
        return await _inject(spec, spec.pid, session, around)


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


async def _launch_directly(pydevd: str, spec: LaunchSpec, session: Session, around: Surroundings) -> Launched:
    door = Door(session, around, spec)
    port = await door.open()
    child: Child | None = None
    try:
        extended = replace(spec, env={**_SURROUNDINGS, **spec.env})
        child = start_child(spec.target.python, _arguments(pydevd, port, spec.target), extended, around)
        streams = Streams(child, session, clean=TracebackCleaner())
        debugger = await door.first(child)
    except BaseException:
        door.close()
        if child is not None:
            await around.nursery.end(child, grace=0.2)
        raise
    session.watch(streams.tell_end())

    def close() -> None:
        door.close()
        streams.close()

    return Launched(debugger=debugger, child=child, close=close)


_SURROUNDINGS = {
    "PYTHONUNBUFFERED": "1",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    "PYDEVD_INTERRUPT_THREAD_TIMEOUT": _INTERRUPT_AFTER,
}


def _arguments(pydevd: str, port: int, target: Target) -> list[str]:
    return [
        *("-X", "frozen_modules=off", pydevd, "--json-dap-http", "--client", "127.0.0.1", "--port", str(port)),
        *("--multiprocess", *_what_to_run(target)),
    ]


def _what_to_run(target: Target) -> list[str]:
    modules = {"pytest": ["pytest"], "unittest": ["unittest"], "module": []}
    if target.kind in modules:
        return ["--module", "--file", *modules[target.kind], *target.words]
    return ["--file", *target.words]


async def _inject(spec: AttachSpec, pid: int, session: Session, around: Surroundings) -> Launched:
    """Put pydevd into a process that was not started for it; it connects to our port like one that was."""
    door = Door(session, around, spec)
    port = await door.open()
    target = LaunchSpec(target=Target(kind="module", words=("debugpy",)), root=spec.root)
    arguments = ["-m", "debugpy", "--connect", f"127.0.0.1:{port}", "--pid", str(pid)]
    injector = start_child(sys.executable, arguments, target, around)
    injected = Session(session_id="injector", language="python", principal=session.principal, title="")
    streams = Streams(injector, injected)
    try:
        debugger = await door.first(injector)
    except NotStarted:
        door.close()
        raise _not_injected(pid, injected.output.tail()) from None
    finally:
        # It ends once the program is let go, or we are; ended before that, it would leave the program standing.
        around.keep(_injected(injector, streams, around))
    session.watch(hear_end_of(pid, session))
    return Launched(debugger=debugger, child=None, close=door.close)


async def _injected(injector: Child, streams: Streams, around: Surroundings) -> None:
    await injector.exited.wait()
    streams.close()
    await around.nursery.end(injector, grace=0.2)


def _not_injected(pid: int, told: str) -> ToolError:
    return ToolError(
        f"Process {pid} could not be attached to.",
        code=ErrorCode.SESSION_START_FAILED,
        instruction="It takes gdb, a Python program, and leave to trace it (kernel.yama.ptrace_scope). The output "
        "says more.",
        fields={"output": told[-1500:]},
    )
