"""Trysquare for the in-memory client: the same app that `trysquare serve` opens."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from trysquare.app import open_app
from trysquare.server import build_server
from trysquare.settings import Settings

TOOLS = "benchmarks.peers.trysquare_tools:tools"


@asynccontextmanager
async def opened(tools: int, project: Path) -> AsyncGenerator[Any]:
    """The low-level server with that many tools, wrapped and catalogued as every user gets it."""
    os.environ["BENCH_TOOLS"] = str(tools)
    async with open_app(Settings(tools=(TOOLS,), project=project)) as app:
        yield build_server(app.toolset, app.serve_options())
