"""Runs: agents at work beside whoever started them, each under a handle of the person who did."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from trysquare.agent.journal import Journal, Unjournalled
from trysquare.agent.request import AgentRequest
from trysquare.agent.run import AgentOutcome
from trysquare.core.call import contained
from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.core.types import JsonObject

RunState: TypeAlias = Literal["queued", "running", "asks", "interrupted", "done", "failed", "cancelled"]
ENDED: frozenset[RunState] = frozenset({"done", "failed", "cancelled"})
StartRun: TypeAlias = Callable[[AgentRequest, Journal], Awaitable[AgentOutcome]]
MOST_RUNS = 8
MOST_KEPT = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class RunView:
    """Where a run stands."""

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
        """Whether nothing more will come of it."""
        return self.state in ENDED


class AgentJobs(Protocol):
    """Where agents work. Every job belongs to one person, and is not there for anybody else."""

    async def start(self, request: AgentRequest, *, principal: str) -> RunView:
        """Start a run beside everything else."""
        ...

    async def look(self, job: str, *, principal: str) -> RunView:
        """Where a run stands."""
        ...

    async def changed(self, job: str, *, principal: str, known: int) -> RunView:
        """Where a run stands once it has gone further than the step that is known, or has ended."""
        ...

    async def cancel(self, job: str, *, principal: str) -> RunView:
        """Stop a run."""
        ...


@dataclass(kw_only=True, slots=True)
class _Run:
    job: str
    request: AgentRequest
    principal: str
    state: RunState = "running"
    done: int = 0
    total: int | None = None
    message: str = "starting"
    outcome: AgentOutcome | None = None
    error: ToolError | None = None
    task: asyncio.Task[None] | None = None
    turned: asyncio.Event = field(default_factory=asyncio.Event)

    def turn(self) -> None:
        """Wake whoever waits for a change."""
        self.turned.set()
        self.turned = asyncio.Event()

    def view(self) -> RunView:
        return RunView(
            job=self.job,
            agent=self.request.agent,
            state=self.state,
            done=self.done,
            total=self.total,
            message=self.message,
            outcome=None if self.outcome is None else self.outcome.to_json(),
            error=None if self.error is None else self.error.message,
            code=None if self.error is None else self.error.code,
        )


class _Telling(Unjournalled):
    """The journal of a run that records nothing and shows how far it is."""

    def __init__(self, run: _Run) -> None:
        self._run = run

    async def tell(self, done: int, total: int | None, message: str) -> None:
        self._run.done, self._run.total, self._run.message = done, total, message
        self._run.turn()


class Runs:
    """Runs of one process. They end with it."""

    def __init__(self, start: StartRun) -> None:
        self._start = start
        self._runs: dict[str, _Run] = {}

    async def start(self, request: AgentRequest, *, principal: str) -> RunView:
        running = sum(run.state == "running" for run in self._runs.values())
        if running >= MOST_RUNS:
            raise ToolError(
                f"{running} agents are at work already.",
                code=ErrorCode.STATE_CONFLICT,
                instruction="Wait for one of them, or cancel it.",
            )
        run = _Run(job=secrets.token_urlsafe(12), request=request, principal=principal)
        self._forget_old()
        self._runs[run.job] = run
        run.task = asyncio.create_task(self._work(run))
        return run.view()

    async def look(self, job: str, *, principal: str) -> RunView:
        return self._find(job, principal).view()

    async def changed(self, job: str, *, principal: str, known: int) -> RunView:
        run = self._find(job, principal)
        while run.state == "running" and run.done <= known:
            await run.turned.wait()
        return run.view()

    async def cancel(self, job: str, *, principal: str) -> RunView:
        run = self._find(job, principal)
        await self._stop(run)
        return run.view()

    async def close(self) -> None:
        """Stop all of them."""
        for run in list(self._runs.values()):
            await self._stop(run)

    def _find(self, job: str, principal: str) -> _Run:
        run = self._runs.get(job)
        if run is None or run.principal != principal:
            raise no_job(job)
        return run

    async def _stop(self, run: _Run) -> None:
        if run.task is None or run.task.done():
            return
        run.task.cancel()
        with suppress(asyncio.CancelledError):
            await run.task

    async def _work(self, run: _Run) -> None:
        run.state = "running"
        try:
            run.outcome = await contained(f"The agent {run.request.agent}", self._start(run.request, _Telling(run)))
            run.state = "done"
        except asyncio.CancelledError:
            run.state = "cancelled"
            raise
        except ToolError as error:
            run.error, run.state = error, "failed"
        finally:
            run.turn()

    def _forget_old(self) -> None:
        ended = [job for job, run in self._runs.items() if run.state in ENDED]
        for job in ended[: max(len(self._runs) - MOST_KEPT, 0)]:
            del self._runs[job]


def no_job(job: str) -> NotFound:
    """The answer to a job that is not there, or is somebody else's."""
    return NotFound(
        f"There is no job `{job[:40]}`.",
        code=ErrorCode.JOB_NOT_FOUND,
        instruction="Use the job that `start` answered with.",
    )
