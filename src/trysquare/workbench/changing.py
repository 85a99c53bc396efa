"""Changing: one change of one file, from the look at what it is to the record of what it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.workbench.bench import Bench
from trysquare.workbench.editing import difference
from trysquare.workbench.text import Text, decoded, version_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Changed:
    """A file after its change."""

    path: str
    version: str
    text: Text


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """What is to be changed, by whom, and what they know of it."""

    path: str
    caller: str
    version: str | None = None
    needs_sight: bool = False
    """Whether the caller must have read the file: lines have no meaning without it."""


def read_text(bench: Bench, given: str, caller: str) -> Changed:
    """A file as it is; from now on the caller knows this version."""
    path = bench.workspace.path(given)
    return _known(bench, path, caller, bench.workspace.read(path))


def change_text(bench: Bench, wish: Wish, edit: Callable[[Text], Text]) -> Changed:
    """Change the text of a file that is there."""
    path = bench.workspace.path(wish.path)
    with bench.writing:
        before = bench.workspace.read(path)
        text = decoded(before, path)
        _check_conflict(bench, path, wish, before, text)
        after = edit(text).encoded(path)
        _replace(bench, path, before, after)
    return _known(bench, path, wish.caller, after)


def write_text(bench: Bench, wish: Wish, content: str) -> Changed:
    """Write a file whole. One that is there must be known to the caller; its encoding and line ends are kept."""
    path = bench.workspace.path(wish.path)
    with bench.writing:
        before = bench.workspace.read_if_there(path)
        text = Text(content="") if before is None else decoded(before, path)
        if before is not None:
            _check_conflict(bench, path, wish, before, text)
        kept = text if before else Text(content="")
        after = kept.having(kept.adapted(content) if before else content).encoded(path)
        _replace(bench, path, before, after)
    return _known(bench, path, wish.caller, after)


def delete_file(bench: Bench, wish: Wish) -> str:
    """Remove a file, whatever it holds; what it held is kept for `undo`."""
    path = bench.workspace.path(wish.path)
    with bench.writing:
        before = bench.workspace.read(path)
        if wish.version is not None and wish.version != version_of(before):
            raise _conflict(bench, path, wish, before, None)
        bench.undo.record(path, before, None, mode=bench.workspace.mode(path))
        bench.workspace.remove(path)
    bench.seen.forget(wish.caller, path)
    return path


def undo_change(bench: Bench, wish: Wish) -> str:
    """Take the last change of a file back."""
    path = bench.workspace.path(wish.path)
    with bench.writing:
        current = bench.workspace.read_if_there(path)
        change = bench.undo.last_change(path, current)
        if change.before is None:
            bench.workspace.remove(path)
        else:
            bench.workspace.write(path, change.data, mode=change.mode)
        # What the caller saw was the version that is gone now.
        bench.seen.forget(wish.caller, path)
        bench.undo.forget(change)
    return path


def _known(bench: Bench, path: str, caller: str, data: bytes) -> Changed:
    text, version = decoded(data, path), version_of(data)
    bench.seen.remember(caller, path, version, text.content)
    return Changed(path=path, version=version, text=text)


def _replace(bench: Bench, path: str, before: bytes | None, after: bytes) -> None:
    if after != before:
        bench.undo.record(path, before, after)
        bench.workspace.write(path, after)


def _check_conflict(bench: Bench, path: str, wish: Wish, before: bytes, text: Text) -> None:
    sight = bench.seen.of(wish.caller, path)
    known = wish.version or (sight.version if sight is not None else None)
    if known is None and wish.needs_sight:
        raise ToolError(
            f"You have not read `{path}` yet, so nothing was changed.",
            code=ErrorCode.FILE_CONFLICT,
            instruction="Read it, then send the change again.",
            next={"tool": "file", "arguments": {"action": "read", "path": path}},
        )
    # Text that is matched exactly needs no version: a match is what the caller meant.
    if known is not None and known != version_of(before) and (wish.needs_sight or wish.version is not None):
        raise _conflict(bench, path, wish, before, text)


def _conflict(bench: Bench, path: str, wish: Wish, before: bytes, text: Text | None) -> ToolError:
    sight = bench.seen.of(wish.caller, path)
    fields = {"path": path, "version": version_of(before)}
    if sight is not None and sight.content is not None and text is not None and wish.version in (None, sight.version):
        fields["changes"] = difference(sight.content, text.content)
    return ToolError(
        f"`{path}` has changed since you read it, so nothing was changed.",
        code=ErrorCode.FILE_CONFLICT,
        instruction="Read it again; the changes of somebody else must stay.",
        next={"tool": "file", "arguments": {"action": "read", "path": path}},
        fields=fields,
    )
