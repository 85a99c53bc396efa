"""The engine for Go: delve, which speaks the Debug Adapter Protocol itself."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.debug.dap.debugger import DapDebugger
from trysquare.debug.debugger import Event, Exited, Listener, Output
from trysquare.debug.engines.adapter import begun, found_program, hear_streams, start_child
from trysquare.debug.launching import Launched, LaunchSpec, Surroundings
from trysquare.debug.session import Session

_EXITED = re.compile(r"Process \d+ has exited with status (-?\d+)")
_SCENERY = ("Detaching", "Type 'dlv help' for list of commands.")
INSTALL = "apt-get install delve golang-go"


class DelveEngine:
    """Builds and starts Go programs under delve, which connects to a port of ours."""

    language = "go"

    async def launch(self, spec: LaunchSpec, session: Session, around: Surroundings) -> Launched:
        delve = found_program(("dlv",), hint=INSTALL)
        debugger = DapDebugger(_with_exit_code(session.hear, lambda: debugger), adapter_id="go")
        server = await asyncio.get_running_loop().create_server(lambda: debugger.client, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        child = start_child(delve, ["dap", f"--client-addr=127.0.0.1:{port}"], spec, around)
        hear_streams(child, session)
        try:
            await self._connected(debugger, spec.timeout)
            await begun(debugger, "launch", _wanted(spec), session, child, spec)
        except BaseException:
            await around.nursery.end(child, grace=0.2)
            raise
        finally:
            server.close()
        return Launched(debugger=debugger, child=child)

    async def _connected(self, debugger: DapDebugger, timeout: float) -> None:
        try:
            await asyncio.wait_for(asyncio.shield(debugger.client.connected), timeout)
        except TimeoutError:
            raise ToolError("delve did not connect in time.", code=ErrorCode.SESSION_START_FAILED) from None


def _with_exit_code(listener: Listener, debugger: Callable[[], DapDebugger]) -> Listener:
    """delve tells how a program ended only in words, and only once it is told to let go."""

    def hear(event: Event) -> None:
        if isinstance(event, Exited):
            debugger().client.send("disconnect", {"terminateDebuggee": True})
        if isinstance(event, Output) and (found := _EXITED.search(event.text)) is not None:
            listener(Exited(code=int(found[1])))
        elif not (isinstance(event, Output) and event.text.strip() in _SCENERY):
            listener(event)

    return hear


def _wanted(spec: LaunchSpec) -> dict[str, object]:
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
