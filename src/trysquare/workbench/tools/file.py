"""file: read and write whole files, or change a text that is matched exactly."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.metadata import Example
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.workbench.answers import answered
from trysquare.workbench.bench import Bench
from trysquare.workbench.changing import Changed, Wish, change_text, delete_file, read_text, undo_change, write_text
from trysquare.workbench.editing import append_text, replace_once
from trysquare.workbench.excerpt import Excerpt, around, plain
from trysquare.workbench.kinds import ExistingFile, Version, WorkspacePath


class ReadFile(ToolArguments):
    """Arguments of file read."""

    action: Literal["read"]
    path: ExistingFile


class WriteFile(ToolArguments):
    """Arguments of file write."""

    action: Literal["write"]
    path: WorkspacePath
    content: Annotated[str, Field(description="The text")]
    version: Version = None


class ReplaceText(ToolArguments):
    """Arguments of file replace."""

    action: Literal["replace"]
    path: ExistingFile
    old: Annotated[str, Field(description="Text that occurs once, exactly", min_length=1)]
    new: Annotated[str, Field(description="What takes its place")]
    version: Version = None


class AppendText(ToolArguments):
    """Arguments of file append."""

    action: Literal["append"]
    path: WorkspacePath
    content: Annotated[str, Field(description="The text")]


class DeleteFile(ToolArguments):
    """Arguments of file delete."""

    action: Literal["delete"]
    path: ExistingFile
    version: Version = None


class UndoChange(ToolArguments):
    """Arguments of file undo."""

    action: Literal["undo"]
    path: WorkspacePath


FileArguments = ReadFile | WriteFile | ReplaceText | AppendText | DeleteFile | UndoChange


def file_tool(bench: Bench) -> Tool:
    """The tool for whole files."""

    def file(args: FileArguments, context: CallContext) -> Result[Any]:
        """Read, write, change and delete files."""
        return _done(bench, args, context.principal.subject)

    return tool(
        file,
        room="workbench",
        category="code",
        requirement="required",
        use_when="you read a file, make one, or replace a text that you can quote exactly",
        avoid_when="you know the line numbers: code_edit takes less text",
        limits="Text up to 8 MB; links, .git and .trysquare are not touched; undo takes back these tools' changes",
        read_only=False,
        # Whatever it changes, undo brings back.
        destructive=False,
        open_world=False,
        result_limit=None,
        meta={"trysquare/read_only_actions": ("read",)},
        examples=(
            Example(
                arguments={"action": "replace", "path": "src/app.py", "old": "retries = 1", "new": "retries = 3"},
                explanation="One exact place.",
            ),
            Example(arguments={"action": "read", "path": "README.md"}, explanation="A whole file."),
        ),
    )


def _done(bench: Bench, args: FileArguments, caller: str) -> Result[Any]:
    match args:
        case ReadFile():
            return _read(read_text(bench, args.path, caller))
        case WriteFile():
            wish = Wish(path=args.path, caller=caller, version=args.version, needs_sight=True)
            written = write_text(bench, wish, args.content)
            return _changed(written, f"Wrote {written.path}: {len(written.text.lines())} lines.")
        case ReplaceText():
            return _replaced(bench, args, caller)
        case AppendText():
            return _appended(bench, args, caller)
        case DeleteFile():
            path = delete_file(bench, Wish(path=args.path, caller=caller, version=args.version))
            return answered(f"Deleted {path}. The action `undo` brings it back.", modified_files=[path])
        case UndoChange():
            path = undo_change(bench, Wish(path=args.path, caller=caller))
            return answered(f"Took back the last change of {path}.", modified_files=[path])


def _read(read: Changed) -> Result[Any]:
    excerpt = plain(read.text)
    return answered(excerpt.output, data=_about(read), warnings=_warnings(read), next=_rest(read.path, excerpt))


def _replaced(bench: Bench, args: ReplaceText, caller: str) -> Result[Any]:
    wish = Wish(path=args.path, caller=caller, version=args.version)
    at = 0

    def edit(text: Any) -> Any:
        nonlocal at
        changed = replace_once(text, args.old, args.new, args.path)
        at = _first_difference(text.lines(), changed.lines())
        return changed

    changed = change_text(bench, wish, edit)
    shown = around(changed.text, at, at + args.new.count("\n"))
    return _changed(changed, f"Replaced in {changed.path}:\n{shown}")


def _appended(bench: Bench, args: AppendText, caller: str) -> Result[Any]:
    path = bench.workspace.path(args.path)
    wish = Wish(path=path, caller=caller)
    if bench.workspace.read_if_there(path) is None:
        changed = write_text(bench, wish, args.content)
    else:
        changed = change_text(bench, wish, lambda text: append_text(text, args.content))
    return _changed(changed, f"Appended to {changed.path}: {len(changed.text.lines())} lines now.")


def _first_difference(before: list[str], after: list[str]) -> int:
    pairs = enumerate(zip(before, after, strict=False), 1)
    return next((number for number, (old, new) in pairs if old != new), min(len(before), len(after)) or 1)


def _changed(changed: Changed, output: str) -> Result[Any]:
    return answered(output, modified_files=[changed.path], data=_about(changed))


def _about(file: Changed) -> JsonObject:
    return {"path": file.path, "version": file.version, "lines": len(file.text.lines())}


def _warnings(read: Changed) -> tuple[str, ...]:
    if read.text.encoding == "latin-1":
        return ("The file is not UTF-8; it is shown, and will be written back, as Latin-1.",)
    return ()


def _rest(path: str, excerpt: Excerpt) -> JsonObject | None:
    if not excerpt.is_cut:
        return None
    return {
        "tool": "code_edit",
        "arguments": {"action": "get_lines", "path": path, "start_line": excerpt.last + 1},
    }
