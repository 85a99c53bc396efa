"""`trysquare jobs resume`: take up a job in this process, and see it through."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from trysquare.agent.job import agent_bodies
from trysquare.agent.journal import Journal
from trysquare.agent.opening import run_kept_request
from trysquare.app import agent_surroundings, jobs_address
from trysquare.cli.jobs_progress import QuietTerminal, watch
from trysquare.cli.options import load
from trysquare.cli.output import count
from trysquare.cli.terminal import say
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.jobs.engine import JobReader, JobStatus, RunEngine
from trysquare.jobs.opening import open_engine, open_reader
from trysquare.settings.load import Loaded


@asynccontextmanager
async def agent_engine(loaded: Loaded) -> AsyncGenerator[RunEngine]:
    """An engine that runs agents as they are configured."""
    context = CallContext(caller=QuietTerminal(), client="trysquare")
    address = jobs_address(loaded.settings, loaded.origins, make=True)
    with agent_surroundings(loaded.settings, loaded.origins) as around:

        async def run(kept: JsonObject, journal: Journal) -> JsonObject:
            return await run_kept_request(kept, journal, around, context)

        async with open_engine(address.url, agent_bodies(run), project=address.project) as engine:
            yield engine


async def resume(arguments: argparse.Namespace) -> int:
    """Answer what the job asks, if asked to, and take it up unless another process has it."""
    loaded = load(arguments)
    address = jobs_address(loaded.settings, loaded.origins)
    async with open_reader(address.url, project=address.project) as jobs:
        found = await jobs.status(arguments.job)
        if arguments.answer is not None:
            await _answer(jobs, found, arguments.answer)
            if found.state in ("running", "asks"):
                say(f"Job {found.job} goes on in the process {found.holder}.")
                return 0
    async with agent_engine(loaded) as engine:
        recorded = len(await engine.steps(found.job))
        await engine.resume(found.job)
        say(f"Job {found.job} goes on after {count(recorded, 'recorded step')}.")
        return print_outcome(await watch(engine, found.job))


async def _answer(jobs: JobReader, found: JobStatus, choice: str) -> None:
    if found.question is None:
        raise ToolError(
            f"Job `{found.job}` asks nothing.",
            code=ErrorCode.VALIDATION_INVALID_PARAM,
            instruction="Leave out --answer.",
        )
    await jobs.signal(found.job, found.question.name, choice)


def print_outcome(found: JobStatus) -> int:
    """How a job ended, for a person, and as an exit code."""
    if found.state != "done" or found.result is None:
        ended = "has failed" if found.state == "failed" else "was cancelled"
        say(f"Job {found.job} {ended}. {found.error or ''}".rstrip())
        say(f"Take it up again with: trysquare jobs resume {found.job}")
        return 1
    print(found.result.get("summary", found.result))
    return 0 if found.result.get("status", "finished") == "finished" else 1
