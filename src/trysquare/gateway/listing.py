"""Listings of the gateway: server descriptions, tool lists, signatures, search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import from_json

from trysquare.catalog.descriptions import COMPACT_PURPOSE
from trysquare.core.host_paths import without_host_paths
from trysquare.core.json import JsonObject, as_list, as_object, properties_of
from trysquare.core.result import Result, dump_json
from trysquare.core.schema.describe import LINE, LONGEST, inputs_text, one_line, shown_name
from trysquare.core.text import truncate
from trysquare.core.tokens import count_tokens
from trysquare.core.tool import Tool
from trysquare.core.untrusted import cleaned_json, cleaned_text, cleaned_value
from trysquare.gateway.arguments import CallBuilder, Detail
from trysquare.gateway.models import InvalidServer, ServerConfig, ServerEntry, ToolDefinition

if TYPE_CHECKING:
    from trysquare.catalog.search import ToolIndex

_PURPOSE = 80
"""Maximum characters of a server's configured description."""
_DESCRIPTION_TOKENS = 36
"""Tokens of purpose and tool names in one server's description; with the names a model often needs no `list`."""
_OVER_ALL = "MCP servers behind one gateway."
_MAX_OVER_ALL = 520
"""Characters of the description of the one tool over all servers."""
_SHORTEST_LINE = 24
"""Minimum characters of a server's own line."""
_REASON = 160
MAX_CHARACTERS = 40_000
"""Of a whole list; a longer one is continued."""
_SCHEMAS_CHARACTERS = 8_000
"""Of a list in which every tool has its schema, where no form was asked for."""
_DESCRIPTION = 4_000
_COMBINED = ("anyOf", "oneOf", "allOf")
_MAX_MATCHES = 5


def server_description(server: ServerEntry, tools: Sequence[str]) -> str:
    """The description of a server's tool: name, transport, purpose, tools, actions."""
    if isinstance(server, InvalidServer):
        reason = truncate(one_line(server.reason), _REASON)
        # Whoever lists the tools reads it, wherever they are.
        place = without_host_paths(f"{reason} ({server.location})")
        return f"MCP server '{_display(server.name)}' has an invalid configuration: {place}."
    purpose = truncate(one_line(server.description), _PURPOSE)
    names = names_within(tools, _DESCRIPTION_TOKENS - count_tokens(purpose))
    content = ": ".join(part for part in (purpose, names) if part)
    heading = f"MCP server '{_display(server.name)}' ({server.transport}) - provides access to multiple tools"
    return f"{heading}. {content}." if purpose else f"{heading}: {content}." if names else f"{heading}."


def gateway_description(servers: Iterable[ServerEntry]) -> str:
    """The description of the one tool over all servers, with as much of each as fits."""
    known = list(servers)
    width = (_MAX_OVER_ALL - len(_OVER_ALL)) // max(len(known), 1)
    if width >= _SHORTEST_LINE:
        return "\n".join([_OVER_ALL, *(truncate(f"- {_line(server)}", width - 1) for server in known)])
    names = ", ".join(_display(server.name) for server in known)
    return truncate(f"{_OVER_ALL} Servers: {names}", _MAX_OVER_ALL)


def _line(server: ServerEntry) -> str:
    if isinstance(server, InvalidServer):
        return f"{_display(server.name)}: invalid configuration"
    purpose = truncate(one_line(server.description), _PURPOSE)
    return f"{_display(server.name)} ({server.transport})" + (f": {purpose}" if purpose else "")


def names_within(names: Sequence[str], tokens: int) -> str:
    """As many names as fit into a number of tokens, and the number of the others."""
    shown: list[str] = []
    for name in names:
        tokens -= count_tokens(f", {name}")
        if tokens < 0:
            more = len(names) - len(shown)
            return ", ".join([*shown, f"… {more} more"]) if shown else f"{more}"
        shown.append(_display(name))
    return ", ".join(shown)


