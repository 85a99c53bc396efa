"""A server as a process that speaks over its standard streams, for tests that write the bytes themselves."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any

from trysquare.core.json import JsonObject

REPOSITORY = Path(__file__).parents[2]
LONGEST_LINE = 64 * 1024 * 1024


class StdioProcess:
    """A running server. Answers are kept by id; a line that is no JSON object is kept as a fault."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._answers: dict[str | int, JsonObject] = {}
        self._arrived = asyncio.Condition()
        self._ended = False
        self.lines: list[bytes] = []
        self.faults: list[bytes] = []
        self.stderr = b""

    async def send(self, *frames: bytes | JsonObject) -> None:
        """Write frames, one per line."""
        assert self._process.stdin is not None
        for frame in frames:
            raw = frame if isinstance(frame, bytes) else json.dumps(frame).encode("ascii")
            self._process.stdin.write(raw + b"\n")
        await self._process.stdin.drain()

    async def answer(self, request_id: str | int, seconds: float = 60) -> JsonObject:
        """The answer to a request, once it is there."""
        async with asyncio.timeout(seconds), self._arrived:
            await self._arrived.wait_for(lambda: request_id in self._answers or self._ended)
        if request_id not in self._answers:
            raise AssertionError(f"the server ended without an answer to {request_id}: {self.stderr.decode()[-3000:]}")
        return self._answers.pop(request_id)

    async def wait_until(self, holds: Callable[[], bool], seconds: float = 60) -> None:
        """Wait until something holds of what came in, looking again each time that more does."""
        async with asyncio.timeout(seconds), self._arrived:
            await self._arrived.wait_for(lambda: holds() or self._ended)

    async def ask(self, method: str, params: JsonObject, request_id: str | int) -> JsonObject:
        """Send a request and wait for its answer."""
        await self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        return await self.answer(request_id)

    async def close(self, seconds: float = 30) -> int:
        """Close the server's input and wait for it to end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        async with asyncio.timeout(seconds):
            return await self._process.wait()

    async def interrupt(self, seconds: float = 30) -> int:
        """Tell the server to end, as Ctrl-C does, and wait for it."""
        self._process.send_signal(signal.SIGINT)
        async with asyncio.timeout(seconds):
            return await self._process.wait()

    async def read_answers(self) -> None:
        """Read until the server closes its output."""
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            async with self._arrived:
                self._keep(line)
                self._arrived.notify_all()
        async with self._arrived:
            self._ended = True
            self._arrived.notify_all()

    def _keep(self, line: bytes) -> None:
        self.lines.append(line)
        try:
            message: Any = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            self.faults.append(line)
        elif isinstance(message.get("id"), (str, int)) and "method" not in message:
            self._answers[message["id"]] = message

    async def read_stderr(self) -> None:
        """Read what the server logs."""
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(65536):
            async with self._arrived:
                self.stderr += chunk
                self._arrived.notify_all()


@contextlib.asynccontextmanager
async def started_process(
    arguments: Sequence[str],
    *,
    environment: dict[str, str] | None = None,
    folder: Path = REPOSITORY,
    pass_fds: Sequence[int] = (),
) -> AsyncGenerator[StdioProcess]:
    """Start `python ARGUMENTS` as a server; it is ended, by its own id, when the block ends."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=LONGEST_LINE,
        pass_fds=pass_fds,
    )
    server = StdioProcess(process)
    async with asyncio.TaskGroup() as readers:
        readers.create_task(server.read_answers())
        readers.create_task(server.read_stderr())
        try:
            yield server
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
