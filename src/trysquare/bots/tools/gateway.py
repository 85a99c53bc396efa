"""The gateway's tools: find one of the bot's tools by what is wanted, and do it. For clients that list few tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trysquare.bots.naming import bot_tool_name, do_tool_name
from trysquare.bots.parameters import Parameters
from trysquare.bots.projects import LiveBot
from trysquare.catalog.search import SearchIndex
from trysquare.core.context import CallContext
from trysquare.core.errors import InvalidArguments, NotFound
from trysquare.core.nearest import nearest
from trysquare.core.result import Result
from trysquare.core.tool import Tool

_MOST = 5


class Finder:
    """Finds tools of a bot. The index is made at the first question."""

    def __init__(self, tools: Callable[[], Sequence[Tool]]) -> None:
        self._tools = tools
        self._index = SearchIndex()

    def find(self, bot: LiveBot, parameters: Parameters) -> Result[Any]:
        """The tools nearest to a query, best first, and the call of the first."""
        query = parameters.given.get("query")
        if not isinstance(query, str) or not query.strip():
            raise InvalidArguments(
                "`query` is missing.", instruction='Say what is wanted: {"parameters": {"query": "gather context"}}.'
            )
        self._index.update(self._tools())
        found = [match.tool for match in self._index.search(query, limit=_MOST)]
        listed = [{"tool": tool.name, "about": tool.description.splitlines()[0]} for tool in found]
        wanted = found[0].name if found else bot_tool_name(bot.name)
        arguments = parameters.repeated(tool=wanted)
        return Result.ok(
            message=None if found else "Nothing fits these words; `next` goes on where the work stands.",
            next={"tool": do_tool_name(bot.name), "arguments": arguments},
            fields={"status": "completed", "data": {"tools": listed}},
        )


async def do(tools: Sequence[Tool], parameters: Parameters, context: CallContext) -> Result[Any]:
    """Call the tool that `tool` names, with the same parameters."""
    name = parameters.given.get("tool")
    known = {tool.name: tool for tool in tools}
    if not isinstance(name, str) or not name:
        raise InvalidArguments("`tool` is missing: the name of the tool to call.")
    found = known.get(name)
    if found is None:
        near = nearest(name, known, count=3)
        hint = f" The nearest are {', '.join(f'`{each}`' for each in near)}." if near else ""
        raise NotFound(f"There is no tool `{name[:80]}`.{hint}")
    inner = {key: value for key, value in parameters.given.items() if key != "tool"}
    return await found.call({"parameters": inner}, context)
