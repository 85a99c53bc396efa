"""The section `discovery`: which tools are found for what people ask, beside FastMCP's BM25 search, on the same set."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, TypeAlias

from benchmarks.discovery_sets import FIRST, Entry, PublicResults, measure_public, public_tables
from benchmarks.tables import Table
from tests.gateway.requests.reading import (
    Kind,
    Request,
    read_other_requests,
    read_practice,
    read_requests,
    read_servers,
)
from trysquare.catalog import ToolIndex
from trysquare.core.context import CallContext
from trysquare.core.json import JsonObject
from trysquare.core.result import Result
from trysquare.core.signature import PassthroughArguments
from trysquare.core.tool import Tool
from trysquare.gateway.models import ToolDefinition
from trysquare.search import choose_vectors

FOUND = 5
_ASKED: dict[Kind, str] = {"keyword": "keywords", "everyday": "everyday words"}

Finding: TypeAlias = Callable[[str], Sequence[str]]
"""The tools that are found for a text, as `server.tool`, best first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One kind of request, and how many of the first tools are looked at."""

    kind: Kind
    first: int


@dataclass(slots=True)
class DiscoveryResults:
    """Of each kind of request: how often a wanted tool was found by us and by the peer, and how many there are."""

    ours: dict[Row, int] = field(default_factory=dict[Row, int])
    theirs: dict[Row, int] = field(default_factory=dict[Row, int])
    counts: dict[Row, int] = field(default_factory=dict[Row, int])
    public: PublicResults = field(default_factory=PublicResults)


def measure_discovery(results: DiscoveryResults, *, public: bool = False) -> None:
    """Ask both for everything. There is no chance in it, so that one round is as good as many."""
    if public and not results.public.cost:
        measure_public(results.public, _public_answers)
    if results.counts:
        return
    servers = read_servers()
    rows = _rows()
    texts = [request.text for asked in rows.values() for request in asked]
    results.counts = {row: len(asked) for row, asked in rows.items()}
    results.ours = _right(rows, _ours(servers))
    answers = asyncio.run(_their_answers(servers, texts))
    results.theirs = _right(rows, answers.__getitem__)


def discovery_tables(results: DiscoveryResults) -> Iterator[Table]:
    """How much is found, side by side."""
    if results.counts:
        head = ["request", "requests", "found", "Trysquare", f"FastMCP {version('fastmcp')} BM25"]
        rows = [
            [
                _ASKED[row.kind],
                str(count),
                "first" if row.first == 1 else f"among {row.first}",
                _share(results.ours[row], count),
                _share(results.theirs[row], count),
            ]
            for row, count in results.counts.items()
        ]
        yield Table(title="Finding tools: ten servers behind the gateway", head=head, rows=rows)
    yield from public_tables(results.public)


def _rows() -> dict[Row, list[Request]]:
    every = [*read_requests(), *read_practice(), *read_other_requests()]
    return {
        Row(kind=kind, first=first): [one for one in every if one.kind == kind]
        for kind in _ASKED
        for first in (1, FOUND)
    }


def _right(rows: dict[Row, list[Request]], find: Finding) -> dict[Row, int]:
    return {
        row: sum(bool(one.wanted & set(find(one.text)[: row.first])) for one in asked) for row, asked in rows.items()
    }


def _ours(servers: dict[str, list[ToolDefinition]]) -> Finding:
    choose_vectors(None)  # This table is about words; an installed encoder would join in somewhere in the middle.
    index = ToolIndex(_tool(server, one) for server, tools in servers.items() for one in tools)
    return lambda text: [_dotted(match.tool.name) for match in index.search(text, limit=FOUND)]


def _tool(server: str, definition: ToolDefinition) -> Tool:
    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        return Result.ok(arguments)

    arguments = PassthroughArguments(wire=definition.input_schema)
    return Tool(name=_named(server, definition), description=definition.description, arguments=arguments, call=call)


def _public_answers(entries: Sequence[Entry], texts: Sequence[str]) -> dict[str, list[str]]:
    """FastMCP's answers over a public set, by the ids of the set."""
    servers: dict[str, list[ToolDefinition]] = {"x": []}
    ids: dict[str, str] = {}
    for number, one in enumerate(entries):
        # The number keeps names apart that differ only in what a name may not hold.
        name = f"{one.tool().name[:50]}_{number}"
        ids[f"x.{name}"] = one.id
        servers["x"].append(ToolDefinition(name=name, description=one.description, input_schema=one.schema))
    answers = asyncio.run(_their_answers(servers, list(texts), found=FIRST[-1]))
    return {text: [ids[name] for name in names] for text, names in answers.items()}


async def _their_answers(
    servers: dict[str, list[ToolDefinition]], texts: list[str], *, found: int = FOUND
) -> dict[str, list[str]]:
    """What FastMCP's own search tool answers to each text, asked by its own client."""
    from fastmcp import Client, FastMCP
    from fastmcp.server.transforms.search import BM25SearchTransform
    from fastmcp.tools.base import Tool as PeerTool

    server = FastMCP("servers", transforms=[BM25SearchTransform(max_results=found)])
    for name, tools in servers.items():
        for one in tools:
            server.add_tool(PeerTool(name=_named(name, one), description=one.description, parameters=one.input_schema))
    async with Client(server) as client:
        return {text: await _their_answer(client, text) for text in texts}


async def _their_answer(client: Any, text: str) -> list[str]:
    answer = await client.call_tool("search_tools", {"query": text})
    return [_dotted(one["name"]) for one in answer.structured_content["result"]]


def _named(server: str, definition: ToolDefinition) -> str:
    return f"{server}__{definition.name}"


def _dotted(name: str) -> str:
    return name.replace("__", ".", 1)


def _share(right: int, count: int) -> str:
    return f"{right} ({right / count:.0%})"
