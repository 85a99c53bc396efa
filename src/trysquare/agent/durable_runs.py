"""DurableRuns: agents at work as jobs, which outlive the process that started them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TypeAlias

from trysquare.agent.job import KIND
from trysquare.agent.request import AgentRequest
from trysquare.agent.runs import MOST_RUNS, RunView, no_job
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.shortening import short
from trysquare.jobs.engine import FINAL, JobStatus, RunEngine

OpenEngine: TypeAlias = Callable[[], AbstractAsyncContextManager[RunEngine]]
WATCH = 0.2
"""Seconds between two looks at a job, which may run in another process."""


class DurableRuns:
    """Runs that are kept. The engine is opened when the first of them is asked for."""

    def __init__(self, open_engine: OpenEngine) -> None:
        self._open_engine = open_engine
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._engine: RunEngine | None = None
        self._started: set[str] = set()

    async def start(self, request: AgentRequest, *, principal: str) -> RunView:
        engine = await self._opened()
        await self._require_room(engine)
        job = await engine.start(
            KIND,
            {**request.to_json(), "principal": principal},
            title=f"{request.agent}: {short(request.task)}",
            job=secrets.token_urlsafe(12),
        )
        self._started.add(job)
        return _view(await engine.status(job))

    async def look(self, job: str, *, principal: str) -> RunView:
        return _view(await self._find(job, principal))

    async def changed(self, job: str, *, principal: str, known: int) -> RunView:
        found = await self._find(job, principal)
        while found.state not in FINAL and found.done <= known:
            await asyncio.sleep(WATCH)
            found = await self._find(job, principal)
        return _view(found)

    async def cancel(self, job: str, *, principal: str) -> RunView:
        found = await self._find(job, principal)
        if found.state not in FINAL:
            await (await self._opened()).cancel(job)
        return await self.look(job, principal=principal)

    async def close(self) -> None:
        """Stop what runs here. It stays to be taken up, by another process or a person."""
        await self._stack.aclose()

    async def _opened(self) -> RunEngine:
        async with self._opening:
            if self._engine is None:
                self._engine = await self._stack.enter_async_context(self._open_engine())
            return self._engine

    async def _require_room(self, engine: RunEngine) -> None:
        running = {job for job in self._started if (await engine.status(job)).state not in FINAL}
        self._started = running
        if len(running) >= MOST_RUNS:
            raise ToolError(
                f"{len(running)} agents are at work already.",
                code=ErrorCode.STATE_CONFLICT,
                instruction="Wait for one of them, or cancel it.",
            )

    async def _find(self, job: str, principal: str) -> JobStatus:
        """A job of this person. Elsewhere an id may be shortened; here it is what keeps others out."""
        found = await (await self._opened()).status(job)
        if found.job != job or found.argument.get("principal") != principal:
            raise no_job(job)
        return found


def _view(found: JobStatus) -> RunView:
    failed = found.state == "failed"
    return RunView(
        job=found.job,
        agent=str(found.argument.get("agent", "")),
        state=found.state,
        done=found.done,
        total=found.total,
        message=_message(found),
        outcome=found.result,
        error=(found.error or "The run has failed.") if failed else None,
        code=ErrorCode.TOOL_FAILED if failed else None,
    )


def _message(found: JobStatus) -> str:
    question = found.question
    if found.state != "asks" or question is None:
        return found.message
    choices = "|".join(question.choices)
    return f"{question.text} A person answers with: trysquare jobs resume {found.job} --answer {choices}"
