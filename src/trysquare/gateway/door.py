"""The gateway's door: opens the servers of a configuration, and yields their tools.

A server that is about to be called takes longer to start than everything else here. So what starts one is imported
first, and the rest while it starts.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trysquare.core.threads import run_in_thread
from trysquare.gateway.config import GatewayConfig, read_config
from trysquare.gateway.fleet.fleet import Fleet, open_fleet
from trysquare.gateway.naming import SEPARATOR, space_of
from trysquare.gateway.server import ServerConfig
from trysquare.gateway.trust import Trust
from trysquare.store.command_pins import CommandPins
from trysquare.store.lazy import Transactions

if TYPE_CHECKING:
    from trysquare.gateway.toolset import GatewayToolset


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenServers:
    """The servers of a configuration, which can be started, and nothing yet that shows their tools."""

    config: GatewayConfig
    fleet: Fleet
    listeners: list[Callable[[str, str], None]]
    """They hear the name of a server and what changed there."""

    def expected(self, called: Iterable[str]) -> list[ServerConfig]:
        """The servers behind the names of some tools. One that could not be started is left to the call itself."""
        status = self.fleet.status()
        wanted = [server for server in owners(self.config, called) if server.name in status]
        return [server for server in wanted if not status[server.name].failures]

    async def begin(self, called: Iterable[str]) -> None:
        """Start the servers behind the names of some tools; what they answer is not waited for."""
        for server in self.expected(called):
            await self.fleet.begin(server.name)


@asynccontextmanager
async def open_servers(paths: Sequence[Path], *, state: Transactions) -> AsyncGenerator[OpenServers]:
    """The servers that some files name, none of them started. Raises ConfigurationError for a file that is no such."""
    config = await run_in_thread(lambda: read_config(*paths))
    listeners: list[Callable[[str, str], None]] = []

    def tell(server: str, change: str) -> None:
        for listener in listeners:
            listener(server, change)

    trust = Trust(CommandPins(state))
    async with open_fleet(config.usable(), on_change=tell, admit=trust.check) as fleet:
        yield OpenServers(config=config, fleet=fleet, listeners=listeners)


@asynccontextmanager
async def gateway_toolset(
    paths: Sequence[Path],
    *,
    state: Transactions,
    folder: Path,
    discover: bool = False,
    watch: bool = True,
    called: Sequence[str] = (),
    opened: OpenServers | None = None,
) -> AsyncGenerator[GatewayToolset]:
    """The tools of the servers that some files name. A file that cannot be read at all is found when the door opens.

    `state` and `folder` are the user's: pins and catalogue, and what calls leave behind. `discover` asks the servers
    that are not known yet, once the door is open. `called` names the tools whose calls are already on their way, and
    `opened` are servers of some of the files, opened before.
    """
    async with AsyncExitStack() as stack:
        servers = opened or await stack.enter_async_context(open_servers(paths, state=state))
        if servers.config.paths != tuple(paths):
            config = await run_in_thread(lambda: read_config(*paths))
            await servers.fleet.replace(config.usable())
            servers = replace(servers, config=config)
        await servers.begin(called)
        from trysquare.gateway.toolset import opened_toolset

        door = opened_toolset(servers.config, servers.fleet, state=state, folder=folder, watch=watch)
        toolset = await stack.enter_async_context(door)
        servers.listeners.append(toolset.hear)
        for server in servers.expected(called):
            toolset.servers.expect(server)
        if discover:
            toolset.servers.discover()
        yield toolset


def owners(config: GatewayConfig, names: Iterable[str]) -> Iterator[ServerConfig]:
    """The servers behind the names of some tools."""
    wanted = list(names)
    for server in config.usable().values():
        space = space_of(server.tool_name) + SEPARATOR
        if any(name == server.tool_name or name.startswith(space) for name in wanted):
            yield server
