"""The engine for Go: delve, which speaks the Debug Adapter Protocol itself."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Literal

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.debug.dap.debugger import DapDebugger
from trysquare.debug.debugger import Event, Exited, Frame, Listener, Output
from trysquare.debug.engines.adapter import begun, found_program, start_child
from trysquare.debug.engines.attaching import connect, hear_end_of, require_own_process, require_pid_or_port
from trysquare.debug.engines.streams import Streams
from trysquare.debug.launching import AttachSpec, Launched, LaunchSpec, SessionSpec, Surroundings
from trysquare.debug.session import Session

_EXITED = re.compile(r"Process \d+ has exited with status (-?\d+)")
_SCENERY = ("Detaching", "Type 'dlv help' for list of commands.")
INSTALL = "apt-get install delve golang-go"


class DelveEngine:
    """Builds and starts Go programs under delve, which connects to a port of ours."""

    language = "go"

    async def launch(self, spec: LaunchSpec, session: Session, around: Surroundings) -> Launched:
        return await self._begun("launch", _wanted(spec), spec, session, around)

    async def attach(self, spec: AttachSpec, session: Session, around: Surroundings) -> Launched:
        require_pid_or_port(spec)
        if spec.pid is None:
            return await _attach_remotely(spec, session)
        require_own_process(spec.pid)
        wanted = {"mode": "local", "processId": spec.pid, "stopOnEntry": False}
        launched = await self._begun("attach", wanted, spec, session, around)
        session.watch(hear_end_of(spec.pid, session))
        return launched

    async def _begun(
        self,
        command: Literal["launch", "attach"],
        wanted: JsonObject,
        spec: SessionSpec,
        session: Session,
        around: Surroundings,
    ) -> Launched:
        delve = found_program(("dlv",), hint=INSTALL)
        heard = _with_exit_code(session.hear, lambda: debugger, kills=command == "launch")
        debugger = GoDebugger(heard, adapter_id="go", language="go")
        server = await asyncio.get_running_loop().create_server(lambda: debugger.client, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        child = start_child(delve, ["dap", f"--client-addr=127.0.0.1:{port}"], spec, around)
        streams = Streams(child, session)
        try:
            await self._connected(debugger, spec.timeout)
            await begun(debugger, command, wanted, session, child, spec)
        except BaseException:
            streams.close()
            await around.nursery.end(child, grace=0.2)
            raise
        finally:
            server.close()
        return Launched(debugger=debugger, child=child, close=streams.close)

    async def _connected(self, debugger: DapDebugger, timeout: float) -> None:
        try:
            await asyncio.wait_for(asyncio.shield(debugger.client.connected), timeout)
        except TimeoutError:
            raise ToolError("delve did not connect in time.", code=ErrorCode.SESSION_START_FAILED) from None


class GoDebugger(DapDebugger):
    """delve, which tells more frames than there are as long as it has not walked over all of them."""

    async def stack(self, thread: int, *, start: int = 0, count: int = 0) -> tuple[list[Frame], int]:
        frames, _ = await super().stack(thread)
        return frames[start : start + count] if count else frames[start:], len(frames)


async def _attach_remotely(spec: AttachSpec, session: Session) -> Launched:
    """Attach to `dlv --headless --accept-multiclient`, which has a program already."""
    debugger = GoDebugger(session.hear, adapter_id="go", language="go")
    await connect(debugger, spec)
    try:
        await debugger.initialize(timeout=spec.timeout)
        await debugger.begin("attach", {"mode": "remote", "stopOnEntry": False}, timeout=spec.timeout)
    except BaseException:
        debugger.client.close()
        raise
    return Launched(debugger=debugger, child=None, close=debugger.client.close)


def _with_exit_code(listener: Listener, debugger: Callable[[], DapDebugger], *, kills: bool) -> Listener:
    """delve tells how a program ended only in words, and only once it is told to let go."""

    def hear(event: Event) -> None:
        if isinstance(event, Exited):
            _, answer = debugger().client.send("disconnect", {"terminateDebuggee": kills})
            # It may be gone before it answers, which nobody waits for.
            answer.add_done_callback(lambda answer: answer.cancelled() or answer.exception())
        if isinstance(event, Output) and (found := _EXITED.search(event.text)) is not None:
            listener(Exited.with_status(int(found[1])))
        elif not (isinstance(event, Output) and event.text.strip() in _SCENERY):
            listener(event)

    return hear


def _wanted(spec: LaunchSpec) -> JsonObject:
    program, *arguments = spec.target.words
    named = (spec.root / program).resolve()
    is_source = named.is_dir() or named.suffix == ".go"
    is_test = program.endswith("_test.go")
    return {
        "mode": "test" if is_test else "debug" if is_source else "exec",
        "program": str(named.parent if is_test else named),
        "args": arguments,
        "cwd": str(spec.root),
        "env": dict(spec.env),
        "stopOnEntry": False,
        "outputMode": "remote",
    }
