"""Directory listings and change notifications."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

RECENT_NS = 50_000_000
"""Granularity of file times: two changes within it look like one."""
_CLOCK_SKEW_NS = 2_000_000_000

FolderStates: TypeAlias = dict[str, tuple[int, ...]]
"""States of directories by path; a recent change gives an empty state, which never looks unchanged."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A regular file by its relative path, with its version."""

    path: str
    size: int
    changed_ns: int
    version: tuple[int, ...] = ()
    """Inode and ctime, which cannot be set back."""


def entry_of(path: str, found: os.stat_result) -> Entry:
    return Entry(path=path, size=found.st_size, changed_ns=found.st_mtime_ns, version=(found.st_ino, found.st_ctime_ns))


def folder_state(found: os.stat_result) -> tuple[int, ...]:
    """State of a directory; empty after a recent change."""
    if is_recent(found.st_ctime_ns):
        return ()
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)


def is_recent(changed_ns: int) -> bool:
    """Whether another change could have the same time."""
    return -_CLOCK_SKEW_NS < time.time_ns() - changed_ns < RECENT_NS


def is_listed(name: str) -> bool:
    """Whether a name is listed: not hidden, not `_`, and valid UTF-8."""
    if name.startswith((".", "_")):
        return False
    return name.isascii() or name.encode("utf-8", "replace").decode("utf-8") == name


def entries_below(
    folder: int, path: str, *, max_depth: int, visited: FolderStates, skipped: dict[str, str] | None = None
) -> Iterator[Entry]:
    """Regular files below an open directory, by name. `skipped` receives what is not one, with the reason."""
    visited[path or "."] = folder_state(os.fstat(folder))
    with os.scandir(folder) as scan:
        found = sorted((each for each in scan if is_listed(each.name)), key=lambda each: each.name)
    for each in found:
        below = f"{path}/{each.name}" if path else each.name
        if each.is_file(follow_symlinks=False):
            # It may have been removed since the listing.
            with suppress(FileNotFoundError):
                yield entry_of(below, os.stat(each.name, dir_fd=folder, follow_symlinks=False))
        elif max_depth > 1 and each.is_dir(follow_symlinks=False):
            yield from _entries_in(folder, each.name, below, max_depth=max_depth - 1, visited=visited, skipped=skipped)
        elif skipped is not None:
            skipped[below] = _why_skipped(each)


def _why_skipped(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "a link is not followed"
    return "folders so deep are not read" if entry.is_dir(follow_symlinks=False) else "not a regular file"


def _entries_in(
    folder: int, name: str, path: str, *, max_depth: int, visited: FolderStates, skipped: dict[str, str] | None
) -> Iterator[Entry]:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        if skipped is not None:  # removed, replaced by a link, or not readable
            skipped[path] = error.strerror or str(error)
        return
    try:
        yield from entries_below(descriptor, path, max_depth=max_depth, visited=visited, skipped=skipped)
    finally:
        os.close(descriptor)


logger = logging.getLogger("trysquare.watch")

POLL_SECONDS = 1.0
EVERYTHING = frozenset({"."})
"""Reported when the directory itself appeared, vanished or was replaced."""


async def changes_below(folder: Path, *, poll_seconds: float = POLL_SECONDS) -> AsyncIterator[frozenset[str]]:
    """Yield sets of changed paths, relative to the directory. A missing directory is waited for."""
    while True:
        identity = await asyncio.to_thread(_identity, folder)
        if identity is None:
            await asyncio.sleep(poll_seconds)
            continue
        async for changed in _watch_same(folder, identity, poll_seconds):
            yield changed
        yield EVERYTHING


async def _watch_same(folder: Path, identity: tuple[int, int], seconds: float) -> AsyncIterator[frozenset[str]]:
    awatch = _system_watch()
    if awatch is None:
        logger.info("watchfiles not installed; polling: path=%s", folder)
    else:
        try:
            async for changed in _watch(awatch, folder, identity, seconds):
                yield changed
            return
        except OSError as error:
            if await asyncio.to_thread(_identity, folder) != identity:
                return
            # Mostly the system's limit of watches.
            logger.warning("watch failed; polling: path=%s error=%s", folder, error)
            yield EVERYTHING
    async for changed in _poll(folder, identity, seconds):
        yield changed


async def _watch(awatch: Any, folder: Path, identity: tuple[int, int], seconds: float) -> AsyncIterator[frozenset[str]]:
    """Watch each directory by itself, because a recursive watch would follow links."""
    known = await asyncio.to_thread(_state, folder)
    while await asyncio.to_thread(_identity, folder) == identity:
        folders, compared = _folders(known), False
        async for found in _events(awatch, folder, folders, seconds):
            inside = (path for path in map(Path, found) if path.is_relative_to(folder))
            changed = frozenset(str(path.relative_to(folder)) for path in inside)
            # Compared once at the start, for changes before the watch began, and when directories came or went.
            if not compared or await asyncio.to_thread(_is_about_folders, folder, folders, changed):
                before, known, compared = known, await asyncio.to_thread(_state, folder), True
                changed |= _differences(before, known)
            if changed:
                yield changed
            if _folders(known) != folders or await asyncio.to_thread(_identity, folder) != identity:
                break


async def _events(awatch: Any, folder: Path, folders: frozenset[str], seconds: float) -> AsyncIterator[list[str]]:
    """Changed paths; an empty list at times, since a replaced directory is not reported."""
    paths = [folder, *(folder / each for each in folders)]
    options = {"watch_filter": None, "debounce": 50, "step": 10, "rust_timeout": int(seconds * 1000)}
    try:
        async for found in awatch(*paths, recursive=False, yield_on_timeout=True, **options):
            yield [path for _, path in found]
    except FileNotFoundError:
        # A directory vanished before it could be watched: the list is built again.
        yield []


def _system_watch() -> Any:
    try:
        import watchfiles
    except ImportError:
        return None
    return getattr(watchfiles, "awatch")  # noqa: B009 - its type is not fully known


async def _poll(folder: Path, identity: tuple[int, int], seconds: float) -> AsyncIterator[frozenset[str]]:
    known = await asyncio.to_thread(_state, folder)
    while await asyncio.to_thread(_identity, folder) == identity:
        await asyncio.sleep(seconds)
        before, known = known, await asyncio.to_thread(_state, folder)
        changed = _differences(before, known)
        if changed:
            yield changed


def _differences(before: FolderStates, after: FolderStates) -> frozenset[str]:
    return frozenset(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _folders(state: FolderStates) -> frozenset[str]:
    return frozenset(path for path, (mode, *_) in state.items() if stat.S_ISDIR(mode))


def _is_about_folders(folder: Path, folders: frozenset[str], changed: frozenset[str]) -> bool:
    return any(path in folders or os.path.isdir(folder / path) for path in changed)


def _identity(folder: Path) -> tuple[int, int] | None:
    """Device and inode of the directory at a path, or None."""
    try:
        found = os.stat(folder / ".")
    except OSError:
        return None
    return (found.st_dev, found.st_ino)


def _state(folder: Path) -> FolderStates:
    """Versions of all files and directories below, mode first; no hidden directories, no links followed."""
    found: FolderStates = {}
    for below, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in (*folders, *files):
            path = os.path.join(below, name)
            try:
                about = os.lstat(path)
            except OSError:
                continue  # removed meanwhile: the next round reports it
            key = os.path.relpath(path, folder)
            found[key] = (about.st_mode, about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_size)
    return found
