"""Jobs of agents: in-process and durable runs."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from trysquare.agents.journal import KIND, Journal, NullJournal
from trysquare.agents.run import AgentOutcome, AgentRequest
from trysquare.core.call import guard_crash
from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.text import truncate
from trysquare.jobs import FINAL, JobStatus, RunEngine

RunState: TypeAlias = Literal["queued", "running", "asks", "interrupted", "done", "failed", "cancelled"]
ENDED: frozenset[RunState] = frozenset({"done", "failed", "cancelled"})
StartRun: TypeAlias = Callable[[AgentRequest, Journal], Awaitable[AgentOutcome]]
MAX_RUNS = 8
MAX_RETAINED = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class RunView:
    """State of a run."""

    job: str
    agent: str
    state: RunState
    done: int = 0
    total: int | None = None
    message: str = ""
    outcome: JsonObject | None = None
    error: str | None = None
    code: ErrorCode | None = None

    @property
    def ended(self) -> bool:
        return self.state in ENDED


class _Run(NullJournal):
    """A run that is not recorded, and the journal by which it reports its progress."""

    def __init__(self, view: RunView, principal: str) -> None:
        self.view, self.principal = view, principal
        self.changed = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    def change(self, **fields: Any) -> None:
        """Change the view, and wake whoever waits for that."""
        self.view = replace(self.view, **fields)
        self.changed.set()
        self.changed = asyncio.Event()

    async def report(self, done: int, total: int | None, message: str) -> None:
        self.change(done=done, total=total, message=message)


class InProcessJobs:
    """Runs that end with this process."""

    def __init__(self, start: StartRun) -> None:
        self._start = start
        self._runs: dict[str, _Run] = {}

    async def start(self, request: AgentRequest, *, principal: str) -> RunView:
        _require_slot(sum(not run.view.ended for run in self._runs.values()))
        view = RunView(job=secrets.token_urlsafe(12), agent=request.agent, state="running", message="starting")
        ended = [job for job, run in self._runs.items() if run.view.ended]
        for job in ended[: max(len(self._runs) - MAX_RETAINED, 0)]:
            del self._runs[job]
        run = self._runs[view.job] = _Run(view, principal)
        run.task = asyncio.create_task(self._work(run, request))
        return view

    async def status(self, job: str, *, principal: str) -> RunView:
        return self._find(job, principal).view

    async def wait(self, job: str, *, principal: str, known: int) -> RunView:
        run = self._find(job, principal)
        while not run.view.ended and run.view.done <= known:
            await run.changed.wait()
        return run.view

    async def cancel(self, job: str, *, principal: str) -> RunView:
        run = self._find(job, principal)
        await self._stop(run)
        return run.view

    async def close(self) -> None:
        for run in list(self._runs.values()):
            await self._stop(run)

    def _find(self, job: str, principal: str) -> _Run:
        run = self._runs.get(job)
        if run is None or run.principal != principal:
            raise job_not_found(job)
        return run

    async def _stop(self, run: _Run) -> None:
        if run.task is None or run.task.done():
            return
        run.task.cancel()
        with suppress(asyncio.CancelledError):
            await run.task
        if not run.view.ended:
            run.change(state="cancelled")

    async def _work(self, run: _Run, request: AgentRequest) -> None:
        try:
            outcome = await guard_crash(f"The agent {request.agent}", self._start(request, run))
            run.change(state="done", outcome=outcome.to_json())
        except ToolError as error:
            run.change(state="failed", error=error.message, code=error.code)


def _require_slot(running: int) -> None:
    if running >= MAX_RUNS:
        raise ToolError(
            f"{running} agents are running already (limit {MAX_RUNS}).",
            code=ErrorCode.STATE_CONFLICT,
            instruction="Wait for one of them, or cancel it.",
        )


def job_not_found(job: str) -> NotFound:
    return NotFound(
        f"Unknown job `{job[:40]}`.",
        code=ErrorCode.JOB_NOT_FOUND,
        instruction="Use the `job` that `start` returned.",
    )


OpenEngine: TypeAlias = Callable[[], AbstractAsyncContextManager[RunEngine]]
POLL_SECONDS = 0.2
"""Seconds between two polls of a job, which may run in another process."""


class DurableJobs:
    """Runs recorded by a job engine, which is opened on first use."""

    def __init__(self, open_engine: OpenEngine) -> None:
        self._open_engine = open_engine
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._engine: RunEngine | None = None
        self._started: set[str] = set()

    async def start(self, request: AgentRequest, *, principal: str) -> RunView:
        engine = await self._open()
        self._started = {job for job in self._started if (await engine.status(job)).state not in FINAL}
        _require_slot(len(self._started))
        job = await engine.start(
            KIND,
            {**request.to_json(), "principal": principal},
            title=f"{request.agent}: {truncate(request.task)}",
            job=secrets.token_urlsafe(12),
        )
        self._started.add(job)
        return _view(await engine.status(job))

    async def status(self, job: str, *, principal: str) -> RunView:
        return _view(await self._find(job, principal))

    async def wait(self, job: str, *, principal: str, known: int) -> RunView:
        found = await self._find(job, principal)
        while found.state not in FINAL and found.done <= known:
            await asyncio.sleep(POLL_SECONDS)
            found = await self._find(job, principal)
        return _view(found)

    async def cancel(self, job: str, *, principal: str) -> RunView:
        found = await self._find(job, principal)
        if found.state not in FINAL:
            await (await self._open()).cancel(job)
        return await self.status(job, principal=principal)

    async def close(self) -> None:
        """Stop runs of this process; they can be resumed."""
        await self._stack.aclose()

    async def _open(self) -> RunEngine:
        async with self._opening:
            if self._engine is None:
                self._engine = await self._stack.enter_async_context(self._open_engine())
            return self._engine

    async def _find(self, job: str, principal: str) -> JobStatus:
        """Find a job of this principal. Only the full id counts here, since it keeps others out."""
        found = await (await self._open()).status(job)
        if found.job != job or found.argument.get("principal") != principal:
            raise job_not_found(job)
        return found


def _view(found: JobStatus) -> RunView:
    failed, question, message = found.state == "failed", found.question, found.message
    if found.state == "asks" and question is not None:
        choices = "|".join(question.choices)
        message = f"{question.text} The user answers with: trysquare jobs resume {found.job} --answer {choices}"
    return RunView(
        job=found.job,
        agent=str(found.argument.get("agent", "")),
        state=found.state,
        done=found.done,
        total=found.total,
        message=message,
        outcome=found.result,
        error=(found.error or "The run failed.") if failed else None,
        code=ErrorCode.TOOL_FAILED if failed else None,
    )


AgentJobs: TypeAlias = InProcessJobs | DurableJobs
"""Runs in the background. Every job belongs to one principal and does not exist for others."""
