"""Toolset of the gateway: the tools, prompts and resources of all servers."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import attrgetter

from trysquare.core.prompts import Prompt
from trysquare.core.resources import Resource
from trysquare.core.tool import Tool
from trysquare.core.toolset import DynamicToolset, Toolset, resource_of_template
from trysquare.gateway.listing import ToolFinder, UpstreamTool
from trysquare.gateway.models import (
    GATEWAY,
    READ,
    ServerConfig,
    ServerEntry,
    ToolDefinition,
    distinct_name,
    name_prefix,
)
from trysquare.gateway.resources import UpstreamOffers
from trysquare.gateway.service import GatewayService, Kind
from trysquare.gateway.tools import colliding_tool, gateway_tool, read_tool, server_tool, unlisted_tool, upstream_tool

logger = logging.getLogger("trysquare.gateway")


class GatewayToolset(DynamicToolset):
    """The tools of all servers. What a call learns about a server changes no description that a client has seen."""

    def __init__(self, servers: GatewayService) -> None:
        self._offers = UpstreamOffers(servers)
        super().__init__(templates=[self._offers.stored_results()])
        self.servers = servers
        self._finder = ToolFinder(lambda: self._offered)
        self._offered: dict[str, UpstreamTool] = {}
        self._described: dict[str, tuple[str, ...]] = {}
        """The tool names in each server's description."""
        self._own: Toolset | None = None
        """The other providers' tools, which take precedence."""
        self._built: dict[tuple[str, str], tuple[ServerConfig, ToolDefinition, Tool]] = {}
        self._announced: set[str] = set()
        """Servers that announced a change of their tools."""

    def configure(self, entries: Mapping[str, ServerEntry]) -> None:
        """Use these servers, and notify the listeners if the tools differ."""
        self._built = {key: built for key, built in self._built.items() if key[0] in entries}
        same = {name for name, entry in entries.items() if self.servers.entries.get(name) == entry}
        self.servers.configure(entries)
        self._described = {
            name: self._described[name] if name in same else self._names(entry) for name, entry in entries.items()
        }
        self._rebuild()

    def on_server_event(self, server: str, change: str) -> None:
        """Handle an event of the pool: `connected`, a changed list, or the URI of a changed resource."""
        if change == "connected":
            self.servers.on_connected(server)
        elif change in ("tools", "prompts", "resources"):
            self._announced |= {server} if change == "tools" else set()
            self.servers.on_list_changed(server)
        elif not self._offers.addresses.is_ours(change):
            self.notify(self._offers.addresses.served(server, change))

    def publish(self, server: str, kind: Kind) -> None:
        """List what is registered now of a server."""
        if kind == "prompts":
            self.rebuild_prompts()
        elif kind == "resources":
            self.rebuild_resources()
        else:
            entry = self.servers.entries.get(server)
            if server in self._announced and entry is not None:
                self._described[server] = self._names(entry)
            self._announced.discard(server)
            self.rebuild_tools()

    def rebuild_tools(self) -> None:
        """Build the tools from the registry, and notify the listeners if they differ."""
        known = {tool.name: tool for tool in self.tools()}
        built = [_reuse(known.get(tool.name), tool) for tool in self._build_tools()]
        if len(built) != len(known) or any(known.get(tool.name) is not tool for tool in built):
            self.replace(tools=built)
            # Tools name pages that their server need not list.
            self._offers.use_addresses(self._usable(), self._own)

    def prepare(self, server: str) -> None:
        """Build the tools of a server; called in a thread, since a long list takes a while."""
        if (entry := self.servers.entries.get(server)) is not None:
            self._upstream_tools(entry)

    def prepare_all(self) -> None:
        for name in list(self.servers.entries):
            self.prepare(name)

    def rebuild_prompts(self) -> None:
        """Build the prompts from the registry, and notify the listeners if there are any."""
        found: dict[str, list[tuple[str, Prompt]]] = {}
        for server in self._usable():
            for one in {one.name: one for one in self._offers.prompts(server)}.values():
                found.setdefault(one.name, []).append((server.name, one))
        if found or self.prompts():
            self.replace(prompts=[prompt for group in found.values() for prompt in self._distinct(group)])

    def _distinct(self, group: list[tuple[str, Prompt]]) -> list[Prompt]:
        """Prompts of one name, renamed if there are several or another provider has it."""
        is_taken = self._own is not None and self._own.find_prompt(group[0][1].name) is not None
        if len(group) == 1 and not is_taken:
            return [group[0][1]]
        logger.warning("prompt name collision, renamed: prompt=%s", group[0][1].name)
        return [replace(one, name=distinct_name(one.name, server)) for server, one in group]

    def rebuild_resources(self) -> None:
        """Build resources and templates from the registry, and notify the listeners if there are any."""
        servers = self._usable()
        self._offers.use_addresses(servers, self._own)
        found = {one.uri: one for server in servers for one in self._offers.resources(server)}
        templates = {one.uri_template: one for server in servers for one in self._offers.templates(server)}
        if found or templates or self.resources() or len(self.templates()) > 1:
            self.replace(resources=found.values(), templates=[self._offers.stored_results(), *templates.values()])

    def stand_behind(self, own: Toolset) -> None:
        """Give precedence to the names and addresses of other providers, which are trusted more than servers."""
        self._own = own
        self._rebuild()

    def known(self) -> list[tuple[ToolDefinition, ...] | None]:
        return [self.servers.registry.definitions(name) for name in list(self.servers.entries)]

    async def wait_ready(self) -> None:
        """Wait until every pending refresh has ended."""
        await self.servers.background.wait()

    def find(self, name: str) -> Tool | None:
        """A tool by its name, also of a server that was not contacted yet."""
        return super().find(name) or self._find_unlisted(name)

    def find_resource(self, uri: str) -> Resource | None:
        """A resource by its address, also one that matches a server's template."""
        return resource_of_template(uri, [self._offers.stored_results()]) or self._offers.find(uri)

    def _rebuild(self) -> None:
        self.rebuild_tools()
        self.rebuild_prompts()
        self.rebuild_resources()

    def _usable(self) -> list[ServerConfig]:
        return [entry for entry in self.servers.entries.values() if isinstance(entry, ServerConfig)]

    def _names(self, entry: ServerEntry) -> tuple[str, ...]:
        return tuple(self.servers.names(entry) or ()) if isinstance(entry, ServerConfig) else ()

    def _build_tools(self) -> Iterator[Tool]:
        offered: dict[str, list[UpstreamTool]] = {}
        taken = {GATEWAY, READ, *(entry.tool_name for entry in self.servers.entries.values())}
        for name, entry in self.servers.entries.items():
            upstream = self._upstream_tools(entry)
            yield server_tool(self.servers, self._finder, entry, self._described.get(name, ()), alone=not upstream)
            for one in upstream:
                if one.tool.name not in taken and (self._own is None or self._own.find(one.tool.name) is None):
                    offered.setdefault(one.tool.name, []).append(one)
        self._offered = {
            name: group[0]
            for name, group in offered.items()
            if len(group) == 1 and not group[0].definition.is_for_pages
        }
        for name, group in offered.items():
            yield group[0].tool if len(group) == 1 else _collision(name, group)
        yield gateway_tool(self.servers, self._finder)
        yield read_tool(self.servers)

    def _upstream_tools(self, entry: ServerEntry) -> list[UpstreamTool]:
        if not isinstance(entry, ServerConfig):
            return []
        return [
            UpstreamTool(tool=self._build(entry, definition), server=entry, definition=definition)
            for definition in self.servers.known(entry) or ()
        ]

    def _build(self, entry: ServerConfig, definition: ToolDefinition) -> Tool:
        known = self._built.get((entry.name, definition.name))
        if known is not None and known[0] is entry and known[1] == definition:
            return known[2]
        built = upstream_tool(self.servers, entry, definition)
        tool = _reuse(super().find(built.name), built)
        self._built[entry.name, definition.name] = (entry, definition, tool)
        return tool

    def _find_unlisted(self, name: str) -> Tool | None:
        """A tool of a server that was not contacted yet. A name that fits several servers runs none of them."""
        if self._own is not None and self._own.find(name) is not None:
            return None
        prefixes = [(server, name_prefix(server)) for server in self._usable()]
        found = [
            (server, tool)
            for server, prefix in prefixes
            if name.startswith(prefix) and (tool := name.removeprefix(prefix)) and self.servers.known(server) is None
        ]
        if len(found) > 1:
            return colliding_tool(name, found)
        return unlisted_tool(self.servers, found[0][0], name, found[0][1]) if found else None


_listed = attrgetter("name", "title", "description", "input_schema", "metadata")


def _reuse(known: Tool | None, built: Tool) -> Tool:
    """The previous tool where nothing that is listed changed, so that caches by identity stay valid."""
    return known if known is not None and _listed(known) == _listed(built) else built


def _collision(name: str, group: list[UpstreamTool]) -> Tool:
    owners = [(one.server, one.definition.name) for one in group]
    tools = ", ".join(f"{server.name}/{tool}" for server, tool in owners)
    logger.warning("tool name collision, call them by their server's tool: name=%s tools=%s", name, tools)
    return colliding_tool(name, owners)
