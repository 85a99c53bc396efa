"""debugpy's own adapter: for programs whose debugger listens already, and where pydevd cannot be started directly."""

from __future__ import annotations

import asyncio
import sys
from typing import Any, cast

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.debug.dap.client import ConnectionLost, RequestFailed
from trysquare.debug.dap.python import PythonDebugger
from trysquare.debug.debugger import ChildStarted
from trysquare.debug.engines.adapter import begun, speak_over_pipes, start_child
from trysquare.debug.engines.attaching import connect
from trysquare.debug.engines.children import begin_child
from trysquare.debug.engines.pydevd import NotStarted
from trysquare.debug.launching import AttachSpec, Launched, LaunchSpec, SessionSpec, Surroundings
from trysquare.debug.session import Session
from trysquare.debug.targets import Target


async def attach_remotely(spec: AttachSpec, session: Session, around: Surroundings) -> Launched:
    """Attach to a program that was started with `python -m debugpy --listen`."""
    debugger = PythonDebugger(session.hear, shows_secrets=around.shows_secrets)
    await connect(debugger, spec)
    children = _Children(session, around, spec)
    wanted: JsonObject = {
        "connect": {"host": spec.host, "port": spec.port},
        "justMyCode": spec.just_my_code,
        "subProcess": True,
    }
    try:
        await debugger.initialize(timeout=spec.timeout)
        await debugger.begin("attach", wanted, timeout=spec.timeout)
        debugger.load()
        await debugger.set_exception_breakpoints(["uncaught"])
    except (RequestFailed, ConnectionLost, TimeoutError) as error:
        debugger.client.close()
        raise ToolError(
            f"{spec.host}:{spec.port} did not let us attach: {error or 'no answer in time'}.",
            code=ErrorCode.SESSION_START_FAILED,
            instruction="Start the program with `python -m debugpy --listen HOST:PORT` and attach to that port.",
        ) from None

    def close() -> None:
        children.close()
        debugger.client.close()

    return Launched(debugger=debugger, child=None, close=close)


async def launch_by_adapter(spec: LaunchSpec, session: Session, around: Surroundings, failure: NotStarted) -> Launched:
    """Start a program through the adapter. Where that fails too, it is the first failure that counts."""
    child = start_child(sys.executable, ["-m", "debugpy.adapter"], spec, around)
    debugger = PythonDebugger(session.hear, shows_secrets=around.shows_secrets)
    stop_hearing = speak_over_pipes(debugger, child, session)
    children = _Children(session, around, spec)
    try:
        await begun(debugger, "launch", _wanted(spec), session, child, spec)
        debugger.load()
        await debugger.set_exception_breakpoints(["uncaught"])
    except BaseException as error:
        stop_hearing()
        await around.nursery.end(child, grace=0.2)
        if isinstance(error, ToolError | RequestFailed | ConnectionLost | TimeoutError):
            raise failure.told(session) from None
        raise

    def close() -> None:
        children.close()
        stop_hearing()

    return Launched(debugger=debugger, child=child, close=close)


def _wanted(spec: LaunchSpec) -> JsonObject:
    return {
        "python": [spec.target.python],
        **_what_to_run(spec.target),
        "cwd": str(spec.root),
        "env": dict(spec.env),
        "console": "internalConsole",
        "justMyCode": spec.just_my_code,
        "subProcess": True,
        "redirectOutput": True,
    }


def _what_to_run(target: Target) -> JsonObject:
    if target.kind in ("pytest", "unittest"):
        return {"module": target.kind, "args": list(target.words)}
    first, *rest = target.words
    return {"module" if target.kind == "module" else "program": first, "args": rest}


class _Children:
    """Processes that the program starts: the adapter says so, and each is then spoken to through a port of its."""

    def __init__(self, session: Session, around: Surroundings, spec: SessionSpec) -> None:
        self._session = session
        self._around = around
        self._spec = spec
        self._tasks: set[asyncio.Task[None]] = set()
        self._debuggers: list[PythonDebugger] = []
        session.on_child = self._hear

    def close(self) -> None:
        """Let go of all of them."""
        for task in self._tasks:
            task.cancel()
        for debugger in self._debuggers:
            debugger.client.close()

    def _hear(self, event: ChildStarted) -> None:
        session = self._around.open_child(self._session, f"a process that {self._session.id} started")
        if session is not None:
            task = asyncio.ensure_future(self._welcome(session, event.arguments))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _welcome(self, session: Session, arguments: dict[str, Any]) -> None:
        place = cast(dict[str, Any], arguments.get("connect") or {})
        host, port = str(place.get("host", "127.0.0.1")), int(place.get("port", 0))
        debugger = PythonDebugger(session.hear, shows_secrets=self._around.shows_secrets)
        self._debuggers.append(debugger)
        try:
            await asyncio.get_running_loop().create_connection(lambda: debugger.client, host, port)
            await debugger.initialize(timeout=self._spec.timeout)
            await debugger.begin("attach", arguments)
            debugger.load()
            await begin_child(session, debugger, self._session)
        except (ConnectionLost, RequestFailed, TimeoutError, OSError):
            # Short-lived children are often gone before they were asked; the session has heard of its end.
            return
