"""The gateway's toolset: a tool for each server, and whatever else the profiles show of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from trysquare.core.errors import ToolError
from trysquare.core.prompt import Prompt
from trysquare.core.resource import Resource
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool
from trysquare.core.toolset import ChangingToolset, Toolset, resource_of_template
from trysquare.gateway.answers.large import LargeResults
from trysquare.gateway.calls.ledger import Ledger
from trysquare.gateway.calls.sending import Sender
from trysquare.gateway.config import GatewayConfig
from trysquare.gateway.definitions.catalogue import LOOK_SECONDS, Catalogue
from trysquare.gateway.finding import Finder, Offered
from trysquare.gateway.fleet.fleet import Fleet
from trysquare.gateway.naming import GATEWAY, READ, SEPARATOR, distinct_name, space_of
from trysquare.gateway.server import Definition, ServerConfig, ServerEntry
from trysquare.gateway.servers import Kind, Servers
from trysquare.gateway.tools import colliding_tool, gateway_tool, late_tool, read_tool, server_tool, upstream_tool
from trysquare.gateway.upstream_resources import UpstreamOffers
from trysquare.gateway.watching import config_changes
from trysquare.store.lazy import Transactions
from trysquare.store.ledger import CallLedger

logger = logging.getLogger("trysquare.gateway")


class GatewayToolset(ChangingToolset):
    """The tools of all servers. What a call finds out about a server changes no description that a client has seen."""

    def __init__(self, servers: Servers) -> None:
        self._offers = UpstreamOffers(servers)
        super().__init__(templates=[self._offers.kept_results()])
        self.servers = servers
        self._finder = Finder(lambda: self._offered)
        self._offered: dict[str, Offered] = {}
        self._told: dict[str, tuple[str, ...]] = {}
        """The names of tools in each server's description."""
        self._own: Toolset | None = None
        """What we offer beside the servers."""
        self._made_of: dict[tuple[str, str], tuple[ServerConfig, Definition, Tool]] = {}
        self._announced: set[str] = set()
        """Servers that said themselves that their tools are others now."""

    def use(self, entries: Mapping[str, ServerEntry]) -> None:
        """Go on with these servers, and tell the listeners if that makes other tools."""
        self._made_of = {key: made for key, made in self._made_of.items() if key[0] in entries}
        same = {name for name, entry in entries.items() if self.servers.entries.get(name) == entry}
        self.servers.use(entries)
        self._told = {name: self._told[name] if name in same else self._names(entry) for name, entry in entries.items()}
        self.rebuild_tools()
        self.rebuild_prompts()
        self.rebuild_resources()

    def hear(self, server: str, change: str) -> None:
        """What a server tells of itself: which list of it is another one, or which resource changed."""
        if change == "connected":
            self.servers.meet(server)
        elif change in ("tools", "prompts", "resources"):
            self._announced |= {server} if change == "tools" else set()
            self.servers.hear(server)
        elif not self._offers.addresses.is_ours(change):
            self.notify(self._offers.addresses.shown(server, change))

    def take_over(self, server: str, kind: Kind) -> None:
        """Show what is known now of a server."""
        if kind == "prompts":
            self.rebuild_prompts()
        elif kind == "resources":
            self.rebuild_resources()
        else:
            entry = self.servers.entries.get(server)
            if server in self._announced and entry is not None:
                self._told[server] = self._names(entry)
            self._announced.discard(server)
            self.rebuild_tools()

    def rebuild_tools(self) -> None:
        """Make the tools anew from what is known, and tell the listeners if they are others."""
        known = {tool.name: tool for tool in self.tools()}
        made = [_kept(known.get(tool.name), tool) for tool in self._made()]
        if len(made) != len(known) or any(known.get(tool.name) is not tool for tool in made):
            self.replace(tools=made)

    def prepare(self, server: str) -> None:
        """Make the tools of a server, in a thread: a long list must not keep the calls of others waiting."""
        entry = self.servers.entries.get(server)
        if isinstance(entry, ServerConfig):
            for definition in self.servers.known(entry) or ():
                self._built(entry, definition)

    def prepare_all(self) -> None:
        """Make the tools of every server, in a thread."""
        for name in list(self.servers.entries):
            self.prepare(name)

    def rebuild_prompts(self) -> None:
        """Make the prompts anew, and tell the listeners if there are any."""
        found: dict[str, list[tuple[str, Prompt]]] = {}
        for server in self._usable():
            for one in {one.name: one for one in self._offers.prompts(server)}.values():
                found.setdefault(one.name, []).append((server.name, one))
        if found or self.prompts():
            self.replace(prompts=[prompt for group in found.values() for prompt in self._apart(group)])

    def _apart(self, group: list[tuple[str, Prompt]]) -> list[Prompt]:
        """Prompts of one name; several, or one that we have ourselves, get names that nobody else has."""
        is_taken = self._own is not None and self._own.find_prompt(group[0][1].name) is not None
        if len(group) == 1 and not is_taken:
            return [group[0][1]]
        logger.warning("%s is a prompt of several sources; each has a name of its own", group[0][1].name)
        return [replace(one, name=distinct_name(one.name, server)) for server, one in group]

    def rebuild_resources(self) -> None:
        """Make resources and templates anew, and tell the listeners if there are any."""
        servers = self._usable()
        self._offers.use_addresses(servers, self._own)
        found = {one.uri: one for server in servers for one in self._offers.resources(server)}
        forms = {one.uri_template: one for server in servers for one in self._offers.templates(server)}
        if found or forms or self.resources() or len(self.templates()) > 1:
            self.replace(resources=found.values(), templates=[self._offers.kept_results(), *forms.values()])

    def stand_behind(self, own: Toolset) -> None:
        """Take no name and no address that another source has: those are trusted more than servers."""
        self._own = own
        self.rebuild_tools()
        self.rebuild_prompts()
        self.rebuild_resources()

    def known(self) -> list[tuple[Definition, ...] | None]:
        """The tools of every server, as far as they are known now."""
        return [self.servers.catalogue.definitions(name) for name in list(self.servers.entries)]

    async def settled(self) -> None:
        """Wait until the servers that are being asked have told what they offer, or cannot."""
        await self.servers.settled()

    def find(self, name: str) -> Tool | None:
        """A tool by its name; also one of a server that was not asked yet what it has."""
        return super().find(name) or self._late(name)

    def find_resource(self, uri: str) -> Resource | None:
        """A resource by its address; also one that only its server knows to be of a template's form."""
        return resource_of_template(uri, [self._offers.kept_results()]) or self._offers.find(uri)

    def _usable(self) -> list[ServerConfig]:
        return [entry for entry in self.servers.entries.values() if isinstance(entry, ServerConfig)]

    def _names(self, entry: ServerEntry) -> tuple[str, ...]:
        return tuple(self.servers.names(entry) or ()) if isinstance(entry, ServerConfig) else ()

    def _made(self) -> Iterator[Tool]:
        offered: dict[str, list[Offered]] = {}
        taken = {GATEWAY, READ, *(entry.tool_name for entry in self.servers.entries.values())}
        for name, entry in self.servers.entries.items():
            definitions = (self.servers.known(entry) or ()) if isinstance(entry, ServerConfig) else ()
            yield server_tool(self.servers, entry, self._told.get(name, ()), alone=not definitions)
            for one in self._each(entry, definitions):
                if one.tool.name not in taken and (self._own is None or self._own.find(one.tool.name) is None):
                    offered.setdefault(one.tool.name, []).append(one)
        self._offered = {name: group[0] for name, group in offered.items() if len(group) == 1}
        for name, group in offered.items():
            yield group[0].tool if len(group) == 1 else _refused(name, group)
        yield gateway_tool(self.servers, self._finder)
        yield read_tool(self.servers)

    def _each(self, entry: ServerEntry, definitions: Iterable[Definition]) -> Iterator[Offered]:
        if not isinstance(entry, ServerConfig):
            return
        for definition in definitions:
            yield Offered(tool=self._built(entry, definition), server=entry, definition=definition)

    def _built(self, entry: ServerConfig, definition: Definition) -> Tool:
        """The tool of a definition, made once."""
        known = self._made_of.get((entry.name, definition.name))
        if known is not None and known[0] is entry and known[1] == definition:
            return known[2]
        made = upstream_tool(self.servers, entry, definition)
        tool = _kept(super().find(made.name), made)
        self._made_of[entry.name, definition.name] = (entry, definition, tool)
        return tool

    def _late(self, name: str) -> Tool | None:
        """A tool of a server that was not asked yet. A name that could be of several servers runs none of them."""
        if self._own is not None and self._own.find(name) is not None:
            return None
        found = [(server, tool) for server in self._usable() if (tool := self._late_name(server, name))]
        if len(found) > 1:
            return colliding_tool(name, found)
        return late_tool(self.servers, found[0][0], name, found[0][1]) if found else None

    def _late_name(self, server: ServerConfig, name: str) -> str:
        start = space_of(server.tool_name) + SEPARATOR
        return name.removeprefix(start) if name.startswith(start) and self.servers.known(server) is None else ""


