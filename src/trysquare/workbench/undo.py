"""Undo log: what files contained before each change."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.files.root import DirectoryRoot
from trysquare.store.location import FOLDER
from trysquare.workbench.text import read_call, version_of
from trysquare.workbench.workspace import own_state_folder

MAX_CHANGES = 500
MAX_BYTES = 64 * 1024 * 1024
_ENTRY = 16 * 1024 * 1024
_SUFFIX = ".undo"


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One change of one file; versions are None where there was no file."""

    name: str
    path: str
    before: str | None
    after: str | None
    data: bytes
    """Content before the change."""
    mode: int


class UndoLog:
    """Entries in the state directory, written before the file itself is changed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._undo = root / FOLDER / "undo"

    def record(self, path: str, before: bytes | None, after: bytes | None, *, mode: int = 0o644) -> None:
        head: JsonObject = {"path": path, "before": _version(before), "after": _version(after), "mode": mode}
        name = f"{time.time_ns():020d}-{secrets.token_hex(4)}{_SUFFIX}"
        with self._opened() as folder:
            folder.write_bytes(name, json.dumps(head).encode() + b"\n" + (before or b""), mode=0o600)
            self._prune(folder)

    def last_change(self, path: str, current: bytes | None) -> Change:
        """The latest change of a file that can be undone."""
        version = _version(current)
        with self._opened() as folder:
            for change in self._changes(folder):
                if change.path != path:
                    continue
                if change.after == version:
                    return change
                # An entry whose change was never made: the process ended between the two.
                if change.before != version:
                    raise ToolError(
                        f"`{path}` has changed since the last change of these tools. Nothing was undone.",
                        code=ErrorCode.FILE_CONFLICT,
                        instruction="Read the file and edit it as it is now.",
                        next=read_call(path),
                    )
        raise ToolError(f"No recorded change of `{path}` to undo.", code=ErrorCode.FILE_NOT_FOUND)

    def forget(self, change: Change) -> None:
        with self._opened() as folder:
            folder.remove(change.name)

    def _opened(self) -> DirectoryRoot:
        own_state_folder(self._root)
        try:
            self._undo.mkdir(mode=0o700, exist_ok=True)
            return DirectoryRoot(self._undo, follow_links=False)
        except OSError as error:
            raise ToolError(
                f"The undo log is unavailable: {error}. Nothing was changed.", code=ErrorCode.STATE_UNAVAILABLE
            ) from error

    def _changes(self, folder: DirectoryRoot) -> Iterator[Change]:
        for entry in reversed(list(folder.walk(max_depth=1))):
            if entry.path.endswith(_SUFFIX):
                head, _, data = folder.read_bytes(entry.path, limit=_ENTRY).partition(b"\n")
                yield Change(name=entry.path, data=data, **cast(JsonObject, json.loads(head)))

    def _prune(self, folder: DirectoryRoot) -> None:
        size = 0
        for number, entry in enumerate(reversed(list(folder.walk(max_depth=1)))):
            size += entry.size
            if number >= MAX_CHANGES or size > MAX_BYTES:
                folder.remove(entry.path)


def _version(data: bytes | None) -> str | None:
    return None if data is None else version_of(data)
