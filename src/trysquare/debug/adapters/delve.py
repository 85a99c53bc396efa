"""Go debug adapter: delve, which implements the Debug Adapter Protocol itself."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace

from trysquare.core.json import JsonObject
from trysquare.debug.adapters import base
from trysquare.debug.dap.debugger import DapDebugger
from trysquare.debug.debugger import Event, Exited, Frame, Listener, Output, Variable
from trysquare.debug.expressions import ExpressionRules
from trysquare.debug.sessions.launch import AttachSpec, LaunchedProgram, LaunchEnvironment, LaunchSpec, SessionSpec

_EXITED = re.compile(r"Process \d+ has exited with status (-?\d+)")
_SLICE = re.compile(r"(?:(?:\[\]|map\[)[\w./*\[\] {}]+ )?len: (?P<count>\d+)(?:, cap: \d+)?, (?P<items>\[|nil)")
_OWN_OUTPUT = ("Detaching", "Type 'dlv help' for list of commands.")
PACKAGE = base.AdapterPackage(
    name="delve", programs=("dlv",), install=base.debian("delve golang-go"), version=("version",)
)
EXPRESSIONS = (ExpressionRules(calls=frozenset({"len", "cap"})),)


async def launch(spec: LaunchSpec, environment: LaunchEnvironment) -> LaunchedProgram:
    return await _begin(_launch_arguments(spec), spec, environment)


async def attach(spec: AttachSpec, environment: LaunchEnvironment) -> LaunchedProgram:
    session = environment.session
    if spec.pid is None:
        # `dlv --headless --accept-multiclient`, which has a program already.
        debugger = GoDebugger(session.receive)
        return await base.attach_over_socket(debugger, {"mode": "remote", "stopOnEntry": False}, spec)
    base.require_own_process(spec.pid)
    arguments = {"mode": "local", "processId": spec.pid, "stopOnEntry": False}
    launched = await _begin(arguments, spec, environment)
    session.watch(base.report_exit(spec.pid, session))
    return launched


class GoDebugger(DapDebugger):
    """delve, which overstates the stack depth until it has walked all frames."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener, adapter_id="go", expressions=EXPRESSIONS)

    async def stack(self, thread: int, *, start: int = 0, count: int = 0) -> tuple[list[Frame], int]:
        frames, _ = await super().stack(thread)
        return frames[start : start + count] if count else frames[start:], len(frames)

    async def readable(self, variable: Variable, frame: int | None = None) -> Variable:
        """The value without its type, unless it is a pointer, and without the capacity of a slice."""
        value = variable.value
        is_pointer = (variable.type or "").startswith("*")
        if variable.type and not is_pointer and value.startswith(f"{variable.type} "):
            value = value[len(variable.type) + 1 :]
        return replace(variable, value=_SLICE.sub(_without_capacity, value))


def _without_capacity(found: re.Match[str]) -> str:
    return "nil" if found["items"] == "nil" else "["


async def _begin(arguments: JsonObject, spec: SessionSpec, environment: LaunchEnvironment) -> LaunchedProgram:
    delve, session = PACKAGE.program(environment.chosen), environment.session
    kills = isinstance(spec, LaunchSpec)
    debugger = GoDebugger(_with_exit_code(session.receive, lambda: debugger, kills=kills))
    server = await asyncio.get_running_loop().create_server(lambda: debugger.client, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        child = base.start_child(delve, ["dap", f"--client-addr=127.0.0.1:{port}"], spec, environment)
        streams = base.OutputStreams(child, session)
        async with base.end_on_error(child, environment, streams.close):
            await base.begin(debugger, arguments, child, spec, session)
            if isinstance(spec, LaunchSpec) and spec.stop_on_entry:
                await debugger.set_own_function("main.main", "entry")
    finally:
        server.close()
    send = base.open_input(child, spec, session) if isinstance(spec, LaunchSpec) else None
    return LaunchedProgram(debugger=debugger, child=child, close=streams.close, send_input=send)


def _with_exit_code(listener: Listener, debugger: Callable[[], DapDebugger], *, kills: bool) -> Listener:
    """A listener with exit codes: delve reports them only as text, and only when it is disconnected."""

    def receive(event: Event) -> None:
        if isinstance(event, Exited):
            _, answer = debugger().client.send("disconnect", {"terminateDebuggee": kills})
            # It may be gone before it answers; nothing awaits the answer.
            answer.add_done_callback(lambda answer: answer.cancelled() or answer.exception())
        if isinstance(event, Output) and (found := _EXITED.search(event.text)) is not None:
            listener(Exited.with_status(int(found[1])))
        elif not (isinstance(event, Output) and event.text.strip() in _OWN_OUTPUT):
            listener(event)

    return receive


def _launch_arguments(spec: LaunchSpec) -> JsonObject:
    program, *arguments = spec.target.words
    path = (spec.root / program).resolve()
    is_source = path.is_dir() or path.suffix == ".go"
    is_test = program.endswith("_test.go")
    return {
        "mode": "test" if is_test else "debug" if is_source else "exec",
        "program": str(path.parent if is_test else path),
        "args": arguments,
        "cwd": str(spec.root),
        "env": dict(spec.env),
        "stopOnEntry": False,
        "outputMode": "remote",
    }
