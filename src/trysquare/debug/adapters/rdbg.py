"""Ruby debug adapter: rdbg, from the gem that comes with Ruby."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trysquare.debug.adapters import base
from trysquare.debug.dap.debugger import DapDebugger
from trysquare.debug.debugger import (
    Bound,
    BreakpointSpec,
    Capabilities,
    EvaluateFor,
    Event,
    Exited,
    Listener,
    RequestFailed,
    StepKind,
    Stopped,
    Variable,
)
from trysquare.debug.expressions import path_of
from trysquare.debug.sessions.launch import AttachSpec, LaunchedProgram, LaunchEnvironment, LaunchSpec

PACKAGE = base.AdapterPackage(
    name="rdbg", programs=("rdbg", "rdbg3.3", "rdbg3.2", "rdbg3.1"), install=base.debian("ruby")
)
_FAILED = re.compile(r"#<(\w+(?:::\w+)*(?:Error|Exception)): ?")
_UNKNOWN = ("#<NameError: undefined local variable", "#<NameError: uninitialized constant")
_OWN = re.compile(r"DEBUGGER: ")
_PORT = r"\(127\.0\.0\.1:(\d+)\)"
# The port is open before the debugger can serve it. Two threads print these lines, in either order.
_READY = r"wait for debugger connection"
_REMOVE = (
    "DEBUGGER__::SESSION.instance_variable_get(:@bps).delete_if {{ |_, bp| "
    "bp.is_a?(DEBUGGER__::LineBreakpoint) && bp.path == {file} && (bp.delete || true) }}.size"
)


async def launch(spec: LaunchSpec, environment: LaunchEnvironment) -> LaunchedProgram:
    rdbg, session = PACKAGE.program(), environment.session
    words = list(spec.target.words)
    if Path(words[0]).name.startswith("ruby"):
        words = words[1:]
    arguments = ["--open", "--host", "127.0.0.1", "--port", "0", "-c", "--", spec.target.python or "ruby", *words]
    child = base.start_child(rdbg, arguments, spec, environment, RUBY_DEBUG_NO_COLOR="1", RUBY_DEBUG_LOG_LEVEL="WARN")
    streams = base.OutputStreams(child, session, clean=base.without_lines(_OWN))
    debugger = RdbgDebugger(session.receive)
    async with base.end_on_error(child, environment, streams.close):
        try:
            await streams.wait_for(_READY, timeout=spec.timeout)
            port = int((await streams.wait_for(_PORT, timeout=spec.timeout))[1])
        except (EOFError, TimeoutError):
            raise base.not_started(session, "rdbg did not open its port", child) from None
        await asyncio.get_running_loop().create_connection(lambda: debugger.client, "127.0.0.1", port)
        await base.begin(debugger, {"localfs": True}, child, spec, session)
    session.watch(streams.report_exit())
    return LaunchedProgram(debugger=debugger, child=child, close=streams.close)


async def attach(spec: AttachSpec, environment: LaunchEnvironment) -> LaunchedProgram:
    if spec.pid is not None:
        instruction = "Start the program with `rdbg --open --port PORT`, and give that `port`."
        raise base.cannot_attach(environment.session.language, "a process id", instruction)
    debugger = RdbgDebugger(environment.session.receive, is_child=False)
    return await base.attach_over_socket(debugger, {"localfs": True}, spec)


class RdbgDebugger(DapDebugger):
    """rdbg without function breakpoints and stepping back, which it advertises but does not implement."""

    def __init__(self, listener: Listener, *, is_child: bool = True) -> None:
        super().__init__(self._quietly(listener), adapter_id="rdbg")
        self._is_child = is_child
        self._thread: int | None = None
        self._pausing = not is_child
        self._set: dict[str, tuple[BreakpointSpec, ...]] = {}

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, function_breakpoints=False, step_back=False)

    async def evaluate(self, expression: str, frame: int | None, purpose: EvaluateFor = "watch") -> Variable:
        # Its answer to an expression that fails is the error, as if that were the value.
        found = await super().evaluate(expression, frame, purpose)
        if (failed := _FAILED.match(found.value)) is not None and path_of(expression) is None:
            raise RequestFailed("evaluate", f"{failed[1]}: {found.value[failed.end() :].rstrip('>')}")
        if found.value.startswith(_UNKNOWN):
            raise RequestFailed("evaluate", found.value[2:].rstrip(">"))
        return found

    async def resume(self, thread: int) -> None:
        self._thread = None
        await super().resume(thread)

    async def step(self, kind: StepKind, thread: int) -> None:
        self._thread = None
        await super().step(kind, thread)

    async def pause(self, thread: int) -> None:
        self._pausing = True
        await super().pause(thread)

    async def set_breakpoints(self, file: str, specs: Sequence[BreakpointSpec]) -> list[Bound]:
        # setBreakpoints of rdbg only adds, so that all are removed first where one has to go.
        present = self._set.get(file, ())
        if any(spec not in specs for spec in present):
            await self._remove_all(file)
            present = ()
        added = [spec for spec in specs if spec not in present]
        if added:
            await super().set_breakpoints(file, added)
        self._set[file] = tuple(specs)
        return [Bound(verified=True, line=spec.line) for spec in specs]

    async def _remove_all(self, file: str) -> None:
        if self._thread is None:
            raise RequestFailed("setBreakpoints", "rdbg changes breakpoints only while the program is stopped.")
        frames, _ = await self.stack(self._thread, count=1)
        await self.evaluate(_REMOVE.format(file=json.dumps(file)), frames[0].id, "repl")

    def _quietly(self, listener: Listener) -> Listener:
        """A listener without the stop at the first line, where rdbg waits to be attached to."""

        def receive(event: Event) -> None:
            if isinstance(event, Stopped):
                if event.reason in ("entry", "pause") and not self._pausing:
                    return
                self._thread, self._pausing = event.thread, False
            if not (self._is_child and isinstance(event, Exited)):
                listener(event)

        return receive
