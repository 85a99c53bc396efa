"""search: files by their name, lines by a pattern, definitions by their name."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import ToolError
from trysquare.core.metadata import Example
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool, tool
from trysquare.workbench.answers import answered
from trysquare.workbench.bench import Bench
from trysquare.workbench.finding.globs import matches
from trysquare.workbench.finding.grep import Hits, Query
from trysquare.workbench.kinds import Directory, ExistingFile
from trysquare.workbench.outline.outline import can_outline, no_parser, outline_of
from trysquare.workbench.outline.symbols import SUFFIXES, Language, Symbol
from trysquare.workbench.text import decoded
from trysquare.workbench.tree import MOST_ENTRIES, shown, walk

_MOST_CANDIDATES = 5_000

Pattern = Annotated[str, Field(description="Regular expression; for find_files a glob", min_length=1, max_length=1_000)]
Most = Annotated[int, Field(description="Most results", ge=1, le=1_000)]
IgnoreCase = Annotated[bool, Field(description="Ignore case")]


class GrepFiles(ToolArguments):
    """Arguments of search grep."""

    action: Literal["grep"]
    pattern: Pattern
    directory: Directory = "."
    file_pattern: Annotated[str | None, Field(description="Glob of files, such as *.py", max_length=300)] = None
    case_insensitive: IgnoreCase = False
    max_results: Most = 100


class FindFiles(ToolArguments):
    """Arguments of search find_files."""

    action: Literal["find_files"]
    pattern: Pattern
    directory: Directory = "."
    max_results: Most = 100


class FindInFile(ToolArguments):
    """Arguments of search find_in_file."""

    action: Literal["find_in_file"]
    path: ExistingFile
    pattern: Pattern
    case_insensitive: IgnoreCase = False
    max_results: Most = 100


class FindDefinition(ToolArguments):
    """Arguments of search find_definition."""

    action: Literal["find_definition"]
    name: Annotated[str, Field(description="Function, class, type or variable", min_length=1, max_length=200)]
    language: Annotated[Language | None, Field(description="Only in this language")] = None
    directory: Directory = "."
    max_results: Most = 100


SearchArguments = GrepFiles | FindFiles | FindInFile | FindDefinition


def search_tool(bench: Bench) -> Tool:
    """The tool that finds things."""

    async def search(args: SearchArguments) -> Result[Any]:
        """Find lines, files and definitions."""
        match args:
            case GrepFiles():
                return _told(await bench.grep.search(_query(bench, args)))
            case FindInFile():
                path = bench.workspace.path(args.path)
                await run_in_thread(lambda: decoded(bench.workspace.read(path), path))
                query = Query(pattern=args.pattern, ignore_case=args.case_insensitive, limit=args.max_results)
                return _told(await bench.grep.search(query, [path]), only=path)
            case FindFiles():
                return await run_in_thread(lambda: _find_files(bench, args))
            case FindDefinition():
                return await _find_definition(bench, args)

    return tool(
        search,
        room="workbench",
        category="code",
        requirement="required",
        use_when="you look for a text, a file or where something is defined",
        avoid_when="you know the file: code_edit get_lines shows it",
        limits="Text files up to 4 MB; node_modules, caches and virtual environments are left out",
        read_only=True,
        idempotent=True,
        open_world=False,
        result_limit=None,
        examples=(
            Example(
                arguments={"action": "grep", "pattern": "def parse", "file_pattern": "*.py"},
                explanation="Lines of Python files.",
            ),
            Example(arguments={"action": "find_files", "pattern": "src/**/test_*.py"}, explanation="Files by name."),
        ),
    )


def _query(bench: Bench, args: GrepFiles) -> Query:
    return Query(
        pattern=args.pattern,
        below=bench.workspace.path(args.directory),
        file_patterns=(args.file_pattern,) if args.file_pattern else (),
        ignore_case=args.case_insensitive,
        limit=args.max_results,
    )


def _told(hits: Hits, *, only: str | None = None) -> Result[Any]:
    lines = [f"{hit.line}: {hit.text}" if only else f"{shown(hit.path)}:{hit.line}: {hit.text}" for hit in hits.found]
    return _listed(lines, more=hits.more)


def _listed(lines: list[str], *, more: bool) -> Result[Any]:
    warnings = (f"There are more than {len(lines)} results. Narrow the search, or ask for more.",) if more else ()
    return answered("\n".join(lines) or "Nothing was found.", data={"count": len(lines)}, warnings=warnings)


def _find_files(bench: Bench, args: FindFiles) -> Result[Any]:
    below = bench.workspace.path(args.directory)
    found: list[str] = []
    for number, each in enumerate(walk(bench.workspace, below)):
        inside = each.path if below == "." else each.path[len(below) + 1 :]
        if each.is_file and matches(inside, args.pattern):
            found.append(shown(each.path))
        if number > MOST_ENTRIES or len(found) > args.max_results:
            return _listed(found[: args.max_results], more=True)
    return _listed(found, more=False)


async def _find_definition(bench: Bench, args: FindDefinition) -> Result[Any]:
    if args.language is not None and not can_outline(args.language):
        raise no_parser(args.language)
    suffixes = [
        end for end, language in SUFFIXES.items() if args.language in (None, language) and can_outline(language)
    ]
    query = Query(
        pattern=rf"\b{re.escape(args.name)}\b",
        below=bench.workspace.path(args.directory),
        file_patterns=[f"*{end}" for end in suffixes],
        limit=_MOST_CANDIDATES,
    )
    hits = await bench.grep.search(query)
    paths = list(dict.fromkeys(hit.path for hit in hits.found))
    lines = await run_in_thread(lambda: _definitions(bench, paths, args.name))
    return _listed(lines[: args.max_results], more=len(lines) > args.max_results or hits.more)


def _definitions(bench: Bench, paths: list[str], name: str) -> list[str]:
    return [
        f"{shown(path)}:{each.line}-{each.end_line}: {each.kind} {each.name}"
        for path in paths
        for each in _symbols(bench, path)
        if each.name == name
    ]


def _symbols(bench: Bench, path: str) -> tuple[Symbol, ...]:
    """What a file defines; one that cannot be read or parsed defines nothing that could be found."""
    try:
        return outline_of(path, decoded(bench.workspace.read(path), path).content).symbols
    except ToolError:
        return ()
