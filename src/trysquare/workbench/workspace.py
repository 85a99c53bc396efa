"""Workspace configuration, paths, directory walk, state directory."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from trysquare.core.errors import ConfigurationError, ErrorCode, NotFound, ToolError
from trysquare.core.untrusted import escaped, hidden_kinds
from trysquare.files.globs import is_under, matches
from trysquare.files.root import DirectoryRoot, PathNotAllowed
from trysquare.store.approvers import APPROVERS_FILE
from trysquare.store.location import FOLDER, prepare_folder
from trysquare.store.passkeys import PASSKEYS_FILE

PROTECTED = frozenset({".git", FOLDER, APPROVERS_FILE, PASSKEYS_FILE})
"""Only git, Trysquare and people write these: their contents decide what is run, allowed and approved."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkbenchConfig:
    """Where the tools work, and what their commands may use."""

    root: Path
    project: Path | None = None
    """Project whose state no command may see, if it is another directory."""
    prefix: str = ""
    seconds: float = 120.0
    """Default timeout of a command or test run."""
    processes: int = 512
    """Limit of processes and threads per command."""
    sandboxes: tuple[str, ...] = ("bubblewrap", "landlock")
    """Sandbox backends in order of preference; without a working one, no command runs."""
    passed: tuple[str, ...] = ()
    """Further environment variables that commands receive."""
    hidden: tuple[str, ...] = ()
    """Paths hidden from tools, as `[TOOL=]GLOB` relative to the workspace, or absolute for commands only."""

    def hidden_from(self, tool: str) -> tuple[str, ...]:
        """Patterns hidden from a tool, without `.git` and the state directory, which are protected anyway."""
        entries = [each.split("=", 1) if "=" in each else ["*", each] for each in self.hidden]
        own = [pattern for name, pattern in entries if matches(tool, name)]
        return tuple(each for each in own if each.startswith("/") or not PROTECTED & set(each.casefold().split("/")))


def own_state_folder(root: Path) -> Path:
    """Create the state directory. A link in its place is refused."""
    folder = root / FOLDER
    try:
        if folder.is_symlink() or (folder / "undo").is_symlink():
            raise ConfigurationError("it is a link.", where=str(folder), hint="Replace it with a directory.")
        prepare_folder(folder)
    except ConfigurationError as error:
        raise ToolError(
            f"The workspace's state directory is unavailable: {error} Nothing was done.",
            code=ErrorCode.STATE_UNAVAILABLE,
            instruction="Ask the user to fix it, then send the same call again.",
        ) from error
    return folder


SETTINGS_FILE = "trysquare.toml"
"""It names the modules that the next server imports, so only people write it."""
MAX_FILE = 8 * 1024 * 1024
_MAX_NAMES = 2_000


