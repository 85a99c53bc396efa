"""Ruby debug adapter: rdbg, from the gem that comes with Ruby."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from trysquare.core.concurrency import BackgroundTasks
from trysquare.debug.adapters import base
from trysquare.debug.dap.debugger import DapDebugger
from trysquare.debug.debugger import (
    DEBUGGER_ERRORS,
    Bound,
    BreakpointSpec,
    Capabilities,
    EvaluateFor,
    Event,
    ExceptionInfo,
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
_RAISED = re.compile(r"#<([\w:]+)(?:: (.*))?>", re.DOTALL)
_PORT = r"\(127\.0\.0\.1:(\d+)\)"
# The port is open before the debugger can serve it. Two threads print these lines, in either order.
_READY = r"wait for debugger connection"
_REMOVE = (
    "DEBUGGER__::SESSION.instance_variable_get(:@bps).delete_if {{ |_, bp| "
    "bp.is_a?(DEBUGGER__::LineBreakpoint) && bp.path == {file} && (bp.delete || true) }}.size"
)


async def launch(spec: LaunchSpec, environment: LaunchEnvironment) -> LaunchedProgram:
    rdbg, session = PACKAGE.program(environment.chosen), environment.session
    words = list(spec.target.words)
    if Path(words[0]).name.startswith("ruby"):
        words = words[1:]
    arguments = ["--open", "--host", "127.0.0.1", "--port", "0", "-c", "--", spec.target.python or "ruby", *words]
    child = base.start_child(
        rdbg,
        arguments,
        spec,
        environment,
        RUBY_DEBUG_NO_COLOR="1",
        RUBY_DEBUG_LOG_LEVEL="WARN",
        RUBY_DEBUG_POSTMORTEM="true",
    )
    streams = base.OutputStreams(child, session, clean=base.without_lines(_OWN))
    debugger = RdbgDebugger(session.receive, stops_on_entry=spec.stop_on_entry)
    async with base.end_on_error(child, environment, streams.close):
        try:
            await streams.wait_for(_READY, timeout=spec.timeout)
            port = int((await streams.wait_for(_PORT, timeout=spec.timeout))[1])
        except (EOFError, TimeoutError):
            raise base.not_started(session, "rdbg did not open its port", child) from None
        await asyncio.get_running_loop().create_connection(lambda: debugger.client, "127.0.0.1", port)
        # Of a program that it launched, rdbg passes the first line; of one that it attached to, it stays there.
        command = "attach" if spec.stop_on_entry else "launch"
        await base.begin(debugger, {"localfs": True}, child, spec, session, command=command)
    session.watch(streams.report_exit())
    send = base.open_input(child, spec, session)
    return LaunchedProgram(debugger=debugger, child=child, close=streams.close, send_input=send)


async def attach(spec: AttachSpec, environment: LaunchEnvironment) -> LaunchedProgram:
    if spec.pid is not None:
        instruction = "Start the program with `rdbg --open --port PORT`, and give that `port`."
        raise base.cannot_attach(environment.session.language, "a process id", instruction)
    debugger = RdbgDebugger(environment.session.receive, is_child=False)
    return await base.attach_over_socket(debugger, {"localfs": True}, spec)


class RdbgDebugger(DapDebugger):
    """rdbg without function breakpoints and stepping back, which it advertises but does not implement."""

    def __init__(self, listener: Listener, *, is_child: bool = True, stops_on_entry: bool = False) -> None:
        super().__init__(self._quietly(listener), adapter_id="rdbg")
        self._is_child = is_child
        self._thread: int | None = None
        self._pausing = not is_child
        self._is_before_entry = stops_on_entry
        self._stops_at_uncaught = True
        self._uncaught: ExceptionInfo | None = None
        """The exception that ended the program, which rdbg then shows as it was when that was raised."""
        self._background = BackgroundTasks()
        self._set: dict[str, tuple[BreakpointSpec, ...]] = {}

    @property
    def capabilities(self) -> Capabilities:
        known = super().capabilities
        filters = ("uncaught", *known.exception_filters)
        return replace(
            known, function_breakpoints=False, step_back=False, exception_filters=filters, exception_info=True
        )

    async def set_exception_breakpoints(self, filters: Sequence[str]) -> None:
        self._stops_at_uncaught = "uncaught" in filters
        await super().set_exception_breakpoints([each for each in filters if each != "uncaught"])

    async def exception(self, thread: int) -> ExceptionInfo | None:
        return self._uncaught

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
            match event:
                case Stopped(reason="step"):
                    self._background.start(self._on_step(event, listener))
                case Stopped():
                    self._on_stop(event, listener)
                case Exited() if self._is_child:
                    return
                case _:
                    listener(event)

        return receive

    async def _on_step(self, event: Stopped, listener: Listener) -> None:
        """A step, or the end by an exception: rdbg then stops where it was raised and reports that as a step."""
        with suppress(*DEBUGGER_ERRORS):
            frames, _ = await self.stack(event.thread, count=1)
            names = await self.variables((await self.scopes(frames[0].id))[0].reference) if frames else []
            found = next((_RAISED.fullmatch(each.value) for each in names if each.name == "_raised"), None)
            if found is not None:
                self._uncaught = ExceptionInfo(type=found[1], message=found[2] or "")
                if found[1] == "SystemExit" or not self._stops_at_uncaught:
                    await self.resume(event.thread)
                    return
                event = replace(event, reason="exception", text=f"{found[1]}: {found[2] or ''}")
        self._on_stop(event, listener)

    def _on_stop(self, event: Stopped, listener: Listener) -> None:
        if event.reason in ("entry", "pause"):
            if not self._pausing and not self._is_before_entry:
                return
            event = replace(event, reason="entry", text="entry") if self._is_before_entry else event
        self._thread, self._pausing, self._is_before_entry = event.thread, False, False
        listener(event)
