"""`trysquare list`: show the tools that a client sees, with their cost in tokens."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trysquare.app import App, open_app
from trysquare.catalog.descriptions import compact_description, definition_tokens
from trysquare.catalog.toolset import listed
from trysquare.cli.command import Command, option
from trysquare.cli.options import JSON, add_shared_options
from trysquare.cli.source import HEADER, SERVER, load_source, remote_target, terminal_client
from trysquare.cli.terminal import count, print_report, print_table
from trysquare.core.json import one_line_json
from trysquare.core.tokens import count_tokens
from trysquare.core.tool import Tool

if TYPE_CHECKING:
    from trysquare.client import Client


async def list_tools(arguments: argparse.Namespace) -> None:
    """Print the tools, their cost, prompts and resources."""
    target = remote_target(arguments, arguments.source)
    if target is not None:
        async with terminal_client(target) as client:
            await _list_remote(client, json=arguments.json)
        return
    loaded = load_source(arguments, arguments.source)
    async with open_app(loaded.settings, origins=loaded.origins, prestart=False, lifespans=False) as app:
        await app.wait_ready()
        shown = app.toolset.tools() if arguments.all else listed(app.toolset, app.profiles)
        print_report(_as_json(app, shown), lambda: _print(app, shown), json=arguments.json)


async def _list_remote(client: Client, *, json: bool) -> None:
    """Print what another server lists."""
    tools, prompts = await client.list_tools(), await client.list_prompts()
    resources = [*await client.list_resources(), *await client.list_resource_templates()]
    definitions = [
        {"name": tool.name, "title": tool.title, "description": tool.description, "input_schema": tool.input_schema}
        for tool in tools
    ]
    costs = [count_tokens(one_line_json(definition)) for definition in definitions]
    report = {
        "tools": [{**definition, "tokens": cost} for definition, cost in zip(definitions, costs, strict=True)],
        "tokens": sum(costs),
        "prompts": [{"name": prompt.name, "description": prompt.description} for prompt in prompts],
        "resources": [{"uri_template" if one.is_template else "uri": one.uri, "name": one.name} for one in resources],
    }

    def show() -> None:
        rows = [(tool.name, str(cost), _first_line(tool.description)) for tool, cost in zip(tools, costs, strict=True)]
        print_table(("TOOL", "TOKENS", "PURPOSE"), rows)
        _print_others(
            [(prompt.name, prompt.description) for prompt in prompts],
            [(one.uri, one.description or one.name) for one in resources],
        )
        print(f"\n{count(len(tools), 'tool')} listed, {count(sum(costs), 'token')}.")

    print_report(report, show, json=json)


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
        "toolset": tool.metadata.toolset,
        "category": tool.metadata.category,
        "tokens": definition_tokens(tool),
    }


def _print(app: App, tools: Sequence[Tool]) -> None:
    costs = [definition_tokens(tool) for tool in tools]
    rows = [
        (tool.name, tool.metadata.category or tool.metadata.toolset, str(cost), _first_line(tool.description))
        for tool, cost in zip(tools, costs, strict=True)
    ]
    print_table(("TOOL", "CATEGORY", "TOKENS", "PURPOSE"), rows)
    _print_prompts_and_resources(app)
    if not app.plain.tools():
        print("\nThere are no tools yet; name some: trysquare list server.py, or `tools` in trysquare.toml.")
        return
    more = len(app.toolset.tools()) - len(tools)
    unlisted = f"; --all shows {more} more that can be called" if more else ""
    print(f"\n{count(len(tools), 'tool')} listed ({count(sum(costs), 'token')}){unlisted}.")


def _print_prompts_and_resources(app: App) -> None:
    prompts = [(prompt.name, prompt.description) for prompt in app.toolset.prompts()]
    resources = [(one.uri, one.description or one.name) for one in app.toolset.resources()]
    templates = [(one.uri_template, one.description or one.name) for one in app.toolset.templates()]
    _print_others(prompts, [*resources, *templates])


def _print_others(prompts: Sequence[tuple[str, str]], resources: Sequence[tuple[str, str]]) -> None:
    for heading, rows in (("PROMPT", prompts), ("RESOURCE", resources)):
        if rows:
            print()
            print_table((heading, "PURPOSE"), [(name, _first_line(text)) for name, text in rows])


def _first_line(text: str) -> str:
    return next(iter(text.strip().splitlines()), "")


_ALL = option("--all", action="store_true", help="show every callable tool, listed or not")
COMMAND = Command(
    list_tools,
    (SERVER, _ALL, JSON, HEADER, add_shared_options),
    takes_command=True,
    examples=("trysquare list server.py", "trysquare list -- npx -y @modelcontextprotocol/server-everything"),
)
