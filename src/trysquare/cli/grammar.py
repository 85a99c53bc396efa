"""`trysquare grammar`: what a model's calls are held to, in the dialect of the engine that holds them."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from trysquare.agent.offers import offer_of
from trysquare.app import App, open_app
from trysquare.cli.grammar_certify import certify_tools
from trysquare.cli.grammar_file import check_file
from trysquare.cli.logs import start_logging
from trysquare.cli.options import add_shared_options, load
from trysquare.cli.output import print_json
from trysquare.core.errors import ConfigurationError, ErrorCode, NotFound, ToolError
from trysquare.core.nearest import nearest
from trysquare.grammar.call_grammar import CallableTool, CallGrammar
from trysquare.grammar.gbnf import schema_to_gbnf
from trysquare.grammar.lark import schema_to_lark
from trysquare.grammar.openai_schema import openai_format, strict_schema
from trysquare.grammar.refusals import Unsupported
from trysquare.grammar.schema_reading import read_schema
from trysquare.grammar.schema_writing import schema_of

FORMATS = ("gbnf", "lark", "json-schema", "openai")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `grammar`."""
    parser.add_argument("--format", choices=FORMATS, default="gbnf", help="the dialect (default: gbnf)")
    parser.add_argument("--tool", action="append", metavar="NAME", help="only this tool; may be given several times")
    parser.add_argument("--parallel", action="store_true", help="an answer is an array of calls")
    parser.add_argument("--tokens", type=int, metavar="N", help="no answer is longer than N tokens (gbnf and lark)")
    parser.add_argument("--schema", type=Path, metavar="FILE", help="a JSON schema instead of the calls of tools")
    parser.add_argument("--check", type=Path, metavar="FILE", help="read a GBNF file and say what is wrong with it")
    parser.add_argument("--text", action="append", metavar="TEXT", help="with --check: whether this text fits the file")
    parser.add_argument("--certify", action="store_true", help="sample from random weights and have every text checked")
    parser.add_argument("--samples", type=int, default=1_000, metavar="N", help="how many (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="which random weights (default: 0)")
    parser.add_argument(
        "--weights", type=Path, metavar="GGUF", help="with --certify: let llama.cpp write texts as well"
    )
    add_shared_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the grammar, or check or certify one."""
    if arguments.check is not None:
        return check_file(arguments.check, arguments.text or [])
    if arguments.schema is not None:
        _print_schema(arguments.schema, arguments.format)
        return 0
    return asyncio.run(_run(arguments))


async def _run(arguments: argparse.Namespace) -> int:
    loaded = load(arguments)
    start_logging(loaded)
    async with open_app(loaded.settings, origins=loaded.origins) as app:
        await app.settled()
        tools = _chosen(app, arguments.tool)
    if arguments.certify:
        return certify_tools(tools, samples=arguments.samples, seed=arguments.seed, weights=arguments.weights)
    _print_calls(CallGrammar(tools, parallel=arguments.parallel), arguments.format, arguments.tokens)
    return 0


def _chosen(app: App, names: Sequence[str] | None) -> list[CallableTool]:
    tools = {tool.name: tool for tool in app.plain.tools()}
    if not tools:
        raise ConfigurationError("there are no tools.", where="grammar", hint="Name some with --tools.")
    unknown = next((name for name in names or () if name not in tools), None)
    if unknown is not None:
        near = nearest(unknown, tools)
        raise NotFound(
            f"There is no tool `{unknown}`.",
            instruction=f"Did you mean `{near[0]}`?" if near else "See `trysquare list --all`.",
        )
    return [offer_of(tools[name]) for name in names or tools]


def _print_calls(grammar: CallGrammar, dialect: str, tokens: int | None) -> None:
    _refuse_together(grammar)
    match dialect:
        case "gbnf":
            print(grammar.gbnf(tokens=tokens), end="")
        case "lark":
            print(grammar.lark(tokens=tokens), end="")
        case "openai":
            print_json(openai_format(grammar))
        case _:
            print_json(grammar.json_schema())


def _refuse_together(grammar: CallGrammar) -> None:
    """Say at once of every tool that cannot be expressed why not."""
    refusals: list[str] = []
    for name in grammar.calls.tools:
        try:
            grammar.tree_of(name)
        except Unsupported as refusal:
            refusals.append(refusal.message)
    if refusals:
        raise ToolError(
            "\n".join(refusals),
            code=ErrorCode.GRAMMAR_UNSUPPORTED,
            instruction="Name the tools that you want with --tool, or change these schemas.",
        )


def _print_schema(file: Path, dialect: str) -> None:
    try:
        schema = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot be read as a JSON schema: {error}", where=str(file)) from error
    match dialect:
        case "gbnf":
            print(schema_to_gbnf(schema), end="")
        case "lark":
            print(schema_to_lark(schema), end="")
        case "openai":
            print_json(strict_schema(read_schema(schema)))
        case _:
            print_json(schema_of(read_schema(schema)))