class Workspace:
    """An open directory. Links are not followed, so that a protected name has no alias."""

    def __init__(self, root: Path, hidden: Sequence[str] = ()) -> None:
        self.root = root.resolve()
        self.folder = DirectoryRoot(self.root, follow_links=False)
        self.hidden = tuple(hidden)

    def hiding(self, hidden: Sequence[str]) -> Workspace:
        """Copy with other paths hidden; it is closed with this one."""
        other = copy(self)
        other.hidden = tuple(hidden)
        return other

    def is_hidden(self, path: str) -> bool:
        return bool(self.hidden) and is_under(path, self.hidden)

    def close(self) -> None:
        self.folder.close()

    def path(self, given: str) -> str:
        """Normalize a path and check that it is allowed."""
        inside = self._relative(given)
        pieces = [piece for piece in inside.split("/") if piece not in ("", ".")]
        if ".." in pieces or "\0" in inside:
            raise _not_allowed(given, "leads, or may lead, out of the workspace")
        if protected := next((piece for piece in pieces if piece.casefold() in PROTECTED), None):
            raise _not_allowed(given, f"is in `{protected}`, which file tools do not read or change")
        path = "/".join(pieces) or "."
        self._check_shown(path)
        return path

    def read(self, path: str) -> bytes:
        with self._translate_errors(path):
            return self.folder.read_bytes(path, limit=MAX_FILE)

    def read_if_there(self, path: str) -> bytes | None:
        try:
            return self.read(path)
        except NotFound:
            return None

    def mode(self, path: str) -> int:
        parent, name = posixpath.split(path)
        with self.open_folder(parent or ".") as folder:
            return stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode) & 0o777

    def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write atomically; an existing file keeps its mode."""
        self._check_writable(path)
        with self._translate_errors(path):
            self.folder.write_bytes(path, data, mode=mode)

    def remove(self, path: str) -> None:
        self._check_writable(path)
        with self._translate_errors(path):
            self.folder.remove(path)

    @contextmanager
    def open_folder(self, path: str) -> Generator[int]:
        """Open a directory as a descriptor."""
        with self._translate_errors(path), self.folder.open_folder(path) as descriptor:
            yield descriptor

    def _check_shown(self, path: str) -> None:
        if self.is_hidden(path):
            raise _not_allowed(path, "is hidden from this tool")

    def _check_writable(self, path: str) -> None:
        if posixpath.basename(path).casefold() == SETTINGS_FILE:
            raise _not_allowed(path, "contains the settings of the server, which only the user may change")

    def _relative(self, given: str) -> str:
        if not given.startswith("/"):
            return given
        root = str(self.root)
        # Models like absolute paths: one inside the workspace is accepted.
        if given == root or given.startswith(root + "/"):
            return given[len(root) + 1 :] or "."
        raise _not_allowed(given, "is outside the workspace")

    @contextmanager
    def _translate_errors(self, path: str) -> Generator[None]:
        self._check_shown(path)
        try:
            yield
        except NotFound:
            raise self._not_found(path) from None
        except PathNotAllowed as error:
            if "leads outside" in error.message:
                raise _not_allowed(path, "is a link, is behind a link, or is not a regular file") from None
            raise ToolError(error.message, code=ErrorCode.FILE_NOT_ALLOWED, instruction=error.instruction) from None

    def _not_found(self, path: str) -> NotFound:
        near = self._near(path)
        hint = f" Did you mean {' or '.join(f'`{each}`' for each in near)}?" if near else ""
        return NotFound(
            f"`{path[:200]}` was not found in the workspace.{hint}",
            code=ErrorCode.FILE_NOT_FOUND,
            instruction="Take a path from `navigate` or `search`.",
        )

    def _near(self, path: str) -> list[str]:
        """Names in the same directory that are similar to a missing one."""
        parent, name = posixpath.split(path)
        try:
            with self.folder.open_folder(parent or ".") as descriptor:
                names = [each for each in os.listdir(descriptor) if each.casefold() not in PROTECTED][:_MAX_NAMES]
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


SKIPPED = PROTECTED | {
    "node_modules", "__pycache__", ".venv", "venv", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".nox",
    ".hypothesis", ".gradle", ".idea", ".cache",
}  # fmt: skip
"""Generated or cached files."""
MAX_ENTRIES = 50_000
MAX_DEPTH = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    path: str
    name: str
    mode: int
    size: int
    version: tuple[int, ...]
    """Changes with the contents."""

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)


def walk(
    workspace: Workspace, below: str = ".", *, max_depth: int = MAX_DEPTH, skipped: frozenset[str] = SKIPPED
) -> Iterator[Entry]:
    """Walk a directory in order of name, each directory before its contents."""
    prefix = "" if below == "." else f"{below}/"
    with workspace.open_folder(below) as folder:
        yield from _walk(workspace, folder, prefix, max_depth, skipped)


def _walk(workspace: Workspace, folder: int, prefix: str, depth: int, skipped: frozenset[str]) -> Iterator[Entry]:
    for name in sorted(os.listdir(folder)):
        if name in skipped or workspace.is_hidden(prefix + name):
            continue
        try:
            about = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            continue
        version = (about.st_mtime_ns, about.st_ctime_ns, about.st_size, about.st_ino)
        found = Entry(path=prefix + name, name=name, mode=about.st_mode, size=about.st_size, version=version)
        yield found
        if not found.is_folder or depth <= 1:
            continue
        try:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        except OSError:
            continue  # removed, replaced by a link, or unreadable
        try:
            yield from _walk(workspace, inner, f"{prefix}{name}/", depth - 1, skipped)
        finally:
            os.close(inner)


def snapshot(workspace: Workspace) -> dict[str, tuple[int, ...]] | None:
    """The version of every file; None if there are too many."""
    versions: dict[str, tuple[int, ...]] = {}
    for number, found in enumerate(walk(workspace)):
        if number > MAX_ENTRIES:
            return None
        if not found.is_folder:
            versions[found.path] = found.version
    return versions


def changed_between(before: dict[str, tuple[int, ...]], after: dict[str, tuple[int, ...]]) -> list[str]:
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def display_path(path: str) -> str:
    """Escape a path so that it stays on one line."""
    plain = path.encode("utf-8", "backslashreplace").decode("utf-8")
    return plain if plain.isprintable() and not hidden_kinds(plain) else escaped(plain)
