"""The vanguard: servers whose tools are called already are started before our own settings are even read.

That takes the files that the command line names and what a person agreed to before; nothing else decides whether a
server may be started.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path

from trysquare.core.errors import TrysquareError
from trysquare.gateway.door import OpenServers, open_servers
from trysquare.store.lazy import LazyDatabase
from trysquare.store.location import user_state


@asynccontextmanager
async def open_vanguard(paths: Sequence[Path], called: Sequence[str]) -> AsyncGenerator[OpenServers | None]:
    """Start the servers behind some tools that are called. What is wrong with a file is told at the door."""
    async with AsyncExitStack() as stack:
        state = stack.enter_context(closing(LazyDatabase(user_state())))
        try:
            servers = await stack.enter_async_context(open_servers(paths, state=state))
            await servers.begin(called)
        except TrysquareError:
            servers = None
        yield servers
