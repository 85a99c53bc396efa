"""An agent's run as a durable job: every answer and every call is a step of it, and is not paid for twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from trysquare.agent.journal import CallOutcome, Journal, Repeat
from trysquare.core.call import contained
from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.jobs.engine import JobBody, JobRun

KIND = "agent"
AGAIN = "again"
SKIP = "skip"

RunAgent: TypeAlias = Callable[[JsonObject, Journal], Awaitable[JsonObject]]
"""Runs an agent from what was asked of it, as JSON, and gives its outcome."""


def agent_bodies(run: RunAgent) -> dict[str, JobBody]:
    """The kind of job that an agent's run is, for the engine."""

    async def body(argument: JsonObject, job_run: JobRun) -> JsonObject:
        return await contained(f"Job {job_run.job}", _run_clearly(run, argument, JobJournal(job_run)))

    return {KIND: body}


async def _run_clearly(run: RunAgent, argument: JsonObject, journal: Journal) -> JsonObject:
    try:
        return await run(argument, journal)
    except ConfigurationError as error:
        raise ToolError(
            str(error),
            code=ErrorCode.CONFIG_INVALID,
            instruction="It is a setting that has to be mended; the job can be taken up again then.",
        ) from error


class JobJournal:
    """The journal of a run that outlives its process."""

    def __init__(self, run: JobRun) -> None:
        self._run = run

    @property
    def job(self) -> str | None:
        return self._run.job

    async def step(self, name: str, run: Callable[[], Awaitable[JsonObject]]) -> JsonObject:
        return await self._run.step(name, lambda: contained(f"Step `{name}` of job {self.job}", run()))

    async def call(self, name: str, repeat: Repeat, run: Callable[[str], Awaitable[JsonObject]]) -> CallOutcome:
        async def work() -> JsonObject:
            if repeat == "unknown" and not await self._may_send(name):
                return {"sent_unknown": _words(name)}
            return {"value": await run(f"{self._run.job}/{name}")}

        recorded = await self.step(name, work)
        return CallOutcome(value=recorded.get("value"), unknown=recorded.get("sent_unknown"))

    async def tell(self, done: int, total: int | None, message: str) -> None:
        await self._run.tell(done, total, message)

    async def _may_send(self, name: str) -> bool:
        """Whether no earlier life of the job has sent the call, or a person wants it sent once more."""
        if await self._run.claim(name):
            return True
        question = (
            f"`{name}` was sent when its process ended, and nobody knows whether it took effect (sent_unknown). "
            f"Look, then choose: `{AGAIN}` sends it once more, `{SKIP}` goes on without and tells the model."
        )
        return await self._run.ask(name, question, (AGAIN, SKIP)) == AGAIN


def _words(name: str) -> str:
    return (
        f"sent_unknown: `{name}` was sent before the process ended, and nobody knows whether it took effect. It was "
        "not sent again. Look at the present state before doing anything that depends on it."
    )
