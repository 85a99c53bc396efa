"""The agents' door: every agent as a tool."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from trysquare.agent.as_tool import agent_tool
from trysquare.agent.definition import known_definitions
from trysquare.agent.journal import Journal
from trysquare.agent.opening import Surroundings, run_request
from trysquare.agent.request import AgentRequest
from trysquare.agent.run import AgentOutcome
from trysquare.agent.runs import Runs
from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.core.toolset import FixedToolset, Toolset


@asynccontextmanager
async def agents_toolset(around: Surroundings) -> AsyncGenerator[Toolset]:
    """The agents of Trysquare and of the project, as tools. Runs that have not ended are stopped with the block."""

    async def start(request: AgentRequest, journal: Journal) -> AgentOutcome:
        try:
            return await run_request(request, around, journal)
        except ConfigurationError as error:
            raise ToolError(
                str(error),
                code=ErrorCode.CONFIG_INVALID,
                instruction="Tell the person: it is a setting of the server that has to be mended.",
            ) from error

    runs = Runs(start)
    try:
        yield FixedToolset(agent_tool(definition, runs) for definition in known_definitions(around.agents_folder))
    finally:
        await runs.close()
