"""Driving every operation of a document against a server that checks each request."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.content.web_server import web_server
from tests.openapi.mock_api import MockApi, Seen
from tests.openapi.values import NoValue, Values
from trysquare import Client, Tool, ToolError, from_openapi

PREFIX = "/base"
FILLS = (0.0, 0.5, 1.0)
"""Chances of each optional argument, one call for each."""


@dataclass(kw_only=True)
class Driven:
    """What came of a document."""

    operations: int = 0
    refused: list[str] = field(default_factory=list)
    calls: int = 0
    accepted: int = 0
    faults: list[str] = field(default_factory=list)
    """Calls that the server or the tool refused, and results that are not what the server answered."""
    with_plain: set[str] = field(default_factory=set)
    """Tools with an argument in a header or in a list without escapes, where not every text can be."""
    without_values: list[str] = field(default_factory=list)
    """Tools for whose arguments no value was found."""

    def __str__(self) -> str:
        counts = (
            f"{self.operations} operations, {len(self.refused)} refused, {self.accepted} of {self.calls} calls right"
        )
        return f"{counts}, {len(self.without_values)} calls without arguments to try"


async def drive(document: Mapping[str, Any], *, served: Mapping[str, Any] | None = None, seed: int = 0) -> Driven:
    """Call every operation with random valid arguments, on a server of the same document or of another one."""
    api = MockApi(served or document, prefix=PREFIX, seed=seed)
    schemes = api.document.get("components", {}).get("securitySchemes", {})
    driven = Driven()
    async with web_server(api) as server:
        auth = {name: f"secret {name}" for name in schemes}
        toolset = from_openapi(document, base_url=f"{server.url}{PREFIX}", auth=auth)
        driven.operations, driven.refused = (
            len(toolset.tools()),
            [f"{each.route}: {each.reason}" for each in toolset.refused],
        )
        async with Client(toolset) as client:
            for tool in toolset.tools():
                for number, fill in enumerate(FILLS):
                    await _call(driven, api, client, tool, seed * 1000 + number, fill)
    return driven


async def _call(driven: Driven, api: MockApi, client: Client, tool: Tool, seed: int, fill: float) -> None:
    exact = tool.arguments.exact
    try:
        arguments = Values(exact, seed).of(exact, fill=fill)
    except NoValue:
        driven.without_values.append(tool.name)
        return
    driven.calls += 1
    if tool.name in driven.with_plain:
        arguments = Values(exact, seed, plain=True).of(exact, fill=fill)
    sent = as_listed(arguments, tool.arguments.wire) if seed % 2 else arguments
    before = len(api.seen)
    try:
        result = await client.call_tool(tool.name, sent)
    except ToolError as error:
        seen = api.seen[-1] if len(api.seen) > before else None
        if (
            "is sent as a header" in error.message or "separates its items" in error.message
        ) and tool.name not in driven.with_plain:
            driven.with_plain.add(tool.name)
            driven.calls -= 1
            await _call(driven, api, client, tool, seed, fill)
            return
        driven.faults.append(f"{tool.name} {one_line(sent)}: {seen.problems if seen is not None else error}")
        return
    seen = api.seen[-1]
    if fault := _fault(seen, arguments, result.text if isinstance(seen.answer, str) else result.data):
        driven.faults.append(f"{tool.name} {one_line(sent)}: {fault}")
    else:
        driven.accepted += 1


def _fault(seen: Seen, arguments: Mapping[str, Any], found: Any) -> str | None:
    received = [json.dumps(value, sort_keys=True) for value in seen.values]
    for name, value in arguments.items():
        if value not in ({}, []) and json.dumps(value, sort_keys=True) not in received:
            return f"the server did not read `{name}` as it was sent: {one_line(seen.values)}"
    if seen.is_json and found != seen.answer:
        return f"the answer was {one_line(seen.answer)}, the result is {one_line(found)}"
    return None


def as_listed(value: Any, listed: Any) -> Any:
    """The value as a client sends it that goes by the listed schema: open objects as JSON text."""
    if not isinstance(listed, dict) or isinstance(value, str):
        return value
    if listed.get("type") == "string" and isinstance(value, (dict, list)):
        return json.dumps(value)
    if isinstance(value, dict):
        properties = listed.get("properties", {})
        return {name: as_listed(part, properties.get(name)) for name, part in value.items()}
    return [as_listed(each, listed.get("items")) for each in value] if isinstance(value, list) else value


def one_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:400]


def grouped(faults: list[str]) -> Counter[str]:
    """Faults by their tool."""
    return Counter(each.partition(" ")[0] for each in faults)
