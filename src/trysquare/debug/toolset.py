"""The debugger's door: opens what debugging needs and yields its tools."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from trysquare.core.tool import Tool
from trysquare.core.toolset import FixedToolset, Toolset
from trysquare.debug.config import DebugConfig
from trysquare.debug.desk import Desk
from trysquare.debug.finishing import finished
from trysquare.debug.languages import engines
from trysquare.debug.sessions import Sessions
from trysquare.debug.tools.adapters import adapter_tool
from trysquare.debug.tools.context import context_tool
from trysquare.debug.tools.diff import diff_tool
from trysquare.debug.tools.dump import dump_tool
from trysquare.debug.tools.explain import explain_tool
from trysquare.debug.tools.keeping import session_tool
from trysquare.debug.tools.looking import inspect_tool
from trysquare.debug.tools.moving import execute_tool, step_tool
from trysquare.debug.tools.opening import init_tool
from trysquare.debug.tools.placing import breakpoint_tool
from trysquare.debug.tools.probe import probe_tool
from trysquare.debug.tools.running import run_until_tool
from trysquare.debug.tools.settings import config_tool
from trysquare.debug.tools.starting import start_tool
from trysquare.debug.tools.trace import trace_tool, who_wrote_tool
from trysquare.debug.tools.variables import variable_tool
from trysquare.debug.tools.watch import watch_tool
from trysquare.debug.trimming import trimmed
from trysquare.processes.nursery import open_nursery

TOOLS: tuple[Callable[[Desk], Tool], ...] = (
    explain_tool,
    trace_tool,
    who_wrote_tool,
    probe_tool,
    diff_tool,
    dump_tool,
    start_tool,
    execute_tool,
    step_tool,
    inspect_tool,
    breakpoint_tool,
    watch_tool,
    session_tool,
    run_until_tool,
    variable_tool,
    context_tool,
    adapter_tool,
    init_tool,
    config_tool,
)


@asynccontextmanager
async def debug_toolset(config: DebugConfig) -> AsyncGenerator[Toolset]:
    """The debugger's tools. Every program that they started has ended when the block is left."""
    async with open_nursery() as nursery:
        sessions = Sessions(nursery, engines(), shows_secrets=config.shows_secrets)
        desk = Desk(config=config, nursery=nursery, sessions=sessions)
        try:
            yield FixedToolset(finished(trimmed(_prefixed(make(desk), config.prefix)), desk) for make in TOOLS)
        finally:
            await sessions.close()


def _prefixed(tool: Tool, prefix: str) -> Tool:
    return replace(tool, metadata=replace(tool.metadata, prefix=prefix))
