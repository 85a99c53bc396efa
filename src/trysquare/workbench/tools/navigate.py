"""navigate: what lies where, and what a file holds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import InvalidArguments
from trysquare.core.metadata import Example
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.workbench.answers import answered
from trysquare.workbench.bench import Bench
from trysquare.workbench.kinds import Directory, ExistingFile
from trysquare.workbench.outline.outline import outline_of
from trysquare.workbench.outline.symbols import Outline
from trysquare.workbench.text import decoded
from trysquare.workbench.tree import SKIPPED, Found, shown, walk
from trysquare.workbench.workspace import PROTECTED

MOST_SHOWN = 500

ShowHidden = Annotated[bool, Field(description="Names that begin with a dot too")]
Extension = Annotated[str | None, Field(description="Only files that end so, such as .py", max_length=20)]


class ListDirectory(ToolArguments):
    """Arguments of navigate list_directory."""

    action: Literal["list_directory"]
    directory: Directory = "."
    show_hidden: ShowHidden = False
    extension: Extension = None


class GetFileOutline(ToolArguments):
    """Arguments of navigate get_file_outline."""

    action: Literal["get_file_outline"]
    path: ExistingFile


class FindImports(ToolArguments):
    """Arguments of navigate find_imports."""

    action: Literal["find_imports"]
    path: ExistingFile


class GetTree(ToolArguments):
    """Arguments of navigate get_tree."""

    action: Literal["get_tree"]
    directory: Directory = "."
    show_hidden: ShowHidden = False
    extension: Extension = None
    max_depth: Annotated[int, Field(description="Levels of folders", ge=1, le=20)] = 3


NavigateArguments = ListDirectory | GetFileOutline | FindImports | GetTree


def navigate_tool(bench: Bench) -> Tool:
    """The tool that shows what is there."""

    def navigate(args: NavigateArguments) -> Result[Any]:
        """Show folders, and what files define and import."""
        match args:
            case ListDirectory():
                return _entries(bench, args, depth=1)
            case GetTree():
                return _entries(bench, args, depth=args.max_depth)
            case GetFileOutline():
                return _symbols(_outline(bench, args.path))
            case FindImports():
                lines = [f"{each.line}: {each.text}" for each in _outline(bench, args.path).imports]
                return answered("\n".join(lines) or "It imports nothing.", data={"count": len(lines)})

    return tool(
        navigate,
        room="workbench",
        category="code",
        requirement="required",
        use_when="you do not know yet what the workspace or a file holds",
        avoid_when="you look for a name or a text: search finds it",
        limits="Outlines of Python, Go, JavaScript and TypeScript, where their grammars are installed",
        read_only=True,
        idempotent=True,
        open_world=False,
        result_limit=None,
        examples=(
            Example(arguments={"action": "get_tree", "max_depth": 2}, explanation="Two levels of the workspace."),
            Example(arguments={"action": "get_file_outline", "path": "src/app.py"}, explanation="What it defines."),
        ),
    )


def _entries(bench: Bench, args: ListDirectory | GetTree, *, depth: int) -> Result[Any]:
    below = bench.workspace.path(args.directory)
    # What was asked for by its own name is shown, whatever it is called.
    skipped = PROTECTED if depth == 1 else SKIPPED
    lines: list[str] = []
    for found in walk(bench.workspace, below, max_depth=depth, skipped=skipped):
        if not _is_wanted(found, args, below):
            continue
        if len(lines) == MOST_SHOWN:
            warning = f"Only the first {MOST_SHOWN} are shown. Name a folder inside."
            return answered("\n".join(lines), data={"count": MOST_SHOWN}, warnings=(warning,))
        lines.append(_line(found, below))
    return answered("\n".join(lines) or "The folder is empty.", data={"count": len(lines)})


def _is_wanted(found: Found, args: ListDirectory | GetTree, below: str) -> bool:
    inside = found.path if below == "." else found.path[len(below) + 1 :]
    if not args.show_hidden and any(piece.startswith(".") for piece in inside.split("/")):
        return False
    return found.is_folder or args.extension is None or found.name.endswith(args.extension)


def _line(found: Found, below: str) -> str:
    inside = found.path if below == "." else found.path[len(below) + 1 :]
    indent = "  " * inside.count("/")
    if found.is_folder:
        return f"{indent}{shown(found.name)}/"
    return (
        f"{indent}{shown(found.name)} ({found.size:,} bytes)"
        if found.is_file
        else f"{indent}{shown(found.name)} (link)"
    )


def _outline(bench: Bench, given: str) -> Outline:
    path = bench.workspace.path(given)
    if path == ".":
        raise InvalidArguments("Name a file.")
    return outline_of(path, decoded(bench.workspace.read(path), path).content)


def _symbols(outline: Outline) -> Result[Any]:
    lines = [f"{'  ' * each.depth}{each.line}-{each.end_line}: {each.kind} {each.name}" for each in outline.symbols]
    return answered("\n".join(lines[:MOST_SHOWN]) or "It defines nothing.", data={"count": len(lines)})
