"""The `navigate` tool: directories, outlines and imports."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import InvalidArguments
from trysquare.core.metadata import Example
from trysquare.core.result import Result, answered
from trysquare.core.tool import Tool
from trysquare.workbench.context import Directory, ExistingFile, WorkspaceContext, workbench_tool
from trysquare.workbench.outline import Outline, outline_of
from trysquare.workbench.text import decoded
from trysquare.workbench.workspace import PROTECTED, SKIPPED, display_path, walk

MAX_SHOWN = 500

ShowHidden = Annotated[bool, Field(description="Names that begin with a dot too")]
Extension = Annotated[str | None, Field(description="Only files that end so, such as .py", max_length=20)]


class ListDirectory(ToolArguments):
    action: Literal["list_directory"]
    directory: Directory = "."
    show_hidden: ShowHidden = False
    extension: Extension = None


class GetFileOutline(ToolArguments):
    action: Literal["get_file_outline"]
    path: ExistingFile


class FindImports(ToolArguments):
    action: Literal["find_imports"]
    path: ExistingFile


class GetTree(ToolArguments):
    action: Literal["get_tree"]
    directory: Directory = "."
    show_hidden: ShowHidden = False
    extension: Extension = None
    max_depth: Annotated[int, Field(description="Levels of folders", ge=1, le=20)] = 3


NavigateArguments = ListDirectory | GetFileOutline | FindImports | GetTree


# Documented as in guide/tools/README.md.
def navigate_tool(ctx: WorkspaceContext) -> Tool:
    def navigate(args: NavigateArguments) -> Result[Any]:
        """Show folders, and what files define and import."""
        match args:
            case ListDirectory():
                return _entries(ctx, args, depth=1)
            case GetTree():
                return _entries(ctx, args, depth=args.max_depth)
            case GetFileOutline():
                symbols = _outline(ctx, args.path).symbols
                lines = [f"{'  ' * one.depth}{one.line}-{one.end_line}: {one.kind} {one.name}" for one in symbols]
                return answered("\n".join(lines[:MAX_SHOWN]) or "It defines nothing.", data={"count": len(lines)})
            case FindImports():
                lines = [f"{each.line}: {each.text}" for each in _outline(ctx, args.path).imports]
                return answered("\n".join(lines) or "It imports nothing.", data={"count": len(lines)})

    return workbench_tool(
        navigate,
        category="code",
        use_when="you do not know yet what the workspace or a file contains",
        avoid_when="you look for a name or a text: search finds it",
        limits="Outlines of Python, Go, JavaScript and TypeScript, where their grammars are installed",
        read_only=True,
        idempotent=True,
        examples=(
            Example(arguments={"action": "get_tree", "max_depth": 2}, explanation="Two levels of the workspace."),
            Example(arguments={"action": "get_file_outline", "path": "src/app.py"}, explanation="What it defines."),
        ),
    )


def _entries(ctx: WorkspaceContext, args: ListDirectory | GetTree, *, depth: int) -> Result[Any]:
    below = ctx.workspace.path(args.directory)
    # A directory that was named explicitly is listed whatever its name.
    skipped = PROTECTED if depth == 1 else SKIPPED
    lines: list[str] = []
    for found in walk(ctx.workspace, below, max_depth=depth, skipped=skipped):
        inside = found.path if below == "." else found.path[len(below) + 1 :]
        is_shown = args.show_hidden or not any(piece.startswith(".") for piece in inside.split("/"))
        if not is_shown or not (found.is_folder or found.name.endswith(args.extension or "")):
            continue
        if len(lines) == MAX_SHOWN:
            warning = f"Only the first {MAX_SHOWN} are shown. Name a subdirectory."
            return answered("\n".join(lines), data={"count": MAX_SHOWN}, warnings=(warning,))
        kind = "/" if found.is_folder else f" ({found.size:,} bytes)" if found.is_file else " (link)"
        lines.append(f"{'  ' * inside.count('/')}{display_path(found.name)}{kind}")
    return answered("\n".join(lines) or "The directory is empty.", data={"count": len(lines)})


def _outline(ctx: WorkspaceContext, given: str) -> Outline:
    path = ctx.workspace.path(given)
    if path == ".":
        raise InvalidArguments("Name a file.")
    return outline_of(path, decoded(ctx.workspace.read(path), path).content)
