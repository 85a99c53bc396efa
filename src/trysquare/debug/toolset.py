"""The debugger's door: opens what debugging needs and yields its tools."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

from trysquare.core.toolset import FixedToolset, Toolset
from trysquare.debug.config import DebugConfig
from trysquare.debug.tools.explain import explain_tool
from trysquare.processes.nursery import open_nursery

PREFIX = "debug"


@asynccontextmanager
async def debug_toolset(config: DebugConfig) -> AsyncGenerator[Toolset]:
    """The debugger's tools. Every program that they started has ended when the block is left."""
    async with open_nursery() as nursery:
        tools = [explain_tool(config, nursery)]
        yield FixedToolset(replace(tool, metadata=replace(tool.metadata, prefix=PREFIX)) for tool in tools)
