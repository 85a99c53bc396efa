"""`trysquare list`: the tools that a client would see, and what they cost in tokens."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from typing import Any

from trysquare.app import App, open_app
from trysquare.catalog.describe import compact_description
from trysquare.catalog.profiles import listed
from trysquare.catalog.tokens import definition_tokens
from trysquare.cli.logs import start_logging
from trysquare.cli.options import add_shared_options, load
from trysquare.cli.output import count, print_json, print_table
from trysquare.core.tool import Tool


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `list`."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--all", action="store_true", help="show every tool that can be called, listed or not")
    add_shared_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """List the tools."""
    return asyncio.run(_run(arguments))


async def _run(arguments: argparse.Namespace) -> int:
    loaded = load(arguments)
    start_logging(loaded)
    async with open_app(loaded.settings, origins=loaded.origins) as app:
        await app.settled()
        shown = app.toolset.tools() if arguments.all else listed(app.toolset, app.profiles)
        if arguments.json:
            print_json(_as_json(app, shown))
        else:
            _print(app, shown)
    return 0


def _as_json(app: App, tools: Sequence[Tool]) -> dict[str, Any]:
    rows = [_tool_json(tool) for tool in tools]
    return {
        "tools": rows,
        "tokens": sum(row["tokens"] for row in rows),
        "callable": len(app.toolset.tools()),
        "prompts": [{"name": prompt.name, "description": prompt.description} for prompt in app.toolset.prompts()],
        "resources": [
            *({"uri": one.uri, "name": one.name} for one in app.toolset.resources()),
            *({"uri_template": one.uri_template, "name": one.name} for one in app.toolset.templates()),
        ],
    }


def _tool_json(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": compact_description(tool),
        "input_schema": tool.input_schema,
        "room": tool.metadata.room,
        "category": tool.metadata.category,
        "tokens": definition_tokens(tool),
    }


def _print(app: App, tools: Sequence[Tool]) -> None:
    costs = [definition_tokens(tool) for tool in tools]
    rows = [
        (tool.name, tool.metadata.category or tool.metadata.room, str(cost), _first_line(tool.description))
        for tool, cost in zip(tools, costs, strict=True)
    ]
    print_table(("TOOL", "CATEGORY", "TOKENS", "PURPOSE"), rows)
    _print_beside(app)
    if not app.plain.tools():
        print("\nThere are no tools yet; name some with --tools MODULE:NAME, or in trysquare.toml.")
        return
    print(f"\n{count(len(tools), 'tool')} listed, {count(sum(costs), 'token')}; {_callable(app)}")


def _callable(app: App) -> str:
    return f"{count(len(app.toolset.tools()), 'tool')} can be called by name."


def _print_beside(app: App) -> None:
    prompts = [(prompt.name, _first_line(prompt.description)) for prompt in app.toolset.prompts()]
    resources = [(one.uri, one.description or one.name) for one in app.toolset.resources()]
    templates = [(one.uri_template, one.description or one.name) for one in app.toolset.templates()]
    for heading, rows in (("PROMPT", prompts), ("RESOURCE", [*resources, *templates])):
        if rows:
            print()
            print_table((heading, "PURPOSE"), [(name, _first_line(text)) for name, text in rows])


def _first_line(text: str) -> str:
    return next(iter(text.strip().splitlines()), "")
