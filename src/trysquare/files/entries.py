"""Entries: what lies in a folder, found without following a link."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

RECENT_NS = 50_000_000
"""File times move in steps of some milliseconds, so two changes in one step look like one."""
_CLOCK_SKEW_NS = 2_000_000_000

FolderStates: TypeAlias = dict[str, tuple[int, ...]]
"""States of folders by their paths; one that changed just now has none, so that it never looks unchanged."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A plain file in a folder, by its relative path, with what tells one version of it from another."""

    path: str
    size: int
    changed_ns: int
    version: tuple[int, ...] = ()
    """Inode and time of the last change of any kind, which nobody can set back."""


def entry_of(path: str, found: os.stat_result) -> Entry:
    """The entry of a file whose attributes are known."""
    return Entry(path=path, size=found.st_size, changed_ns=found.st_mtime_ns, version=(found.st_ino, found.st_ctime_ns))


def folder_state(found: os.stat_result) -> tuple[int, ...]:
    """The state of a folder whose attributes are known; nothing where it changed just now."""
    if is_recent(found.st_ctime_ns):
        return ()
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)


def is_recent(changed_ns: int) -> bool:
    """Whether a change is so young that another one could carry the same time."""
    return -_CLOCK_SKEW_NS < time.time_ns() - changed_ns < RECENT_NS


def is_listed(name: str) -> bool:
    """Whether a file or folder of this name is looked at: hidden and `_` ones are not, nor names that are no text."""
    if name.startswith((".", "_")):
        return False
    return name.isascii() or name.encode("utf-8", "replace").decode("utf-8") == name


def entries_below(folder: int, path: str, *, max_depth: int, visited: FolderStates) -> Iterator[Entry]:
    """Every plain file below an open folder, in order of name."""
    visited[path or "."] = folder_state(os.fstat(folder))
    with os.scandir(folder) as scan:
        found = sorted((each for each in scan if is_listed(each.name)), key=lambda each: each.name)
    for each in found:
        below = f"{path}/{each.name}" if path else each.name
        if each.is_file(follow_symlinks=False):
            about = _attributes(folder, each.name)
            if about is not None:
                yield entry_of(below, about)
        elif max_depth > 1 and each.is_dir(follow_symlinks=False):
            yield from _inside(folder, each.name, below, max_depth=max_depth - 1, visited=visited)


def _inside(folder: int, name: str, path: str, *, max_depth: int, visited: FolderStates) -> Iterator[Entry]:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return  # removed, replaced by a link, or not for us to read
    try:
        yield from entries_below(descriptor, path, max_depth=max_depth, visited=visited)
    finally:
        os.close(descriptor)


def _attributes(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None  # removed between the listing and now
