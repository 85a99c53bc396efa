"""The gateway's tools as one set, which follows the configuration, the catalogue and the servers."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trysquare.core.tool import Tool
from trysquare.core.toolset import ChangingToolset
from trysquare.gateway.finding import Finder, Offered
from trysquare.gateway.naming import SEPARATOR, space_of
from trysquare.gateway.server import Definition, ServerConfig, ServerEntry
from trysquare.gateway.servers import Servers
from trysquare.gateway.tools import colliding_tool, gateway_tool, late_tool, read_tool, server_tool, upstream_tool

logger = logging.getLogger("trysquare.gateway")


class GatewayToolset(ChangingToolset):
    """The tools of all servers. What a call finds out about a server changes no description that a client has seen."""

    def __init__(self, servers: Servers) -> None:
        super().__init__()
        self.servers = servers
        self._finder = Finder(lambda: self._offered)
        self._offered: dict[str, Offered] = {}
        self._told: dict[str, tuple[str, ...]] = {}
        """The names of tools in each server's description."""

    def use(self, entries: Mapping[str, ServerEntry]) -> None:
        """Go on with these servers, and tell the listeners if that makes other tools."""
        same = {name for name, entry in entries.items() if self.servers.entries.get(name) == entry}
        self.servers.use(entries)
        self._told = {name: self._told[name] if name in same else self._names(entry) for name, entry in entries.items()}
        self.rebuild()

    def take_over(self, server: str) -> None:
        """A server says that its tools are others now: this is no doing of a call, so its description may change."""
        if (entry := self.servers.entries.get(server)) is not None:
            self._told[server] = self._names(entry)
        self.rebuild()

    def rebuild(self) -> None:
        """Make the tools anew from what is known, and tell the listeners if they are others."""
        known = {tool.name: tool for tool in self.tools()}
        made = [_kept(known.get(tool.name), tool) for tool in self._made()]
        if len(made) != len(known) or any(known.get(tool.name) is not tool for tool in made):
            self.replace(tools=made)

    def find(self, name: str) -> Tool | None:
        """A tool by its name; also one of a server that was not asked yet what it has."""
        return super().find(name) or self._late(name)

    def _names(self, entry: ServerEntry) -> tuple[str, ...]:
        return tuple(self.servers.names(entry) or ()) if isinstance(entry, ServerConfig) else ()

    def _made(self) -> Iterator[Tool]:
        offered: dict[str, list[Offered]] = {}
        for name, entry in self.servers.entries.items():
            definitions = (self.servers.known(entry) or ()) if isinstance(entry, ServerConfig) else ()
            yield server_tool(self.servers, entry, self._told.get(name, ()), alone=not definitions)
            for one in self._each(entry, definitions):
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
            tool = upstream_tool(self.servers, entry, definition)
            kept = _kept(super().find(tool.name), tool)
            yield Offered(tool=kept, server=entry, definition=definition)

    def _late(self, name: str) -> Tool | None:
        for entry in self.servers.entries.values():
            start = space_of(entry.tool_name) + SEPARATOR
            if isinstance(entry, ServerConfig) and name.startswith(start) and self.servers.known(entry) is None:
                return late_tool(self.servers, entry, name, name.removeprefix(start))
        return None


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
