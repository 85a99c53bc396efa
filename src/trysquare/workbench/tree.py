"""The tree of a workspace: its files and folders, found without following a link."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from trysquare.core.untrusted import escaped, hidden_kinds
from trysquare.workbench.workspace import PROTECTED, Workspace

SKIPPED = PROTECTED | {
    "node_modules", "__pycache__", ".venv", "venv", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".nox",
    ".hypothesis", ".gradle", ".idea", ".cache",
}  # fmt: skip
"""Folders that hold what programs make of the sources; nobody looks for anything in them."""
MOST_ENTRIES = 50_000
MAX_DEPTH = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """A file, folder or link of the workspace."""

    path: str
    name: str
    mode: int
    size: int
    version: tuple[int, ...]
    """Numbers that change with the contents."""

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)


def walk(
    workspace: Workspace, below: str = ".", *, max_depth: int = MAX_DEPTH, skipped: frozenset[str] = SKIPPED
) -> Iterator[Found]:
    """Everything below a folder, in order of name, each folder before what is in it."""
    prefix = "" if below == "." else f"{below}/"
    with workspace.open_folder(below) as folder:
        yield from _walk(workspace, folder, prefix, max_depth, skipped)


def _walk(workspace: Workspace, folder: int, prefix: str, depth: int, skipped: frozenset[str]) -> Iterator[Found]:
    for name in sorted(os.listdir(folder)):
        if name in skipped or workspace.is_hidden(prefix + name):
            continue
        try:
            about = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            continue
        found = _found(prefix + name, name, about)
        yield found
        if found.is_folder and depth > 1:
            yield from _inside(workspace, folder, name, prefix, depth - 1, skipped)


def _inside(
    workspace: Workspace, folder: int, name: str, prefix: str, depth: int, skipped: frozenset[str]
) -> Iterator[Found]:
    try:
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return  # removed, replaced by a link, or not for us to read
    try:
        yield from _walk(workspace, inner, f"{prefix}{name}/", depth, skipped)
    finally:
        os.close(inner)


def _found(path: str, name: str, about: os.stat_result) -> Found:
    version = (about.st_mtime_ns, about.st_ctime_ns, about.st_size, about.st_ino)
    return Found(path=path, name=name, mode=about.st_mode, size=about.st_size, version=version)


def snapshot(workspace: Workspace) -> dict[str, tuple[int, ...]] | None:
    """The version of every file, to tell later which have changed; None where there are too many."""
    versions: dict[str, tuple[int, ...]] = {}
    for number, found in enumerate(walk(workspace)):
        if number > MOST_ENTRIES:
            return None
        if not found.is_folder:
            versions[found.path] = found.version
    return versions


def changed_between(before: dict[str, tuple[int, ...]], after: dict[str, tuple[int, ...]]) -> list[str]:
    """The files that came, went or changed."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def shown(path: str) -> str:
    """A path on one line: letters that would break it are written out."""
    plain = path.encode("utf-8", "backslashreplace").decode("utf-8")
    return plain if plain.isprintable() and not hidden_kinds(plain) else escaped(plain)
