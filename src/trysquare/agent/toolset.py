"""The agents' door: every agent as a tool."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial

from trysquare.agent.as_tool import agent_tool
from trysquare.agent.definition import known_definitions
from trysquare.agent.durable_runs import DurableRuns
from trysquare.agent.job import agent_bodies
from trysquare.agent.journal import Journal
from trysquare.agent.opening import Surroundings, run_kept_request, run_request
from trysquare.agent.request import AgentRequest
from trysquare.agent.run import AgentOutcome
from trysquare.agent.runs import Runs
from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.core.toolset import FixedToolset, Toolset
from trysquare.core.types import JsonObject
from trysquare.jobs.engine import RunEngine
from trysquare.jobs.opening import JobsAddress, open_engine


@asynccontextmanager
async def agents_toolset(
    around: Surroundings, *, kept: Callable[[], JobsAddress] | None = None
) -> AsyncGenerator[Toolset]:
    """The agents of Trysquare and of the project, as tools. Runs that have not ended are stopped with the block.

    `kept` says where runs are kept as jobs, which are taken up again after a stop; without it they end with the block.
    """
    runs = _passing_runs(around) if kept is None else DurableRuns(partial(_engine, around, kept))
    try:
        yield FixedToolset(agent_tool(definition, runs) for definition in known_definitions(around.agents_folder))
    finally:
        await runs.close()


@asynccontextmanager
async def _engine(around: Surroundings, kept: Callable[[], JobsAddress]) -> AsyncGenerator[RunEngine]:
    async def run(request: JsonObject, journal: Journal) -> JsonObject:
        return await run_kept_request(request, journal, around)

    address = kept()
    async with open_engine(address.url, agent_bodies(run), project=address.project, adopting=True) as engine:
        yield engine


def _passing_runs(around: Surroundings) -> Runs:
    async def start(request: AgentRequest, journal: Journal) -> AgentOutcome:
        try:
            return await run_request(request, around, journal)
        except ConfigurationError as error:
            raise ToolError(
                str(error),
                code=ErrorCode.CONFIG_INVALID,
                instruction="Tell the person: it is a setting of the server that has to be mended.",
            ) from error

    return Runs(start)