def quoted(names: Sequence[str], most: int) -> str:
    """The first names, and the number of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f"`{name}`" for name in names[:most]) + more


def _display(name: str) -> str:
    return truncate(" ".join(cleaned_text(name).split()), 64)


def listing(
    server: ServerConfig,
    definitions: Sequence[ToolDefinition],
    detail: Detail | None,
    *,
    builder: CallBuilder,
    instructions: str = "",
    offset: int = 0,
) -> Result[Any]:
    """The result of `list`, in a shorter form where it would be too long. Instructions of the server are labelled."""
    fields: JsonObject = {"server": server.name, **({"server_says": instructions} if instructions else {})}
    if not definitions:
        return Result.ok([], message=f"Server `{server.name}` has no tools.", fields=fields)
    rest = definitions[offset:]
    shown, given = _fitting(rest, detail)
    parts = ["Run one with action=execute, tool_name and tool_inputs."]
    if given != (detail or "schemas"):
        parts.append('Send `tool_name` to get one tool with its schema, or tool_inputs {"query": …} to find tools.')
    following = None
    if len(shown) < len(rest):
        onward = {"offset": offset + len(shown), **({"detail": detail} if detail else {})}
        following = builder.list(tool_inputs=onward)
        parts.append(f"`next` lists the other {len(rest) - len(shown)} tools.")
    return Result.ok(shown, instruction=" ".join(parts), fields=fields, next=following)


def tool_listing(server: ServerConfig, definition: ToolDefinition, detail: Detail) -> Result[Any]:
    return Result.ok([FORMS[detail](definition)], fields={"server": server.name})


def whole(definition: ToolDefinition) -> JsonObject:
    """One tool with its schemas."""
    entry: JsonObject = {
        "name": definition.name,
        "description": cleaned_text(definition.description)[:_DESCRIPTION],
        "inputs": cleaned_value(definition.input_schema),
    }
    if definition.output_schema is not None:
        entry["outputs"] = cleaned_value(definition.output_schema)
    if definition.annotations:
        entry["annotations"] = cleaned_value(definition.annotations)
    return entry


def callable_form(definition: ToolDefinition) -> JsonObject:
    """One tool with all that a call of it needs: name, description, schema of its inputs."""
    inputs = {
        key: part for key, part in cleaned_value(definition.input_schema).items() if key not in ("$schema", "title")
    }
    purpose = truncate(cleaned_text(definition.description or definition.title or ""), COMPACT_PURPOSE)
    return {"name": definition.name, "description": purpose, "inputs": inputs}


def brief(definition: ToolDefinition) -> JsonObject:
    """One tool with its purpose and inputs in a line each."""
    purpose = one_line(definition.description or definition.title or "")
    return {"name": definition.name, "description": purpose, "inputs": inputs_text(definition.input_schema)}


FORMS: dict[Detail, Callable[[ToolDefinition], Any]] = {
    "schemas": whole,
    "signatures": brief,
    "names": lambda definition: definition.name,
}


def _fitting(definitions: Sequence[ToolDefinition], detail: Detail | None) -> tuple[list[Any], Detail]:
    """The definitions in the requested form, or in the next shorter one that fits; of names, as many as fit."""
    if detail is None:
        shown = [callable_form(definition) for definition in definitions]
        if len(dump_json(shown)) <= _SCHEMAS_CHARACTERS:
            return shown, "schemas"
    order = list(FORMS)
    for form in order[order.index(detail or "signatures") : -1]:
        shown = [FORMS[form](definition) for definition in definitions]
        if len(dump_json(shown)) <= MAX_CHARACTERS:
            return shown, form
    ends = accumulate(len(dump_json(definition.name)) + 1 for definition in definitions)
    count = max(1, sum(end <= MAX_CHARACTERS - 1 for end in ends))
    return [definition.name for definition in definitions[:count]], "names"


def signature(definition: ToolDefinition) -> str:
    """One line: name, inputs and purpose."""
    call = f"{shown_name(definition.name)}({inputs_text(definition.input_schema)})"
    purpose = one_line(definition.description or definition.title or "")
    return truncate(f"{call} - {purpose}" if purpose else call, LONGEST + LINE)


def wire_schema(schema: Any) -> JsonObject:
    """The schema to list: without hidden text, with the properties of its alternatives merged.

    Calls are validated against the server's own schema, so nothing is lost.
    """
    known = as_object(schema)
    cleaned, count = cleaned_json(dump_json(known).encode())
    if count:
        known = cast(JsonObject, from_json(cleaned))
    properties = dict(properties_of(known))
    for combined in _COMBINED:
        for part in as_list(known.get(combined)):
            properties = {**properties_of(as_object(part)), **properties}
    plain = {key: part for key, part in known.items() if key not in (*_COMBINED, "not", "if", "then", "else")}
    return {**plain, "type": "object", "properties": properties}


@dataclass(frozen=True, kw_only=True, slots=True)
class UpstreamTool:
    """A served tool, its server, and the definition it was built from."""

    tool: Tool
    server: ServerConfig
    definition: ToolDefinition


class ToolFinder:
    """Search over the tools of all servers. The index is built by the first search."""

    def __init__(self, offered: Callable[[], Mapping[str, UpstreamTool]]) -> None:
        self._offered = offered
        self._index: ToolIndex | None = None

    async def find(self, query: str, server: str | None = None, *, read_only: bool = False) -> Result[Any]:
        """The tools nearest to a query, best first; of one server, or of those that change nothing, if asked for."""
        from trysquare.catalog.search import ASK_AGAIN, ToolIndex, doubts

        offered = self._offered()
        if self._index is None:
            self._index = ToolIndex()
        self._index.update(one.tool for one in offered.values())
        await self._index.prepare(query)
        matches = self._index.search(
            query,
            limit=_MAX_MATCHES,
            allowed=lambda tool: (
                server in (None, offered[tool.name].server.name) and (tool.metadata.read_only is True or not read_only)
            ),
        )
        if not matches:
            return Result.ok(
                list[JsonObject](),
                message="No tool is declared to change nothing." if read_only else "No server has listed a tool yet.",
                instruction="List the servers with action=list, then list the tools of one.",
            )
        named = "" if server else "server, "
        found = [(offered[match.tool.name], match) for match in matches]
        return Result.ok(
            [{"server": one.server.name, "fit": match.fit, **brief(one.definition)} for one, match in found],
            message=doubts(matches),
            instruction=f"If one of these tools fits, run it with action=execute, {named}tool_name and tool_inputs."
            f" If none does, {ASK_AGAIN}.",
        )


def servers_listing(
    entries: Mapping[str, ServerEntry], names: Callable[[ServerConfig], list[str] | None]
) -> Result[Any]:
    """Every server with the names of its tools, or their number where that would be too long."""
    shown = [_server(entry, names) for entry in entries.values()]
    if len(dump_json(shown)) > MAX_CHARACTERS:
        shown = [{**one, "tools": len(one["tools"])} if isinstance(one.get("tools"), list) else one for one in shown]
    return Result.ok(
        shown,
        message=None if shown else "No servers are configured.",
        instruction="Send `server` to list its tools with their inputs, or `query` to find tools.",
    )


def _server(entry: ServerEntry, names: Callable[[ServerConfig], list[str] | None]) -> JsonObject:
    if isinstance(entry, InvalidServer):
        return {"server": entry.name, "problem": without_host_paths(f"{entry.reason} ({entry.location})")}
    row: JsonObject = {"server": entry.name, "transport": entry.transport}
    if entry.description:
        row["purpose"] = one_line(entry.description)
    known = names(entry)
    return {**row, "tools": "not contacted yet" if known is None else known}
