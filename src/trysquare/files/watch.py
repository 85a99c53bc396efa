"""Watch: tells what changes below a folder. Watched by the system; polled where that is not to be had."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

logger = logging.getLogger("trysquare.watch")

POLL_SECONDS = 1.0
EVERYTHING = frozenset({"."})
"""What is told when the folder itself came, went or was replaced."""


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
    resolved = await asyncio.to_thread(folder.resolve)
    # Hidden files matter to nobody here, but `guide.json` and every other name does: so no filter of watchfiles' own.
    # It wakes up now and then without news, because the system does not tell when the folder itself is replaced.
    async for found in awatch(
        resolved, watch_filter=None, debounce=50, step=10, rust_timeout=int(seconds * 1000), yield_on_timeout=True
    ):
        changed = _relative(resolved, (path for _, path in found))
        if changed:
            yield changed
        if await asyncio.to_thread(_identity, folder) != identity:
            return


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
        now = await asyncio.to_thread(_state, folder)
        changed = {path for path in known.keys() | now.keys() if known.get(path) != now.get(path)}
        known = now
        if changed:
            yield frozenset(changed)


def _identity(folder: Path) -> tuple[int, int] | None:
    """Which folder lies at a path; None where none does."""
    try:
        found = os.stat(folder / ".")
    except OSError:
        return None
    return (found.st_dev, found.st_ino)


def _state(folder: Path) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for below, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(below, name)
            try:
                about = os.lstat(path)
            except OSError:
                continue  # gone between the listing and the look: the next round tells
            key = os.path.relpath(path, folder)
            found[key] = (about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_size)
    return found
