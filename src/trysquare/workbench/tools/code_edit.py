"""The `code_edit` tool: read and change lines by number."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.config import JsonDict

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import InvalidArguments
from trysquare.core.metadata import Example
from trysquare.core.result import Result, answered
from trysquare.core.tool import Tool
from trysquare.workbench import edits
from trysquare.workbench.context import KIND, ExistingFile, Line, Version, WorkspaceContext, workbench_tool
from trysquare.workbench.text import around, excerpt

_LINE: JsonDict = {KIND: "line"}
EndLine = Annotated[int, Field(description="Last line", ge=1, json_schema_extra=_LINE)]


class GetLines(ToolArguments):
    action: Literal["get_lines"]
    path: ExistingFile
    start_line: Line = 1
    end_line: Annotated[int | None, Field(description="Last line", ge=1, json_schema_extra=_LINE)] = None


class EditLines(ToolArguments):
    action: Literal["edit_lines"]
    path: ExistingFile
    start_line: Line
    end_line: EndLine
    new_content: Annotated[str, Field(description="The lines that take their place")]
    version: Version = None


class InsertAtLine(ToolArguments):
    action: Literal["insert_at_line"]
    path: ExistingFile
    line_number: Annotated[int, Field(description="Line before which it goes", ge=1, json_schema_extra=_LINE)]
    content: Annotated[str, Field(description="The new lines")]
    version: Version = None


class DeleteLines(ToolArguments):
    action: Literal["delete_lines"]
    path: ExistingFile
    start_line: Line
    end_line: EndLine
    version: Version = None


CodeEditArguments = GetLines | EditLines | InsertAtLine | DeleteLines


# Documented as in guide/tools/README.md.
def code_edit_tool(ctx: WorkspaceContext) -> Tool:
    def code_edit(args: CodeEditArguments, context: CallContext) -> Result[Any]:
        """Read and change lines of a file by number."""
        caller = context.principal.subject
        if isinstance(args, GetLines):
            return _lines(edits.read_text(ctx, args.path, caller), args)
        request = edits.EditRequest(path=args.path, caller=caller, version=args.version, must_have_read=True)
        match args:
            case EditLines(start_line=first, end_line=last, new_content=content):
                edit, what = partial(edits.replace_lines, first=first, last=last), "Changed"
            case InsertAtLine(line_number=first, content=content):
                edit, what = partial(edits.insert_lines, number=first), "Inserted"
            case DeleteLines(start_line=first, end_line=last):
                edit, what, content = partial(edits.replace_lines, first=first, last=last), "Deleted", ""
        changed = edits.change_text(ctx, request, partial(edit, given=content, path=args.path))
        count = content.count("\n") + (not content.endswith("\n"))
        shown = around(changed.text, first, first + count - 1)
        return answered(f"{what}; {changed.path} now:\n{shown}", modified_files=[changed.path], data=changed.about())

    return workbench_tool(
        code_edit,
        category="code",
        use_when="you know which lines to read or change",
        avoid_when="you can quote the old text: file replace needs no line numbers",
        limits="Read the lines first; a file that changed since is left alone",
        read_only=False,
        destructive=False,  # `undo` restores every change
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


def _lines(read: edits.FileVersion, args: GetLines) -> Result[Any]:
    total = len(read.text.lines())
    if args.start_line > max(total, 1) or (args.end_line is not None and args.end_line < args.start_line):
        raise InvalidArguments(f"Nothing to show from line {args.start_line}: `{read.path}` has {total} lines.")
    shown = excerpt(read.text, args.start_line, args.end_line)
    following = shown.next_call(read.path, min(args.end_line or total, total))
    return answered(shown.output, data=read.about(), next=following)
