"""Watch: tells what changes below a folder. Watched by the system; polled where that is not to be had."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, TypeAlias

logger = logging.getLogger("trysquare.watch")

POLL_SECONDS = 1.0
EVERYTHING = frozenset({"."})
"""What is told when the folder itself came, went or was replaced."""

_State: TypeAlias = dict[str, tuple[int, ...]]
"""What tells one version of a file or folder from another, by path; its mode comes first."""


async def changes_below(folder: Path, *, poll_seconds: float = POLL_SECONDS) -> AsyncIterator[frozenset[str]]:
    """Sets of paths that changed, relative to the folder, as they change. A folder that goes is waited for."""
    while True:
        identity = await asyncio.to_thread(_identity, folder)
        if identity is None:
            await asyncio.sleep(poll_seconds)
            continue
        async for changed in _while_there(folder, identity, poll_seconds):
            yield changed
        yield EVERYTHING


async def _while_there(folder: Path, identity: tuple[int, int], seconds: float) -> AsyncIterator[frozenset[str]]:
    awatch = _system_watch()
    if awatch is None:
        logger.info("watchfiles is not installed; %s is polled", folder)
    else:
        try:
            async for changed in _watched(awatch, folder, identity, seconds):
                yield changed
            return
        except OSError as error:
            if await asyncio.to_thread(_identity, folder) != identity:
                return
            # Mostly the system's limit of watched folders.
            logger.warning("%s cannot be watched (%s); it is polled", folder, error)
            yield EVERYTHING
    async for changed in _polled(folder, identity, seconds):
        yield changed


async def _watched(
    awatch: Any, folder: Path, identity: tuple[int, int], seconds: float
) -> AsyncIterator[frozenset[str]]:
    """What the system tells. Each folder is watched by itself, because watching a tree would follow its links."""
    known = await asyncio.to_thread(_state, folder)
    while await asyncio.to_thread(_identity, folder) == identity:
        folders, compared = _folders(known), False
        async for found in _told(awatch, folder, folders, seconds):
            changed = _relative(folder, found)
            # Compared once after the start, for what changed before the system listened, and when folders came or went.
            if not compared or await asyncio.to_thread(_is_about_folders, folder, folders, changed):
                before, known, compared = known, await asyncio.to_thread(_state, folder), True
                changed |= _differences(before, known)
            if changed:
                yield changed
            if _folders(known) != folders or await asyncio.to_thread(_identity, folder) != identity:
                break


async def _told(awatch: Any, folder: Path, folders: frozenset[str], seconds: float) -> AsyncIterator[list[str]]:
    """Paths that changed; an empty list now and then, since the system does not tell that a folder was replaced."""
    paths = [folder, *(folder / each for each in folders)]
    # No filter of watchfiles' own: every name matters.
    options = {"watch_filter": None, "debounce": 50, "step": 10, "rust_timeout": int(seconds * 1000)}
    try:
        async for found in awatch(*paths, recursive=False, yield_on_timeout=True, **options):
            yield [path for _, path in found]
    except FileNotFoundError:
        # A folder went before it could be watched: the list of folders is made again.
        yield []


def _system_watch() -> Any:
    try:
        import watchfiles
    except ImportError:
        return None
    return getattr(watchfiles, "awatch")  # noqa: B009 - its type is not fully known


def _relative(folder: Path, paths: Iterable[str]) -> frozenset[str]:
    return frozenset(str(Path(path).relative_to(folder)) for path in paths if Path(path).is_relative_to(folder))


async def _polled(folder: Path, identity: tuple[int, int], seconds: float) -> AsyncIterator[frozenset[str]]:
    known = await asyncio.to_thread(_state, folder)
    while await asyncio.to_thread(_identity, folder) == identity:
        await asyncio.sleep(seconds)
        before, known = known, await asyncio.to_thread(_state, folder)
        changed = _differences(before, known)
        if changed:
            yield changed


def _differences(before: _State, after: _State) -> frozenset[str]:
    return frozenset(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _folders(state: _State) -> frozenset[str]:
    return frozenset(path for path, (mode, *_) in state.items() if stat.S_ISDIR(mode))


def _is_about_folders(folder: Path, folders: frozenset[str], changed: frozenset[str]) -> bool:
    return any(path in folders or os.path.isdir(folder / path) for path in changed)


def _identity(folder: Path) -> tuple[int, int] | None:
    """Which folder lies at a path; None where none does."""
    try:
        found = os.stat(folder / ".")
    except OSError:
        return None
    return (found.st_dev, found.st_ino)


def _state(folder: Path) -> _State:
    """Every file and folder below, links not followed. Hidden ones, such as the history of git, matter to nobody."""
    found: _State = {}
    for below, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in (*folders, *files):
            path = os.path.join(below, name)
            try:
                about = os.lstat(path)
            except OSError:
                continue  # gone between the listing and the look: the next round tells
            key = os.path.relpath(path, folder)
            found[key] = (about.st_mode, about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_size)
    return found