def _kept(known: Tool | None, made: Tool) -> Tool:
    """The tool from before where nothing that is shown of it changed: who keeps something by it can go on."""
    return known if known is not None and _shown(known) == _shown(made) else made


def _shown(tool: Tool) -> tuple[Any, ...]:
    return (tool.name, tool.title, tool.description, tool.input_schema, tool.metadata)


def _refused(name: str, group: list[Offered]) -> Tool:
    owners = [(one.server, one.definition.name) for one in group]
    told = " and ".join(f"{tool} of {server.name}" for server, tool in owners)
    logger.warning("%s would all be %s; call them through the tools of their servers", told, name)
    return colliding_tool(name, owners)


@asynccontextmanager
async def opened_toolset(
    config: GatewayConfig, fleet: Fleet, *, state: Transactions, folder: Path, watch: bool
) -> AsyncGenerator[GatewayToolset]:
    """The tools of the servers of a fleet, kept in step with their configuration where that is watched."""
    async with AsyncExitStack() as stack:
        ledger = Ledger(CallLedger(folder / "ledger.db"))
        stack.push_async_callback(ledger.close)
        results = LargeResults(folder / "results")
        stack.callback(results.close)
        servers = Servers(
            catalogue=Catalogue(state),
            fleet=fleet,
            sender=Sender(fleet, ledger),
            results=results,
        )
        stack.push_async_callback(servers.close)
        toolset = GatewayToolset(servers)
        servers.on_change = toolset.take_over
        servers.prepare = toolset.prepare
        toolset.use(config.servers)
        if watch:
            stack.push_async_callback(_ended, asyncio.create_task(_follow(toolset, config)))
            stack.push_async_callback(_ended, asyncio.create_task(_look_around(toolset)))
        yield toolset


async def _follow(toolset: GatewayToolset, config: GatewayConfig) -> None:
    async for changed in config_changes(config):
        await toolset.servers.fleet.replace(changed.usable())
        toolset.use(changed.servers)
        logger.info("the configuration was read again; it names %s servers", len(changed.servers))


async def _look_around(toolset: GatewayToolset) -> None:
    """Take up what another process finds out or a person approves elsewhere."""
    known = toolset.known()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        try:
            now = await run_in_thread(toolset.known)
        except ToolError as error:
            # Whoever calls meanwhile is told the same; once it is mended, the next look finds out.
            logger.warning("what is known of the servers cannot be read: %s", error)
            continue
        if now != known:
            known = now
            await run_in_thread(toolset.prepare_all)
            toolset.rebuild_tools()


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
