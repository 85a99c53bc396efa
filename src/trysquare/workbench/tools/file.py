"""The `file` tool: whole files and exact replacements."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.metadata import Example
from trysquare.core.result import Result, answered
from trysquare.core.tool import Tool
from trysquare.workbench import edits
from trysquare.workbench.context import ExistingFile, Version, WorkspaceContext, WorkspacePath, workbench_tool
from trysquare.workbench.text import Text, around, excerpt


class ReadFile(ToolArguments):
    action: Literal["read"]
    path: ExistingFile


class WriteFile(ToolArguments):
    action: Literal["write"]
    path: WorkspacePath
    content: Annotated[str, Field(description="The text")]
    version: Version = None


class ReplaceText(ToolArguments):
    action: Literal["replace"]
    path: ExistingFile
    old: Annotated[str, Field(description="Text that occurs once, exactly", min_length=1)]
    new: Annotated[str, Field(description="What takes its place")]
    version: Version = None


class AppendText(ToolArguments):
    action: Literal["append"]
    path: WorkspacePath
    content: Annotated[str, Field(description="The text")]


class DeleteFile(ToolArguments):
    action: Literal["delete"]
    path: ExistingFile
    version: Version = None


class UndoChange(ToolArguments):
    action: Literal["undo"]
    path: WorkspacePath


FileArguments = ReadFile | WriteFile | ReplaceText | AppendText | DeleteFile | UndoChange


# Documented as in guide/tools/README.md.
def file_tool(ctx: WorkspaceContext) -> Tool:
    def file(args: FileArguments, context: CallContext) -> Result[Any]:
        """Read, write, change and delete files."""
        caller = context.principal.subject
        match args:
            case ReadFile():
                return _read(edits.read_text(ctx, args.path, caller))
            case WriteFile():
                request = edits.EditRequest(path=args.path, caller=caller, version=args.version, must_have_read=True)
                written = edits.write_text(ctx, request, args.content)
                return _changed(written, f"Wrote {written.path}: {len(written.text.lines())} lines.")
            case ReplaceText():
                return _replaced(ctx, args, caller)
            case AppendText():
                return _appended(ctx, args, caller)
            case DeleteFile():
                path = edits.delete_file(ctx, edits.EditRequest(path=args.path, caller=caller, version=args.version))
                return answered(f"Deleted {path}. The action `undo` restores it.", modified_files=[path])
            case UndoChange():
                path = edits.undo_change(ctx, edits.EditRequest(path=args.path, caller=caller))
                return answered(f"Undid the last change of {path}.", modified_files=[path])

    return workbench_tool(
        file,
        category="code",
        use_when="you read or create a file, or replace a text that you can quote exactly",
        avoid_when="you know the line numbers: code_edit takes less text",
        limits="Text up to 8 MB; links, .git and .trysquare are not touched; undo reverts changes of these tools",
        read_only=False,
        destructive=False,  # `undo` restores every change
        meta={"trysquare/read_only_actions": ("read",)},
        examples=(
            Example(
                arguments={"action": "replace", "path": "src/app.py", "old": "retries = 1", "new": "retries = 3"},
                explanation="One exact place.",
            ),
            Example(arguments={"action": "read", "path": "README.md"}, explanation="A whole file."),
        ),
    )


def _read(read: edits.FileVersion) -> Result[Any]:
    shown = excerpt(read.text, form="{line}")
    latin = read.text.encoding == "latin-1"
    warnings = ("The file is not UTF-8; it is shown, and will be written back, as Latin-1.",) if latin else ()
    following = shown.next_call(read.path, shown.total)
    return answered(shown.output, data=read.about(), warnings=warnings, next=following)


def _replaced(ctx: WorkspaceContext, args: ReplaceText, caller: str) -> Result[Any]:
    request = edits.EditRequest(path=args.path, caller=caller, version=args.version)
    at = 0

    def edit(text: Text) -> Text:
        nonlocal at
        changed = edits.replace_once(text, args.old, args.new, args.path)
        before, after = text.lines(), changed.lines()
        pairs = enumerate(zip(before, after, strict=False), 1)
        at = next((number for number, (old, new) in pairs if old != new), min(len(before), len(after)) or 1)
        return changed

    changed = edits.change_text(ctx, request, edit)
    shown = around(changed.text, at, at + args.new.count("\n"))
    return _changed(changed, f"Replaced in {changed.path}:\n{shown}")


def _appended(ctx: WorkspaceContext, args: AppendText, caller: str) -> Result[Any]:
    path = ctx.workspace.path(args.path)
    request = edits.EditRequest(path=path, caller=caller)
    if ctx.workspace.read_if_there(path) is None:
        changed = edits.write_text(ctx, request, args.content)
    else:
        changed = edits.change_text(ctx, request, lambda text: edits.append_text(text, args.content))
    return _changed(changed, f"Appended to {changed.path}: {len(changed.text.lines())} lines now.")


def _changed(changed: edits.FileVersion, output: str) -> Result[Any]:
    return answered(output, modified_files=[changed.path], data=changed.about())
