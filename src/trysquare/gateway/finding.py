"""Finding: which of all servers' tools fit a request, and what servers there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trysquare.core.result import Result, dump_json
from trysquare.core.tool import Tool
from trysquare.core.types import JsonObject
from trysquare.gateway.checking.signatures import one_line
from trysquare.gateway.listing import MOST_CHARACTERS, brief
from trysquare.gateway.server import BrokenServer, Definition, ServerConfig, ServerEntry

if TYPE_CHECKING:
    from trysquare.catalog.search import SearchIndex

_MOST = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Offered:
    """A tool of a server: as a tool of ours, and as the server defines it."""

    tool: Tool
    server: ServerConfig
    definition: Definition


class Finder:
    """Finds tools over all servers. The index is made at the first question."""

    def __init__(self, offered: Callable[[], Mapping[str, Offered]]) -> None:
        self._offered = offered
        self._index: SearchIndex | None = None

    def find(self, query: str) -> Result[Any]:
        """The tools nearest to a query, best first."""
        from trysquare.catalog.search import SearchIndex

        offered = self._offered()
        if self._index is None:
            self._index = SearchIndex()
        self._index.update(one.tool for one in offered.values())
        found = [offered[match.tool.name] for match in self._index.search(query, limit=_MOST)]
        if not found:
            return Result.ok(
                list[JsonObject](),
                message="No server has offered a tool yet.",
                instruction="List the servers with action=list, and ask one for its tools.",
            )
        return Result.ok(
            [{"server": one.server.name, **brief(one.definition)} for one in found],
            instruction="If one of these nearest tools fits, run it with action=execute, server, tool_name and"
            " tool_inputs. If none does, ask again with the action and its object in the words that a tool would use.",
        )


def servers_listing(
    entries: Mapping[str, ServerEntry], names: Callable[[ServerConfig], list[str] | None]
) -> Result[Any]:
    """Every server with the names of its tools, or with their number where that would be too long."""
    shown = [_server(entry, names) for entry in entries.values()]
    if len(dump_json(shown)) > MOST_CHARACTERS:
        shown = [{**one, "tools": len(one["tools"])} if isinstance(one.get("tools"), list) else one for one in shown]
    return Result.ok(
        shown,
        message=None if shown else "No servers are configured.",
        instruction="Name a `server` to see its tools with their inputs, or give a `query` to find some.",
    )


def _server(entry: ServerEntry, names: Callable[[ServerConfig], list[str] | None]) -> JsonObject:
    if isinstance(entry, BrokenServer):
        return {"server": entry.name, "problem": f"{entry.reason} ({entry.place})"}
    told: JsonObject = {"server": entry.name, "transport": entry.transport}
    if entry.description:
        told["purpose"] = one_line(entry.description)
    known = names(entry)
    return {**told, "tools": "not asked yet" if known is None else known}
