"""The engine for Ruby: rdbg, from the gem that comes with Ruby."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.debug.dap.client import RequestFailed
from trysquare.debug.dap.debugger import DapDebugger
from trysquare.debug.debugger import (
    Abilities,
    Bound,
    BreakpointSpec,
    EvaluateFor,
    Event,
    Exited,
    Listener,
    StepKind,
    Stopped,
    Variable,
)
from trysquare.debug.engines.adapter import begun, found_program, start_child
from trysquare.debug.engines.attaching import cannot_attach, connect, require_pid_or_port
from trysquare.debug.engines.streams import Streams, without_lines
from trysquare.debug.launching import AttachSpec, Launched, LaunchSpec, Surroundings
from trysquare.debug.reading import path_of
from trysquare.debug.session import Session

NAMES = ("rdbg", "rdbg3.3", "rdbg3.2", "rdbg3.1")
INSTALL = "apt-get install ruby"
_FAILED = re.compile(r"#<(\w+(?:::\w+)*(?:Error|Exception)): ?")
_UNKNOWN = ("#<NameError: undefined local variable", "#<NameError: uninitialized constant")
_OWN = re.compile(r"DEBUGGER: ")
_PORT = r"\(127\.0\.0\.1:(\d+)\)"
# The port is open before the debugger can serve it; only once it waits, it can. Two threads tell it, in either order.
_READY = r"wait for debugger connection"
_REMOVE = (
    "DEBUGGER__::SESSION.instance_variable_get(:@bps).delete_if {{ |_, bp| "
    "bp.is_a?(DEBUGGER__::LineBreakpoint) && bp.path == {file} && (bp.delete || true) }}.size"
)


class RdbgEngine:
    """Starts Ruby programs under rdbg, and attaches to them over a port of theirs."""

    language = "ruby"

    async def launch(self, spec: LaunchSpec, session: Session, around: Surroundings) -> Launched:
        rdbg = found_program(NAMES, hint=INSTALL)
        words = list(spec.target.words)
        if Path(words[0]).name.startswith("ruby"):
            words = words[1:]
        arguments = ["--open", "--host", "127.0.0.1", "--port", "0", "-c", "--", spec.target.python or "ruby", *words]
        child = start_child(rdbg, arguments, spec, around, RUBY_DEBUG_NO_COLOR="1", RUBY_DEBUG_LOG_LEVEL="WARN")
        streams = Streams(child, session, clean=without_lines(_OWN))
        debugger = RdbgDebugger(session.hear)
        try:
            port = await _port(streams, session, spec.timeout)
            await asyncio.get_running_loop().create_connection(lambda: debugger.client, "127.0.0.1", port)
            await begun(debugger, "launch", {"localfs": True}, session, child, spec)
        except BaseException:
            streams.close()
            await around.nursery.end(child, grace=0.2)
            raise
        session.watch(streams.tell_end())
        return Launched(debugger=debugger, child=child, close=streams.close)

    async def attach(self, spec: AttachSpec, session: Session, around: Surroundings) -> Launched:
        require_pid_or_port(spec)
        if spec.pid is not None:
            instead = "Start the program with `rdbg --open --port PORT`, and give that `port`."
            raise cannot_attach(self.language, "a process by its number", instead)
        debugger = RdbgDebugger(session.hear, is_ours=False)
        await connect(debugger, spec)
        try:
            await debugger.initialize(timeout=spec.timeout)
            await debugger.begin("attach", {"localfs": True}, timeout=spec.timeout)
        except BaseException:
            debugger.client.close()
            raise
        return Launched(debugger=debugger, child=None, close=debugger.client.close)


async def _port(streams: Streams, session: Session, timeout: float) -> int:
    try:
        await streams.wait_for(_READY, timeout=timeout)
        return int((await streams.wait_for(_PORT, timeout=timeout))[1])
    except (EOFError, TimeoutError):
        raise ToolError(
            "The program could not be started under rdbg.",
            code=ErrorCode.SESSION_START_FAILED,
            instruction="The output says why. Check target, runtime_path and cwd.",
            fields={"output": session.output.tail()},
        ) from None


class RdbgDebugger(DapDebugger):
    """rdbg, as what it is: it says that it can stop at functions and step back, but does neither."""

    def __init__(self, listener: Listener, *, is_ours: bool = True) -> None:
        super().__init__(self._quietly(listener), adapter_id="rdbg")
        self._is_ours = is_ours
        self._thread: int | None = None
        self._pausing = not is_ours
        self._set: dict[str, tuple[BreakpointSpec, ...]] = {}

    @property
    def abilities(self) -> Abilities:
        return replace(super().abilities, function_breakpoints=False, step_back=False)

    async def evaluate(self, expression: str, frame: int | None, purpose: EvaluateFor = "watch") -> Variable:
        # Its answer to an expression that fails is the error, as if that were the value.
        found = await super().evaluate(expression, frame, purpose)
        if (failed := _FAILED.match(found.value)) is not None and path_of(expression) is None:
            raise RequestFailed("evaluate", f"{failed[1]}: {found.value[failed.end() :].rstrip('>')}", {})
        if found.value.startswith(_UNKNOWN):
            raise RequestFailed("evaluate", found.value[2:].rstrip(">"), {})
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
        # Its own request only ever adds, so that what is there is taken out first where something has to go.
        there = self._set.get(file, ())
        if any(spec not in specs for spec in there):
            await self._remove_all(file)
            there = ()
        added = [spec for spec in specs if spec not in there]
        if added:
            await super().set_breakpoints(file, added)
        self._set[file] = tuple(specs)
        return [Bound(verified=True, line=spec.line) for spec in specs]

    async def _remove_all(self, file: str) -> None:
        if self._thread is None:
            raise RequestFailed("setBreakpoints", "rdbg changes breakpoints only while the program stands.", {})
        frames, _ = await self.stack(self._thread, count=1)
        await self.evaluate(_REMOVE.format(file=json.dumps(file)), frames[0].id, "repl")

    def _quietly(self, listener: Listener) -> Listener:
        """rdbg stops a program at its first line to be attached to; that is no stop that anybody asked for."""

        def hear(event: Event) -> None:
            if isinstance(event, Stopped):
                if event.reason in ("entry", "pause") and not self._pausing:
                    return
                self._thread, self._pausing = event.thread, False
            if not (self._is_ours and isinstance(event, Exited)):
                listener(event)

        return hear
