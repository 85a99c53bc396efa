"""Workspace: the folder that the tools work in. A path names what it says, or is refused."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from copy import copy
from difflib import get_close_matches
from pathlib import Path

from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.files.globs import is_under
from trysquare.files.sealed_folder import PathRefused, SealedFolder
from trysquare.workbench.config import GUARDED

PROTECTED = GUARDED
SETTINGS_FILE = "trysquare.toml"
"""It names the modules that the next server imports, so it is for people to write."""
MAX_FILE = 8 * 1024 * 1024
_MOST_NAMES = 2_000


class Workspace:
    """A folder held open. Links are not followed, so that a protected name cannot be reached by another one."""

    def __init__(self, root: Path, hidden: Sequence[str] = ()) -> None:
        self.root = root.resolve()
        self.folder = SealedFolder(self.root, follow_links=False)
        self.hidden = tuple(hidden)
        """Patterns of paths that are as good as not there."""

    def hiding(self, hidden: Sequence[str]) -> Workspace:
        """The same folder with other paths hidden. It is closed with this one."""
        other = copy(self)
        other.hidden = tuple(hidden)
        return other

    def is_hidden(self, path: str) -> bool:
        """Whether a path, relative to the workspace, is hidden."""
        return bool(self.hidden) and is_under(path, self.hidden)

    def close(self) -> None:
        """Let the folder go."""
        self.folder.close()

    def path(self, given: str) -> str:
        """A path relative to the workspace in its shortest form, or a refusal."""
        inside = self._relative(given)
        pieces = [piece for piece in inside.split("/") if piece not in ("", ".")]
        if ".." in pieces or "\0" in inside:
            raise _not_allowed(given, "leads out of the workspace, or may")
        if protected := next((piece for piece in pieces if piece.casefold() in PROTECTED), None):
            raise _not_allowed(given, f"lies in `{protected}`, which no file tool reads or changes")
        path = "/".join(pieces) or "."
        self._check_shown(path)
        return path

    def read(self, path: str) -> bytes:
        """The contents of a plain file."""
        with self._telling(path):
            return self.folder.read_bytes(path, limit=MAX_FILE)

    def read_if_there(self, path: str) -> bytes | None:
        """The contents of a plain file, or None where there is none."""
        try:
            return self.read(path)
        except NotFound:
            return None

    def mode(self, path: str) -> int:
        """The permissions of a file."""
        parent, name = posixpath.split(path)
        with self.open_folder(parent or ".") as folder:
            return stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode) & 0o777

    def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file whole, or not at all. One that is there keeps its permissions."""
        self._check_writable(path)
        with self._telling(path):
            self.folder.write_bytes(path, data, mode=mode)

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._check_writable(path)
        with self._telling(path):
            self.folder.remove(path)

    @contextmanager
    def open_folder(self, path: str) -> Generator[int]:
        """A folder inside, as an open descriptor."""
        with self._telling(path), self.folder.open_folder(path) as descriptor:
            yield descriptor

    def _check_shown(self, path: str) -> None:
        if self.is_hidden(path):
            raise _not_allowed(path, "is hidden from this tool")

    def _check_writable(self, path: str) -> None:
        if posixpath.basename(path).casefold() == SETTINGS_FILE:
            raise _not_allowed(path, "holds the settings of the server, which only people change")

    def _relative(self, given: str) -> str:
        if not given.startswith("/"):
            return given
        root = str(self.root)
        # Models like absolute paths; one that lies inside is as good as its relative form.
        if given == root or given.startswith(root + "/"):
            return given[len(root) + 1 :] or "."
        raise _not_allowed(given, "lies outside the workspace")

    @contextmanager
    def _telling(self, path: str) -> Generator[None]:
        """What the sealed folder refuses, in the workbench's words."""
        self._check_shown(path)
        try:
            yield
        except NotFound:
            raise self._not_found(path) from None
        except PathRefused as error:
            raise self._refused(path, error) from None

    def _refused(self, path: str, error: PathRefused) -> ToolError:
        if "leads outside" in error.message:
            return _not_allowed(path, "is a link, lies behind one, or is no file that can be opened")
        return ToolError(error.message, code=ErrorCode.FILE_NOT_ALLOWED, instruction=error.instruction)

    def _not_found(self, path: str) -> NotFound:
        near = self._near(path)
        hint = f" The nearest are {', '.join(f'`{each}`' for each in near)}." if near else ""
        return NotFound(
            f"There is no `{path[:200]}` in the workspace.{hint}",
            code=ErrorCode.FILE_NOT_FOUND,
            instruction="Take a path from `navigate` or `search`.",
        )

    def _near(self, path: str) -> list[str]:
        """Files of the same folder whose names are like the one that is missing."""
        parent, name = posixpath.split(path)
        try:
            with self.folder.open_folder(parent or ".") as descriptor:
                names = [each for each in os.listdir(descriptor) if each.casefold() not in PROTECTED][:_MOST_NAMES]
        except ToolError:
            return []
        near = (posixpath.join(parent, each) for each in get_close_matches(name, names, n=3))
        return [each for each in near if not self.is_hidden(each)]


def _not_allowed(path: str, why: str) -> ToolError:
    return ToolError(
        f"`{path[:200]}` {why}.",
        code=ErrorCode.FILE_NOT_ALLOWED,
        instruction="Name a file of the workspace by its own path, relative to the workspace.",
    )
