"""`trysquare list`: show the tools that a client sees, with their cost in tokens."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from trysquare.app import App, open_app
from trysquare.catalog.descriptions import compact_description, definition_tokens, usage_line
from trysquare.catalog.search import HOW_TO_ASK, ToolIndex, doubts, server_of
from trysquare.catalog.toolset import CATALOG_TOOLSET, listed
from trysquare.cli.command import Command, option
from trysquare.cli.options import JSON, add_shared_options
from trysquare.cli.source import HEADER, SERVER, load_source, remote_target, terminal_client
from trysquare.cli.terminal import count, print_report, print_table
from trysquare.core.json import JsonObject, one_line_json
from trysquare.core.result import Result
from trysquare.core.signature import PassthroughArguments
from trysquare.core.tokens import count_tokens
from trysquare.core.tool import Tool
from trysquare.providers import state_file
from trysquare.search import default_vectors
from trysquare.store import LazyDatabase

if TYPE_CHECKING:
    from trysquare.client import Client
    from trysquare.core.context import CallContext
    from trysquare.gateway.models import ToolDefinition
    from trysquare.settings.load import Loaded

_VECTOR_SECONDS = 2.0
"""How long the answer to `--find` may wait for vectors, most of which are stored."""


async def list_tools(arguments: argparse.Namespace) -> None:
    """Print the tools, their cost, prompts and resources."""
    target = remote_target(arguments, arguments.source)
    if target is not None:
        async with terminal_client(target) as client:
            if arguments.find is not None:
                _print_found(map(_as_tool, await client.list_tools()), arguments.find, json=arguments.json)
            else:
                await _list_remote(client, json=arguments.json)
        return
    loaded = load_source(arguments, arguments.source)
    if arguments.choices or arguments.forget_choices:
        _print_choices(loaded, forget=arguments.forget_choices, json=arguments.json)
        return
    async with open_app(loaded.settings, origins=loaded.origins, prestart=False, lifespans=False) as app:
        await app.wait_ready()
        if arguments.find is not None:
            usable = [tool for tool in app.toolset.tools() if tool.metadata.toolset != CATALOG_TOOLSET]
            _print_found(usable, arguments.find, json=arguments.json)
            return
        shown = app.toolset.tools() if arguments.all else listed(app.toolset, app.profiles)
        print_report(_as_json(app, shown), lambda: _print(app, shown), json=arguments.json)


def _print_found(tools: Iterable[Tool], query: str, *, json: bool) -> None:
    """Print the tools nearest to a query, as `find_tools` returns them to a model."""
    vectors = default_vectors()
    index = ToolIndex(tools, vectors=vectors)
    matches = index.search(query)
    # The answer is computed once, so it may wait for vectors that are stored already, and no longer.
    if vectors is not None and vectors.wait(_VECTOR_SECONDS):
        matches = index.search(query)
    report = [
        {
            "name": one.tool.name,
            "server": server_of(one.tool),
            "fit": one.fit,
            "signature": usage_line(one.tool.name, one.tool.input_schema),
            "description": _first_line(one.tool.description),
        }
        for one in matches
    ]

    def show() -> None:
        rows = [(row["name"], row["server"], row["fit"], row["description"]) for row in report]
        print_table(("TOOL", "SERVER", "FIT", "PURPOSE"), rows)
        if not report:
            print("\nThere are no tools.")
        elif doubts(matches):
            print(f"\n{doubts(matches)} Ask with {HOW_TO_ASK}.")

    print_report(report, show, json=json)


def _print_choices(loaded: Loaded, *, forget: bool, json: bool) -> None:
    """Print, or forget, which tools were called after a search in this project (`search.learn`)."""
    from trysquare.store.choices import StoredChoices

    with closing(LazyDatabase(state_file(loaded.settings, loaded.origins))) as state:
        choices = StoredChoices(state)
        if forget:
            there = len(choices.all())
            print(f"Forgot {count(choices.clear() if there else 0, 'choice')}.")
            return
        found = choices.all()
    rows = [(one.term, one.tool, str(one.count)) for one in found]
    report = [{"term": one.term, "tool": one.tool, "count": one.count} for one in found]
    print_report(report, lambda: print_table(("TERM", "TOOL", "CALLED"), rows), json=json)


def _as_tool(remote: ToolDefinition) -> Tool:
    """A tool of another server, to be found and not called."""

    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        raise AssertionError("a tool of another server is found here, not called")

    arguments = PassthroughArguments(wire=remote.input_schema)
    return Tool(name=remote.name, title=remote.title, description=remote.description, arguments=arguments, call=call)


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
_FIND = option("--find", metavar="TEXT", help="show the callable tools nearest to a text, each likely or unsure")
_CHOICES = option("--choices", action="store_true", help="show what searches have learnt (`search.learn`)")
_FORGET = option("--forget-choices", action="store_true", help="forget what searches have learnt")
COMMAND = Command(
    list_tools,
    (SERVER, _ALL, _FIND, _CHOICES, _FORGET, JSON, HEADER, add_shared_options),
    takes_command=True,
    examples=(
        "trysquare list server.py",
        'trysquare list server.py --find "rename file"',
        "trysquare list -- npx -y @modelcontextprotocol/server-everything",
    ),
)
