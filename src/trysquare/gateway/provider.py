"""Provider of the gateway: lifespan, prestart, configuration reload."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from trysquare.core.concurrency import BackgroundTasks
from trysquare.core.errors import ConfigurationError, ToolError
from trysquare.core.threads import run_in_thread
from trysquare.gateway.config.launch import LaunchPins
from trysquare.gateway.config.load import GatewayConfig, read_config
from trysquare.gateway.models import ServerConfig
from trysquare.gateway.prestart import PrestartedServers, open_prestarted
from trysquare.store.database import Transactions
from trysquare.store.pins import CommandPins

if TYPE_CHECKING:
    from trysquare.gateway.toolset import GatewayToolset

logger = logging.getLogger("trysquare.gateway")

POLL_SECONDS = 0.25
_SETTLED_NANOSECONDS = 100_000_000
"""A file that was written less than this ago may be written again with the same timestamps."""

_Stamps: TypeAlias = tuple[tuple[int, ...] | None, ...]


@asynccontextmanager
async def open_gateway(
    paths: Sequence[Path],
    *,
    state: Transactions,
    folder: Path,
    discover: bool = False,
    watch: bool = True,
    prestart: bool = False,
    kept_characters: int = 0,
) -> AsyncGenerator[GatewayToolset]:
    """Lifespan of the gateway: the tools of the servers in some files. Raises `ConfigurationError` for a broken file.

    `state` stores pins and definitions, `folder` the ledger and results. `discover` contacts the servers without
    registered tools; `watch` reloads changed files; `prestart` starts the server that is probably called first.
    The ledger keeps `kept_characters` of a result's text.
    """
    config = await run_in_thread(lambda: read_config(*paths))
    async with AsyncExitStack() as stack:
        prestarted = await stack.enter_async_context(open_prestarted(CommandPins(state)))
        if prestart:
            await prestarted.start(config)
        on_first_call = prestarted.record_first_call if prestart else None
        opening = _open_toolset(config, prestarted, on_first_call, state, folder, kept_characters)
        toolset = await stack.enter_async_context(opening)
        if watch:
            watching = BackgroundTasks()
            stack.push_async_callback(watching.close)
            watching.start(_follow_config(toolset, config, prestarted))
            watching.start(_follow_registry(toolset))
        if discover:
            toolset.servers.discover()
        yield toolset


@asynccontextmanager
async def _open_toolset(
    config: GatewayConfig,
    prestarted: PrestartedServers,
    on_first_call: Callable[[ServerConfig], None] | None,
    state: Transactions,
    folder: Path,
    kept: int,
) -> AsyncGenerator[GatewayToolset]:
    # Imported here: most of the gateway loads while a prestarted server does.
    from trysquare.gateway.definitions.registry import DefinitionRegistry
    from trysquare.gateway.pool.pool import open_pool
    from trysquare.gateway.results.store import ResultStore
    from trysquare.gateway.sender import CallSender
    from trysquare.gateway.service import GatewayService
    from trysquare.gateway.toolset import GatewayToolset
    from trysquare.store.call_ledger import CallLedger

    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(
            open_pool(
                config.usable(),
                on_change=lambda server, change: toolset.on_server_event(server, change),
                on_first_call=on_first_call,
                admit=LaunchPins(CommandPins(state)).check,
                transports=prestarted.open_transport,
            )
        )
        sender = CallSender(pool.call, CallLedger(folder / "ledger.db"), pool.cancel_task, kept_characters=kept)
        stack.push_async_callback(sender.close)
        results = ResultStore(folder / "results")
        stack.callback(results.close)
        servers = GatewayService(registry=DefinitionRegistry(state), pool=pool, sender=sender, results=results)
        stack.push_async_callback(servers.close)
        toolset = GatewayToolset(servers)
        servers.on_change = toolset.publish
        servers.prepare = toolset.prepare
        toolset.configure(config.servers)
        yield toolset


async def _follow_config(toolset: GatewayToolset, config: GatewayConfig, prestarted: PrestartedServers) -> None:
    async for changed in config_changes(config):
        prestarted.retain(changed.usable())
        await toolset.servers.pool.replace(changed.usable())
        toolset.configure(changed.servers)
        logger.info("configuration reloaded: servers=%s", len(changed.servers))


async def _follow_registry(toolset: GatewayToolset) -> None:
    """List what another process registers or a human approves elsewhere."""
    from trysquare.gateway.definitions.registry import LOOK_SECONDS

    known = toolset.known()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        try:
            now = await run_in_thread(toolset.known)
        except ToolError as error:
            # Calls fail with the same error until the next read succeeds.
            logger.warning("definitions cannot be read: %s", error)
            continue
        if now != known:
            known = now
            await run_in_thread(toolset.prepare_all)
            toolset.rebuild_tools()


async def config_changes(
    config: GatewayConfig, *, read: Callable[..., GatewayConfig] = read_config, poll_seconds: float = POLL_SECONDS
) -> AsyncIterator[GatewayConfig]:
    """Each configuration that differs from the one before. A file that cannot be read keeps the previous one.

    Polls, which works for links, replaced files and systems without free watches.
    """
    seen: _Stamps | None = None
    logged: _Stamps | None = None
    while True:
        stamps = await asyncio.to_thread(_stamps, config.paths)
        if stamps != seen:
            try:
                found = await asyncio.to_thread(read, *config.paths)
            except ConfigurationError as error:
                found = config
                # An editor may leave a half-written file for a moment.
                if _is_settled(stamps) and stamps != logged:
                    logger.warning("config reload failed; keeping the previous configuration: %s", error)
                    logged = stamps
            if found != config:
                config = found
                yield config
            seen = stamps if _is_settled(stamps) else None
        await asyncio.sleep(poll_seconds)


def _stamps(paths: Sequence[Path]) -> _Stamps:
    return tuple(map(_stamp, paths))


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_dev, found.st_ino, found.st_size)


def _is_settled(stamps: _Stamps) -> bool:
    now = time.time_ns()
    return all(stamp is None or abs(now - stamp[1]) > _SETTLED_NANOSECONDS for stamp in stamps)
