"""What the engines of debug adapters share: starting one, speaking to it, hearing it and its program end."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.debug.dap.client import ConnectionLost, RequestFailed
from trysquare.debug.dap.debugger import DapDebugger
from trysquare.debug.debugger import Output
from trysquare.debug.launching import LaunchSpec, SessionSpec, Surroundings
from trysquare.debug.session import Session
from trysquare.processes.child import Child, Command
from trysquare.wire.pipes import Inlet, Outlet


def found_program(names: Sequence[str], *, hint: str) -> str:
    """The first of these programs that is installed, or an error that says how to get it."""
    for name in names:
        if (found := shutil.which(name)) is not None:
            return found
    raise ToolError(
        f"`{names[0]}` is not installed.",
        code=ErrorCode.ADAPTER_NOT_FOUND,
        instruction=f"Ask the person to run: {hint}",
    )


def start_child(program: str, arguments: Sequence[str], spec: SessionSpec, around: Surroundings, **more: str) -> Child:
    """Start a debugger, or a program under one, in the folder of the session."""
    environment = {**os.environ, **more, **(spec.env if isinstance(spec, LaunchSpec) else {})}
    command = Command(program=program, arguments=arguments, environment=environment, folder=str(spec.root))
    try:
        return around.nursery.start(command)
    except OSError as error:
        raise ToolError(
            f"`{program}` cannot be started: {error.strerror}.",
            code=ErrorCode.SESSION_START_FAILED,
            instruction="Check runtime_path and cwd.",
        ) from None


def speak_over_pipes(debugger: DapDebugger, child: Child, session: Session) -> Callable[[], None]:
    """Speak to an adapter over its standard input and output, until the function that is returned is called."""
    outlet = Outlet(child.stdin, lambda: None)
    debugger.client.use_pipes(outlet.write, outlet.close)

    def hear(chunk: bytes) -> None:
        if chunk:
            debugger.client.data_received(chunk)
        else:
            debugger.client.connection_lost(None)

    def hear_error(chunk: bytes) -> None:
        if chunk:
            session.hear(Output(stream="console", text=chunk.decode(errors="replace")))

    inlets = [Inlet(child.stdout, hear), Inlet(child.stderr, hear_error)]
    for inlet in inlets:
        inlet.start()

    def stop() -> None:
        for inlet in inlets:
            inlet.stop()

    return stop


async def begun(
    debugger: DapDebugger, command: str, arguments: JsonObject, session: Session, child: Child, spec: SessionSpec
) -> None:
    """Bring an adapter to the point where breakpoints can be set, or say why it cannot be brought there."""
    try:
        await debugger.initialize(timeout=spec.timeout)
        await debugger.begin("attach" if command == "attach" else "launch", arguments, timeout=spec.timeout)
    except (RequestFailed, ConnectionLost, TimeoutError) as error:
        status = child.exit_status()
        ended = "" if status is None else f" The debugger ended with exit code {status}."
        raise ToolError(
            f"The program could not be started under the debugger: {error or 'no answer in time'}.{ended}",
            code=ErrorCode.SESSION_START_FAILED,
            instruction="Check target and cwd; the output may say more.",
            fields={"output": session.output.tail()},
        ) from None


async def built(command: Sequence[str], root: Path, *, timeout: float = 120.0) -> None:
    """Compile a source file, or say what the compiler said."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=root, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    async with asyncio.timeout(timeout):
        told, _ = await process.communicate()
    if process.returncode:
        raise ToolError(
            f"`{Path(command[0]).name}` could not compile it.",
            code=ErrorCode.SESSION_START_FAILED,
            instruction="Mend what the compiler says, or name a program that is built already.",
            fields={"output": told.decode(errors="replace")[-2000:]},
        )


def environment_list(env: Mapping[str, str]) -> list[str]:
    """Variables as `NAME=value`, as some adapters take them."""
    return [f"{name}={value}" for name, value in env.items()]
