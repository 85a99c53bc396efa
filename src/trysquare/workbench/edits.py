"""Edits and writes of one file, with conflict detection and undo."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.core.json import JsonObject
from trysquare.workbench.context import WorkspaceContext
from trysquare.workbench.text import Text, decoded, read_call, version_of

_MAX_LOCATIONS = 10
_SHOWN = 120


def replace_once(text: Text, old: str, new: str, path: str) -> Text:
    """Replace `old`, which must occur exactly once."""
    if not old:
        raise InvalidArguments("`old` is empty. Send the text to replace.")
    # As given first: a file may mix line ends.
    sought = next((form for form in (old, text.adapted(old)) if form in text.content), None)
    if sought is None:
        raise _not_found(text, old, path)
    if text.content.count(sought) > 1:
        raise _ambiguous(text, sought, path)
    return text.having(text.content.replace(sought, text.adapted(new), 1))


def replace_lines(text: Text, first: int, last: int, given: str, path: str) -> Text:
    """Replace whole lines; an empty text deletes them."""
    lines = text.lines()
    if not 1 <= first <= last <= len(lines):
        raise InvalidArguments(
            f"Invalid range {first} to {last}: `{path}` has {len(lines)} lines.",
            instruction="Read the lines again; `start_line` must be at most `end_line` and within the file.",
        )
    fresh = text.adapted(given)
    was_ended = lines[last - 1].endswith(("\n", "\r"))
    if fresh and was_ended and not fresh.endswith(text.newline):
        fresh += text.newline
    return text.having("".join([*lines[: first - 1], fresh, *lines[last:]]))


def insert_lines(text: Text, number: int, given: str, path: str) -> Text:
    """Insert before a line; the number after the last line appends."""
    lines = text.lines()
    if not 1 <= number <= len(lines) + 1:
        raise InvalidArguments(
            f"`line_number` is {number}; `{path}` has {len(lines)} lines. Expected 1 to {len(lines) + 1}."
        )
    fresh = text.adapted(given)
    if not fresh.endswith(text.newline):
        fresh += text.newline
    before = "".join(lines[: number - 1])
    if before and not before.endswith(("\n", "\r")):
        before += text.newline
    return text.having(before + fresh + "".join(lines[number - 1 :]))


def append_text(text: Text, given: str) -> Text:
    """Append, starting on a new line."""
    before = text.content
    if before and not before.endswith(("\n", "\r")):
        before += text.newline
    return text.having(before + text.adapted(given))


def difference(before: str, after: str, *, most: int = 60) -> str:
    """Unified diff of bounded length."""
    lines = list(
        difflib.unified_diff(before.splitlines(), after.splitlines(), "as you read it", "now", lineterm="", n=1)
    )
    shown = [line[:_SHOWN] for line in lines[:most]]
    return "\n".join([*shown, f"… {len(lines) - most} more lines"] if len(lines) > most else shown)


def _not_found(text: Text, old: str, path: str) -> ToolError:
    wanted = old.strip().split("\n", 1)[0].strip()
    lines = text.lines()
    near = difflib.get_close_matches(wanted, {line.strip() for line in lines[:20_000]}, n=1, cutoff=0.6)
    number = next((at for at, line in enumerate(lines, 1) if near and line.strip() == near[0]), None)
    hint = f" The nearest line is {number}: {near[0][:_SHOWN]}" if number is not None else ""
    return ToolError(
        f"`old` does not occur in `{path}`.{hint}",
        code=ErrorCode.FILE_CONFLICT,
        instruction="Read the file and copy the text exactly, including spaces and line breaks.",
        next=read_call(path),
    )


def _ambiguous(text: Text, sought: str, path: str) -> ToolError:
    found: list[int] = []
    at = text.content.find(sought)
    while at >= 0 and len(found) < _MAX_LOCATIONS:
        found.append(text.content.count("\n", 0, at) + 1)
        at = text.content.find(sought, at + 1)
    return ToolError(
        f"`old` occurs {text.content.count(sought)} times in `{path}`, on lines {', '.join(map(str, found))}.",
        code=ErrorCode.FILE_CONFLICT,
        instruction="Include more surrounding lines so that it occurs once, or edit by line with `code_edit`.",
        fields={"lines": found},
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class FileVersion:
    path: str
    version: str
    text: Text

    def about(self) -> JsonObject:
        """The `data` of a result about this file."""
        return {"path": self.path, "version": self.version, "lines": len(self.text.lines())}


@dataclass(frozen=True, kw_only=True, slots=True)
class EditRequest:
    """Which file to change, for whom, and the version they expect."""

    path: str
    caller: str
    version: str | None = None
    must_have_read: bool = False
    """Line numbers mean nothing to a caller who has not read the file."""


def read_text(ctx: WorkspaceContext, given: str, caller: str) -> FileVersion:
    """Read a file and record the version for the caller."""
    path = ctx.workspace.path(given)
    return _remember(ctx, path, caller, ctx.workspace.read(path))


def change_text(ctx: WorkspaceContext, request: EditRequest, edit: Callable[[Text], Text]) -> FileVersion:
    """Change the text of an existing file."""
    path = ctx.workspace.path(request.path)
    with ctx.writing:
        before = ctx.workspace.read(path)
        text = decoded(before, path)
        _check_conflict(ctx, path, request, before, text)
        after = edit(text).encoded(path)
        _replace(ctx, path, before, after)
    return _remember(ctx, path, request.caller, after)


def write_text(ctx: WorkspaceContext, request: EditRequest, content: str) -> FileVersion:
    """Write a whole file. An existing one must have been read; its encoding and line ends stay."""
    path = ctx.workspace.path(request.path)
    with ctx.writing:
        before = ctx.workspace.read_if_there(path)
        text = Text(content="") if before is None else decoded(before, path)
        if before is not None:
            _check_conflict(ctx, path, request, before, text)
        after = text.having(text.adapted(content) if before else content).encoded(path)
        _replace(ctx, path, before, after)
    return _remember(ctx, path, request.caller, after)


def delete_file(ctx: WorkspaceContext, request: EditRequest) -> str:
    path = ctx.workspace.path(request.path)
    with ctx.writing:
        before = ctx.workspace.read(path)
        if request.version is not None and request.version != version_of(before):
            raise _conflict(ctx, path, request, before, None)
        ctx.undo.record(path, before, None, mode=ctx.workspace.mode(path))
        ctx.workspace.remove(path)
    ctx.read_versions.forget(request.caller, path)
    return path


def undo_change(ctx: WorkspaceContext, request: EditRequest) -> str:
    """Undo the last change of a file."""
    path = ctx.workspace.path(request.path)
    with ctx.writing:
        current = ctx.workspace.read_if_there(path)
        change = ctx.undo.last_change(path, current)
        if change.before is None:
            ctx.workspace.remove(path)
        else:
            ctx.workspace.write(path, change.data, mode=change.mode)
        ctx.read_versions.forget(request.caller, path)
        ctx.undo.forget(change)
    return path


def _remember(ctx: WorkspaceContext, path: str, caller: str, data: bytes) -> FileVersion:
    text, version = decoded(data, path), version_of(data)
    ctx.read_versions.remember(caller, path, version, text.content)
    return FileVersion(path=path, version=version, text=text)


def _replace(ctx: WorkspaceContext, path: str, before: bytes | None, after: bytes) -> None:
    if after != before:
        ctx.undo.record(path, before, after)
        ctx.workspace.write(path, after)


def _check_conflict(ctx: WorkspaceContext, path: str, request: EditRequest, before: bytes, text: Text) -> None:
    read = ctx.read_versions.of(request.caller, path)
    known = request.version or (read.version if read is not None else None)
    if known is None and request.must_have_read:
        raise ToolError(
            f"`{path}` was not read yet. Nothing was changed.",
            code=ErrorCode.FILE_CONFLICT,
            instruction="Read it, then send the change again.",
            next=read_call(path),
        )
    # An exact match of the old text needs no version.
    if known is not None and known != version_of(before) and (request.must_have_read or request.version is not None):
        raise _conflict(ctx, path, request, before, text)


def _conflict(ctx: WorkspaceContext, path: str, request: EditRequest, before: bytes, text: Text | None) -> ToolError:
    read = ctx.read_versions.of(request.caller, path)
    fields = {"path": path, "version": version_of(before)}
    cached = None if read is None or request.version not in (None, read.version) else read.content
    if cached is not None and text is not None:
        fields["changes"] = difference(cached, text.content)
    return ToolError(
        f"`{path}` has changed since you read it. Nothing was changed.",
        code=ErrorCode.FILE_CONFLICT,
        instruction="Read it again and keep the changes of others.",
        next=read_call(path),
        fields=fields,
    )
