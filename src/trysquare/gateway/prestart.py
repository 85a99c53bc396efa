"""Prestart: the process of the server that is probably called first starts while the rest of the gateway loads.

This module imports little, so that the process starts before most of our own code is loaded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

from trysquare.core.concurrency import BackgroundTasks
from trysquare.core.errors import ToolError
from trysquare.core.threads import run_in_thread
from trysquare.gateway.config.entries import TRANSPORTS
from trysquare.gateway.config.launch import LaunchPins
from trysquare.gateway.config.load import GatewayConfig
from trysquare.gateway.models import ServerConfig
from trysquare.gateway.upstream.transport import Transport, TransportError, open_transport
from trysquare.processes.supervisor import ProcessSupervisor, supervise
from trysquare.store.pins import CommandPin, CommandPins

logger = logging.getLogger("trysquare.gateway")


def servers_to_prestart(config: GatewayConfig, pins: CommandPins) -> list[ServerConfig]:
    """The servers with `prestart` "always", and that of the last session's first call unless its entry says "never".

    Only processes that are approved exactly as they are now: a start ahead of any call must not pin a new command, and
    nothing remote is contacted. Blocks on the store.
    """
    usable = config.usable().values()
    try:
        last = pins.last_first_called(server.location.file for server in usable)
        return [
            server
            for server in usable
            if TRANSPORTS[server.transport].owns_process
            and (server.prestart == "always" or (server.prestart == "auto" and _is_of(server, last)))
            and LaunchPins(pins).is_approved(server)
        ]
    except ToolError as error:
        # The first call fails with the same error, where it can be reported.
        logger.warning("no server is prestarted: %s", error)
        return []


def _is_of(server: ServerConfig, pin: CommandPin | None) -> bool:
    return pin is not None and (pin.file, pin.server) == (server.location.file, server.name)


class _Waiting(NamedTuple):
    config: ServerConfig
    transport: Transport
    timer: asyncio.TimerHandle | None


class PrestartedServers:
    """Processes that wait for their first session. One that nobody uses ends after the server's idle time."""

    def __init__(self, pins: CommandPins, supervisor: ProcessSupervisor) -> None:
        self._pins = pins
        self._supervisor = supervisor
        self._waiting: dict[str, _Waiting] = {}
        self._background = BackgroundTasks()

    async def start(self, config: GatewayConfig) -> None:
        """Start the processes. One that cannot be started is left to its first call, which reports why."""
        loop = asyncio.get_running_loop()
        for server in await run_in_thread(lambda: servers_to_prestart(config, self._pins)):
            transport = open_transport(server, self._supervisor)
            try:
                transport.prestart()
            except TransportError as error:
                logger.warning("prestart failed: server=%s: %s", server.name, error)
                continue
            timer = loop.call_later(server.idle, self._end, server.name) if server.idle else None
            self._waiting[server.name] = _Waiting(server, transport, timer)

    def open_transport(self, config: ServerConfig) -> Transport:
        """The transport of a prestarted process that still runs, or a new one."""
        waiting = self._waiting.get(config.name)
        if waiting is None or waiting.config != config or not waiting.transport.is_prestarted:
            self._end(config.name)
            return open_transport(config, self._supervisor)
        self._remove(config.name)
        return waiting.transport

    def retain(self, servers: Mapping[str, ServerConfig]) -> None:
        """End the processes whose entries have changed or are gone."""
        for name, waiting in list(self._waiting.items()):
            if servers.get(name) != waiting.config:
                self._end(name)

    def record_first_call(self, server: ServerConfig) -> None:
        """Record the server of this session's first call, for the next session."""
        self._background.start(self._record_first_call(server))

    async def close(self) -> None:
        """End every process that was not used."""
        for name in list(self._waiting):
            self._end(name)
        await self._background.wait()

    async def _record_first_call(self, server: ServerConfig) -> None:
        try:
            await run_in_thread(lambda: self._pins.record_first_call(server.location.file, server.name))
        except ToolError as error:
            logger.warning("first call not recorded: server=%s: %s", server.name, error)

    def _end(self, name: str) -> None:
        if (waiting := self._remove(name)) is not None:
            self._background.start(waiting.transport.close())

    def _remove(self, name: str) -> _Waiting | None:
        waiting = self._waiting.pop(name, None)
        if waiting is not None and waiting.timer is not None:
            waiting.timer.cancel()
        return waiting


@asynccontextmanager
async def open_prestarted(pins: CommandPins) -> AsyncGenerator[PrestartedServers]:
    """Lifespan of all processes of a gateway, of those that are started later as well: none outlives it."""
    async with supervise() as supervisor:
        servers = PrestartedServers(pins, supervisor)
        try:
            yield servers
        finally:
            await servers.close()
