"""code_edit: read and change lines by their numbers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import InvalidArguments
from trysquare.core.metadata import Example
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.workbench.answers import answered
from trysquare.workbench.bench import Bench
from trysquare.workbench.changing import Changed, Wish, change_text, read_text
from trysquare.workbench.editing import delete_lines, insert_lines, replace_lines
from trysquare.workbench.excerpt import around, numbered
from trysquare.workbench.kinds import KIND, ExistingFile, Line, Version


class GetLines(ToolArguments):
    """Arguments of code_edit get_lines."""

    action: Literal["get_lines"]
    path: ExistingFile
    start_line: Line = 1
    end_line: Annotated[int | None, Field(description="Last line", ge=1, json_schema_extra={KIND: "line"})] = None


class EditLines(ToolArguments):
    """Arguments of code_edit edit_lines."""

    action: Literal["edit_lines"]
    path: ExistingFile
    start_line: Line
    end_line: Annotated[int, Field(description="Last line", ge=1, json_schema_extra={KIND: "line"})]
    new_content: Annotated[str, Field(description="The lines that take their place")]
    version: Version = None


class InsertAtLine(ToolArguments):
    """Arguments of code_edit insert_at_line."""

    action: Literal["insert_at_line"]
    path: ExistingFile
    line_number: Annotated[int, Field(description="Line before which it goes", ge=1, json_schema_extra={KIND: "line"})]
    content: Annotated[str, Field(description="The new lines")]
    version: Version = None


class DeleteLines(ToolArguments):
    """Arguments of code_edit delete_lines."""

    action: Literal["delete_lines"]
    path: ExistingFile
    start_line: Line
    end_line: Annotated[int, Field(description="Last line", ge=1, json_schema_extra={KIND: "line"})]
    version: Version = None


CodeEditArguments = GetLines | EditLines | InsertAtLine | DeleteLines


def code_edit_tool(bench: Bench) -> Tool:
    """The tool for lines."""

    def code_edit(args: CodeEditArguments, context: CallContext) -> Result[Any]:
        """Read and change lines of a file by number."""
        return _done(bench, args, context.principal.subject)

    return tool(
        code_edit,
        room="workbench",
        category="code",
        requirement="required",
        use_when="you know which lines to read or change",
        avoid_when="you can quote the old text: file replace needs no line numbers",
        limits="Read the lines first; a file that changed since is left alone",
        read_only=False,
        # Whatever it changes, undo brings back.
        destructive=False,
        open_world=False,
        result_limit=None,
        meta={"trysquare/read_only_actions": ("get_lines",)},
        examples=(
            Example(
                arguments={"action": "get_lines", "path": "src/app.py", "start_line": 10, "end_line": 40},
                explanation="Thirty lines with their numbers.",
            ),
            Example(
                arguments={
                    "action": "edit_lines", "path": "src/app.py", "start_line": 12, "end_line": 13,
                    "new_content": "    return total\n",
                },
                explanation="One line in the place of two.",
            ),
        ),
    )  # fmt: skip


def _done(bench: Bench, args: CodeEditArguments, caller: str) -> Result[Any]:
    if isinstance(args, GetLines):
        return _shown(read_text(bench, args.path, caller), args)
    wish = Wish(path=args.path, caller=caller, version=args.version, needs_sight=True)
    match args:
        case EditLines():
            changed = change_text(
                bench,
                wish,
                lambda text: replace_lines(text, args.start_line, args.end_line, args.new_content, args.path),
            )
            first, count, what = args.start_line, _count(args.new_content), "Changed"
        case InsertAtLine():
            changed = change_text(
                bench, wish, lambda text: insert_lines(text, args.line_number, args.content, args.path)
            )
            first, count, what = args.line_number, _count(args.content), "Inserted"
        case DeleteLines():
            changed = change_text(
                bench, wish, lambda text: delete_lines(text, args.start_line, args.end_line, args.path)
            )
            first, count, what = args.start_line, 0, "Deleted"
    shown = around(changed.text, first, first + max(count - 1, 0))
    return answered(f"{what}; {changed.path} now:\n{shown}", modified_files=[changed.path], data=_about(changed))


def _shown(read: Changed, args: GetLines) -> Result[Any]:
    total = len(read.text.lines())
    if args.start_line > max(total, 1) or (args.end_line is not None and args.end_line < args.start_line):
        raise InvalidArguments(f"`{read.path}` has {total} lines; from {args.start_line} there is nothing to show.")
    excerpt = numbered(read.text, args.start_line, args.end_line)
    wanted = min(args.end_line or total, total)
    following: JsonObject | None = None
    if excerpt.last < wanted:
        following = {
            "tool": "code_edit",
            "arguments": {"action": "get_lines", "path": read.path, "start_line": excerpt.last + 1},
        }
    return answered(excerpt.output, data=_about(read), next=following)


def _about(file: Changed) -> JsonObject:
    return {"path": file.path, "version": file.version, "lines": len(file.text.lines())}


def _count(content: str) -> int:
    return max(1, content.count("\n") + (not content.endswith("\n")))
