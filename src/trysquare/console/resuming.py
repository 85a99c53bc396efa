"""Jobs that go on after a click: each in a process of its own, by the command that a terminal takes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.processes.supervisor import ChildProcess, Command, ProcessSupervisor, supervise
from trysquare.processes.worker import read_pipe

if TYPE_CHECKING:
    from trysquare.jobs import JobStatus

RESUMABLE = frozenset({"interrupted", "failed", "cancelled"})
_TAIL = 4_000
"""Bytes of what a command wrote last that are kept."""


class ResumedJobs:
    """The processes that resume jobs. They end with the console, and then their jobs can be resumed again."""

    def __init__(self, project: Path, announce: Callable[[str], None]) -> None:
        self._project, self._announce = project.resolve(), announce
        self._stack = AsyncExitStack()
        self._supervisor: ProcessSupervisor | None = None
        self._running: dict[str, asyncio.Task[None]] = {}
        self._said: dict[str, str] = {}

    def said(self, job: str) -> str:
        """What the command wrote that could not resume a job; empty while it runs, and where it worked."""
        return self._said.get(job, "")

    def is_starting(self, job: str) -> bool:
        """Whether the command for a job runs."""
        return job in self._running

    async def start(self, job: JobStatus) -> None:
        """Resume a job after its recorded steps."""
        if job.state not in RESUMABLE or job.job in self._running:
            raise ToolError(
                f"Job `{job.job}` is {'being resumed' if job.job in self._running else job.state}.",
                code=ErrorCode.JOB_NOT_RUNNING,
                instruction="Only a job that was interrupted, has failed or was cancelled is resumed.",
            )
        if self._supervisor is None:
            self._supervisor = await self._stack.enter_async_context(supervise())
        words = ("-m", "trysquare", "jobs", "resume", job.job, "--project", str(self._project))
        environment = {**os.environ, "NO_COLOR": "1"}
        child = self._supervisor.start(
            Command(program=sys.executable, arguments=words, environment=environment, folder=str(self._project))
        )
        child.close_input()
        self._said.pop(job.job, None)
        self._running[job.job] = asyncio.create_task(self._follow(job.job, child, self._supervisor))

    async def _follow(self, job: str, child: ChildProcess, supervisor: ProcessSupervisor) -> None:
        try:
            _, errors = await asyncio.gather(_tail(child.stdout), _tail(child.stderr))
            await child.exited.wait()
            if child.exit_status():
                self._said[job] = errors
        finally:
            del self._running[job]
            self._announce("jobs")
            await supervisor.end(child)

    async def close(self) -> None:
        """End what runs."""
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        await self._stack.aclose()


async def _tail(pipe: int) -> str:
    kept = bytearray()

    def take(chunk: bytes) -> None:
        kept.extend(chunk)
        del kept[:-_TAIL]

    while not await read_pipe(pipe, take):
        pass
    return kept.decode("utf-8", "replace").strip()
