"""What the engines of debug adapters share: starting one, speaking to it, hearing it and its program end."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.debug.dap.client import ConnectionLost, RequestFailed
from trysquare.debug.dap.debugger import DapDebugger
from trysquare.debug.debugger import Output
from trysquare.debug.launching import LaunchSpec, Surroundings
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


def start_child(program: str, arguments: Sequence[str], spec: LaunchSpec, around: Surroundings, **more: str) -> Child:
    """Start a debugger, or a program under one, in the folder of the session."""
    environment = {**os.environ, **spec.env, **more}
    command = Command(program=program, arguments=arguments, environment=environment, folder=str(spec.root))
    try:
        return around.nursery.start(command)
    except OSError as error:
        raise ToolError(
            f"`{program}` cannot be started: {error.strerror}.",
            code=ErrorCode.SESSION_START_FAILED,
            instruction="Check runtime_path and cwd.",
        ) from None


def hear_streams(child: Child, session: Session, *, but: re.Pattern[str] | None = None) -> _Heard:
    """Let the session hear what a child writes, without the lines of the debugger's own."""
    return _Heard(child, session, but)


class _Heard:
    """What a child writes: for the session, and for whoever waits for a certain word."""

    def __init__(self, child: Child, session: Session, but: re.Pattern[str] | None) -> None:
        self._session = session
        self._but = but
        self._seen = ""
        self._waiters: list[tuple[re.Pattern[str], asyncio.Future[re.Match[str]]]] = []
        Inlet(child.stdout, self._hearing("stdout")).start()
        Inlet(child.stderr, self._hearing("stderr")).start()

    async def wait_for(self, pattern: str, *, timeout: float) -> re.Match[str]:
        """Wait until the child has written something."""
        wanted = re.compile(pattern)
        if (found := wanted.search(self._seen)) is not None:
            return found
        waiter: asyncio.Future[re.Match[str]] = asyncio.get_running_loop().create_future()
        self._waiters.append((wanted, waiter))
        async with asyncio.timeout(timeout):
            return await waiter

    def _hearing(self, stream: str) -> Callable[[bytes], None]:
        def hear(chunk: bytes) -> None:
            text = chunk.decode(errors="replace")
            self._notice(text)
            shown = "".join(line for line in text.splitlines(keepends=True) if not self._is_own(line))
            if shown:
                self._session.hear(Output(stream="stderr" if stream == "stderr" else "stdout", text=shown))

        return hear

    def _is_own(self, line: str) -> bool:
        return self._but is not None and self._but.match(line) is not None

    def _notice(self, text: str) -> None:
        if not self._waiters and len(self._seen) > 10_000:
            return
        self._seen = (self._seen + text)[-20_000:]
        for wanted, waiter in list(self._waiters):
            if not waiter.done() and (found := wanted.search(self._seen)) is not None:
                waiter.set_result(found)


def speak_over_pipes(debugger: DapDebugger, child: Child, session: Session) -> None:
    """Speak to an adapter over its standard input and output; its errors are the session's to hear."""
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

    Inlet(child.stdout, hear).start()
    Inlet(child.stderr, hear_error).start()


async def begun(
    debugger: DapDebugger, command: str, arguments: JsonObject, session: Session, child: Child, spec: LaunchSpec
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
