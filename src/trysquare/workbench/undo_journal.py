"""UndoJournal: what files were before each change, so that a change can be taken back."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.files.sealed_folder import SealedFolder
from trysquare.store.location import FOLDER
from trysquare.workbench.state_folder import own_state_folder
from trysquare.workbench.text import version_of

MOST_CHANGES = 500
MOST_BYTES = 64 * 1024 * 1024
_ENTRY = 16 * 1024 * 1024
_SUFFIX = ".undo"


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One change of one file: the version before it and the one after, None where there was no file."""

    name: str
    path: str
    before: str | None
    after: str | None
    data: bytes
    """What the file held before."""
    mode: int


class UndoJournal:
    """Entries in the workspace's state folder, written before the file itself is changed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._undo = root / FOLDER / "undo"

    def record(self, path: str, before: bytes | None, after: bytes | None, *, mode: int = 0o644) -> None:
        """Keep what a file is about to lose."""
        head: JsonObject = {"path": path, "before": _version(before), "after": _version(after), "mode": mode}
        name = f"{time.time_ns():020d}-{secrets.token_hex(4)}{_SUFFIX}"
        with self._opened() as folder:
            folder.write_bytes(name, json.dumps(head).encode() + b"\n" + (before or b""), mode=0o600)
            self._forget_old(folder)

    def last_change(self, path: str, current: bytes | None) -> Change:
        """The latest change of a file that can be taken back, or a refusal that says why there is none."""
        version = _version(current)
        with self._opened() as folder:
            for change in self._changes(folder):
                if change.path != path:
                    continue
                if change.after == version:
                    return change
                # An entry without its change: the process ended between the two.
                if change.before != version:
                    raise _changed_since(path)
        raise ToolError(f"No change of `{path}` is on record that could be taken back.", code=ErrorCode.FILE_NOT_FOUND)

    def forget(self, change: Change) -> None:
        """The change was taken back."""
        with self._opened() as folder:
            folder.remove(change.name)

    def _opened(self) -> SealedFolder:
        own_state_folder(self._root)
        try:
            self._undo.mkdir(mode=0o700, exist_ok=True)
            return SealedFolder(self._undo, follow_links=False)
        except OSError as error:
            raise ToolError(
                f"What the file was cannot be kept, so nothing was changed: {error}", code=ErrorCode.STATE_UNAVAILABLE
            ) from error

    def _changes(self, folder: SealedFolder) -> Iterator[Change]:
        for entry in reversed(list(folder.walk(max_depth=1))):
            if not entry.path.endswith(_SUFFIX):
                continue
            head, _, data = folder.read_bytes(entry.path, limit=_ENTRY).partition(b"\n")
            told = cast(JsonObject, json.loads(head))
            yield Change(name=entry.path, data=data, **told)

    def _forget_old(self, folder: SealedFolder) -> None:
        kept = 0
        for number, entry in enumerate(reversed(list(folder.walk(max_depth=1)))):
            kept += entry.size
            if number >= MOST_CHANGES or kept > MOST_BYTES:
                folder.remove(entry.path)


def _version(data: bytes | None) -> str | None:
    return None if data is None else version_of(data)


def _changed_since(path: str) -> ToolError:
    return ToolError(
        f"`{path}` was changed by somebody else after the last change of these tools, so nothing was taken back.",
        code=ErrorCode.FILE_CONFLICT,
        instruction="Read the file and edit it as it is now.",
        next={"tool": "file", "arguments": {"action": "read", "path": path}},
    )
