"""Provider of the debugger's tools."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from trysquare.core.toolset import StaticToolset, Toolset
from trysquare.debug.adapters.registry import ADAPTERS
from trysquare.debug.responses import trim_schema
from trysquare.debug.service import DebugConfig, DebugService, ToolFactory, finalize_tool
from trysquare.debug.sessions.manager import DebugSessionRegistry
from trysquare.debug.tools import breakpoints, context, execution, inspection, recording, session
from trysquare.processes.supervisor import supervise

TOOLS: tuple[ToolFactory, ...] = (
    recording.explain, recording.trace, recording.who_wrote, recording.probe, recording.diff, recording.dump,
    session.session_start, execution.execute, execution.step, inspection.inspect, breakpoints.breakpoint,
    inspection.watch, session.session, execution.run_until, inspection.variable, context.context, context.adapter,
    session.init, context.config,
)  # fmt: skip


@asynccontextmanager
async def open_debugger(config: DebugConfig) -> AsyncGenerator[Toolset]:
    """Lifespan of the debugger's tools; ends every program that they started."""
    async with open_service(config) as service:
        yield tools_of(service)


@asynccontextmanager
async def open_service(config: DebugConfig) -> AsyncGenerator[DebugService]:
    """Lifespan of the state that the tools share; ends every program that it started."""
    async with supervise() as supervisor:
        sessions = DebugSessionRegistry(
            supervisor, ADAPTERS, shows_secrets=config.shows_secrets, chosen=config.adapters
        )
        try:
            yield DebugService(config=config, supervisor=supervisor, sessions=sessions)
        finally:
            await sessions.close()


def tools_of(service: DebugService) -> Toolset:
    return StaticToolset(finalize_tool(trim_schema(make(service)), service) for make in TOOLS)
