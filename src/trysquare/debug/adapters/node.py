"""JavaScript and TypeScript debug adapter: Node's own inspector."""

from __future__ import annotations

import asyncio
import http.client
import json
import math
import os
import re
import signal
import socket
import time
from dataclasses import replace
from pathlib import Path

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.threads import run_in_thread
from trysquare.debug.adapters import base
from trysquare.debug.cdp.debugger import NodeDebugger
from trysquare.debug.debugger import DEBUGGER_ERRORS
from trysquare.debug.expressions import ExpressionRules
from trysquare.debug.sessions.launch import AttachSpec, LaunchedProgram, LaunchEnvironment, LaunchSpec
from trysquare.debug.sessions.session import DebugSession
from trysquare.net.http import download
from trysquare.processes.supervisor import ChildProcess

PACKAGE = base.AdapterPackage(name="node", programs=("node", "nodejs"), install=base.debian("nodejs"))
EXPRESSIONS = (ExpressionRules(signs=frozenset({"===", "!==", "&&", "||", "!", "(", ")", "-"})),)
_LISTENING = r"Debugger listening on (ws://\S+)"
_OWN_OUTPUT = re.compile(
    "Debugger listening on|For help, see:|Debugger attached.|Waiting for the debugger to disconnect|Debugger ending on"
)
_USUAL_PORT = 9229
_LARGEST_LISTING = 4 * 1024 * 1024
_OPENING = 20.0
"""Seconds in which a program has to open its inspector after the signal; a busy one takes a while."""
_FAILURES = (*DEBUGGER_ERRORS, OSError, EOFError)


async def launch(spec: LaunchSpec, environment: LaunchEnvironment) -> LaunchedProgram:
    session = environment.session
    child = _start(spec, environment)
    streams = base.OutputStreams(child, session, clean=base.without_lines(_OWN_OUTPUT))
    # The inspector reports the end of the program, but not its exit code.
    debugger = NodeDebugger(base.without_exits(session.receive), stops_on_entry=spec.stop_on_entry)
    async with base.end_on_error(child, environment, streams.close):
        try:
            address = (await streams.wait_for(_LISTENING, timeout=spec.timeout))[1]
            workers = _workers(debugger, environment)
            await debugger.connect(address, timeout=spec.timeout)
            await debugger.set_exception_breakpoints(["uncaught"])
        except _FAILURES as error:
            raise base.not_started(session, str(error) or "its inspector did not respond", child) from None
    session.watch(streams.report_exit())
    return LaunchedProgram(
        debugger=debugger, child=child, close=lambda: (workers.close(), streams.close()),
        send_input=base.open_input(child, spec, session),
    )  # fmt: skip


async def attach(spec: AttachSpec, environment: LaunchEnvironment) -> LaunchedProgram:
    session = environment.session
    address = spec if spec.pid is None else replace(spec, port=await _open_inspector(spec.pid, spec.timeout))
    debugger = NodeDebugger(session.receive, closes_inspector=spec.pid is not None)
    workers = _workers(debugger, environment)
    try:
        await debugger.connect(await _inspector_url(address), timeout=spec.timeout, is_waiting=False)
    except _FAILURES as error:
        raise base.not_reachable(address, error) from None
    if spec.pid is not None:
        session.watch(base.report_exit(spec.pid, session))
    return LaunchedProgram(debugger=debugger, child=None, close=workers.close)


def _workers(debugger: NodeDebugger, environment: LaunchEnvironment) -> base.ChildSessions:
    async def connect(session: DebugSession, arguments: JsonObject) -> NodeDebugger:
        worker = await debugger.worker(str(arguments["sessionId"]), session.receive)
        await worker.set_exception_breakpoints(["uncaught"])
        return worker

    return base.ChildSessions(environment, "thread", connect)


async def _open_inspector(pid: int, timeout: float) -> int:
    """Have a process open its inspector, and find its port: Node's usual one may belong to another process."""
    base.require_own_process(pid)
    if Path(os.readlink(f"/proc/{pid}/exe")).name not in ("node", "nodejs"):
        raise base.cannot_attach(
            "javascript", f"process {pid}, which is not Node", "Give the `pid` of the Node process."
        )
    before = base.listening_ports(pid)
    is_taken = _is_taken(_USUAL_PORT)
    os.kill(pid, signal.SIGUSR1)
    patience = min(timeout, _OPENING)
    again_at = time.monotonic() + patience / 2
    try:
        async with asyncio.timeout(patience):
            while True:
                # New ports first: one that was open before may be of another server.
                for port in sorted(base.listening_ports(pid), key=lambda port: port in before):
                    if await run_in_thread(lambda port=port: _is_inspector(port)):
                        return port
                is_free_now = is_taken and not _is_taken(_USUAL_PORT)
                is_late = time.monotonic() > again_at
                if is_free_now or is_late:
                    # Node tries the port once per signal, and the process that had it may have been about to end.
                    is_taken = is_taken and not is_free_now
                    again_at = math.inf if is_late else again_at
                    os.kill(pid, signal.SIGUSR1)
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise ToolError(
            f"Process {pid} did not open its inspector.",
            code=ErrorCode.SESSION_START_FAILED,
            instruction=f"Another program may use Node's default port {_USUAL_PORT}: end its session first, or start "
            "this program with `node --inspect=127.0.0.1:PORT` and give that `port`.",
        ) from None


def _is_taken(port: int) -> bool:
    with socket.socket() as tried:
        tried.settimeout(1.0)
        return tried.connect_ex(("127.0.0.1", port)) == 0


def _is_inspector(port: int) -> bool:
    try:
        return b"webSocketDebuggerUrl" in _list_targets("127.0.0.1", port)
    except (OSError, http.client.HTTPException):
        return False


async def _inspector_url(spec: AttachSpec) -> str:
    """The WebSocket URL of the inspector, which may take a moment to listen."""
    async with asyncio.timeout(spec.timeout):
        while True:
            try:
                targets = await run_in_thread(lambda: _list_targets(spec.host, spec.port or 0))
                return str(json.loads(targets)[0]["webSocketDebuggerUrl"])
            except ConnectionError:
                await asyncio.sleep(0.05)


def _list_targets(host: str, port: int) -> bytes:
    return download(f"http://{host}:{port}/json/list", timeout=5, limit=_LARGEST_LISTING).body


def _start(spec: LaunchSpec, environment: LaunchEnvironment) -> ChildProcess:
    words = list(spec.target.words)
    runtime = spec.target.python or None
    if Path(words[0]).name in ("node", "nodejs"):
        runtime = runtime or (words[0] if "/" in words[0] else None)
        words = words[1:]
    arguments = ["--inspect-brk=127.0.0.1:0", "--enable-source-maps", *words]
    return base.start_child(runtime or PACKAGE.program(environment.chosen), arguments, spec, environment)
