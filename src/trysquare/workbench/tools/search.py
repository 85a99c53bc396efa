"""The `search` tool: lines by pattern, files and definitions by name."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import ToolError
from trysquare.core.metadata import Example
from trysquare.core.result import Result, answered
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool
from trysquare.files.globs import file_matches
from trysquare.workbench.context import Directory, ExistingFile, WorkspaceContext, workbench_tool
from trysquare.workbench.grep import Hit, Query
from trysquare.workbench.outline import SUFFIXES, Language, can_outline, no_parser, outline_of
from trysquare.workbench.text import decoded
from trysquare.workbench.workspace import MAX_ENTRIES, display_path, walk

_MAX_CANDIDATES = 5_000

Pattern = Annotated[str, Field(description="Regular expression; for find_files a glob", min_length=1, max_length=1_000)]
Most = Annotated[int, Field(description="Most results", ge=1, le=1_000)]
IgnoreCase = Annotated[bool, Field(description="Ignore case")]


class GrepFiles(ToolArguments):
    action: Literal["grep"]
    pattern: Pattern
    directory: Directory = "."
    file_pattern: Annotated[str | None, Field(description="Glob of files, such as *.py", max_length=300)] = None
    case_insensitive: IgnoreCase = False
    max_results: Most = 100


class FindFiles(ToolArguments):
    action: Literal["find_files"]
    pattern: Pattern
    directory: Directory = "."
    max_results: Most = 100


class FindInFile(ToolArguments):
    action: Literal["find_in_file"]
    path: ExistingFile
    pattern: Pattern
    case_insensitive: IgnoreCase = False
    max_results: Most = 100


class FindDefinition(ToolArguments):
    action: Literal["find_definition"]
    name: Annotated[str, Field(description="Function, class, type or variable", min_length=1, max_length=200)]
    language: Annotated[Language | None, Field(description="Only in this language")] = None
    directory: Directory = "."
    max_results: Most = 100


SearchArguments = GrepFiles | FindFiles | FindInFile | FindDefinition


# Documented as in guide/tools/README.md.
def search_tool(ctx: WorkspaceContext) -> Tool:
    async def search(args: SearchArguments) -> Result[Any]:
        """Find lines, files and definitions."""
        match args:
            case GrepFiles():
                query = Query(
                    pattern=args.pattern,
                    below=ctx.workspace.path(args.directory),
                    file_patterns=(args.file_pattern,) if args.file_pattern else (),
                    ignore_case=args.case_insensitive,
                    limit=args.max_results,
                )
                return _response(*await ctx.grep.search(query))
            case FindInFile():
                path = ctx.workspace.path(args.path)
                await run_in_thread(lambda: decoded(ctx.workspace.read(path), path))
                query = Query(pattern=args.pattern, ignore_case=args.case_insensitive, limit=args.max_results)
                return _response(*await ctx.grep.search(query, [path]), is_one_file=True)
            case FindFiles():
                return await run_in_thread(lambda: _find_files(ctx, args))
            case FindDefinition():
                return await _find_definition(ctx, args)

    return workbench_tool(
        search,
        category="code",
        use_when="you look for a text, a file or where something is defined",
        avoid_when="you know the file: code_edit get_lines shows it",
        limits="Text files up to 4 MB; node_modules, caches and virtual environments are left out",
        read_only=True,
        idempotent=True,
        examples=(
            Example(
                arguments={"action": "grep", "pattern": "def parse", "file_pattern": "*.py"},
                explanation="Lines of Python files.",
            ),
            Example(arguments={"action": "find_files", "pattern": "src/**/test_*.py"}, explanation="Files by name."),
        ),
    )


def _response(hits: list[Hit], more: bool, *, is_one_file: bool = False) -> Result[Any]:
    lines = [("" if is_one_file else f"{display_path(hit.path)}:") + f"{hit.line}: {hit.text}" for hit in hits]
    return _list_response(lines, more=more)


def _list_response(lines: list[str], *, more: bool) -> Result[Any]:
    warnings = (f"More than {len(lines)} results. Narrow the search or raise `max_results`.",) if more else ()
    return answered("\n".join(lines) or "Nothing was found.", data={"count": len(lines)}, warnings=warnings)


def _find_files(ctx: WorkspaceContext, args: FindFiles) -> Result[Any]:
    below = ctx.workspace.path(args.directory)
    found: list[str] = []
    for number, each in enumerate(walk(ctx.workspace, below)):
        inside = each.path if below == "." else each.path[len(below) + 1 :]
        if each.is_file and file_matches(inside, args.pattern):
            found.append(display_path(each.path))
        if number > MAX_ENTRIES or len(found) > args.max_results:
            return _list_response(found[: args.max_results], more=True)
    return _list_response(found, more=False)


async def _find_definition(ctx: WorkspaceContext, args: FindDefinition) -> Result[Any]:
    if args.language is not None and not can_outline(args.language):
        raise no_parser(args.language)
    suffixes = [
        end for end, language in SUFFIXES.items() if args.language in (None, language) and can_outline(language)
    ]
    query = Query(
        pattern=rf"\b{re.escape(args.name)}\b",
        below=ctx.workspace.path(args.directory),
        file_patterns=[f"*{end}" for end in suffixes],
        limit=_MAX_CANDIDATES,
    )
    hits, more = await ctx.grep.search(query)
    paths = dict.fromkeys(hit.path for hit in hits)
    lines = await run_in_thread(lambda: [line for path in paths for line in _definitions(ctx, path, args.name)])
    return _list_response(lines[: args.max_results], more=len(lines) > args.max_results or more)


def _definitions(ctx: WorkspaceContext, path: str, name: str) -> list[str]:
    """Definitions of a name in a file; none if it cannot be read or parsed."""
    try:
        symbols = outline_of(path, decoded(ctx.workspace.read(path), path).content).symbols
    except ToolError:
        return []
    found = (each for each in symbols if each.name == name)
    return [f"{display_path(path)}:{each.line}-{each.end_line}: {each.kind} {name}" for each in found]
