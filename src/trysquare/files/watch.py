"""Watch: tells what changes below a folder. Watched by the system; polled where that is not to be had."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

logger = logging.getLogger("trysquare.watch")

POLL_SECONDS = 1.0


async def changes_below(folder: Path, *, poll_seconds: float = POLL_SECONDS) -> AsyncIterator[frozenset[str]]:
    """Sets of paths that changed, relative to the folder, as they change. Ends when the folder goes."""
    awatch = _system_watch()
    if awatch is None:
        logger.info("watchfiles is not installed; %s is polled", folder)
        async for changed in _polled(folder, poll_seconds):
            yield changed
        return
    resolved = await asyncio.to_thread(folder.resolve)
    # Hidden files matter to nobody here, but `guide.json` and every other name does: so no filter of watchfiles' own.
    async for found in awatch(
        resolved, watch_filter=None, debounce=50, step=10, rust_timeout=1000, yield_on_timeout=False
    ):
        yield _relative(resolved, (path for _, path in found))


def _system_watch() -> Any:
    try:
        import watchfiles
    except ImportError:
        return None
    return getattr(watchfiles, "awatch")  # noqa: B009 - its type is not fully known


def _relative(folder: Path, paths: Iterable[str]) -> frozenset[str]:
    return frozenset(str(Path(path).relative_to(folder)) for path in paths if Path(path).is_relative_to(folder))


async def _polled(folder: Path, seconds: float) -> AsyncIterator[frozenset[str]]:
    known = await asyncio.to_thread(_state, folder)
    while await asyncio.to_thread(folder.is_dir):
        await asyncio.sleep(seconds)
        now = await asyncio.to_thread(_state, folder)
        changed = {path for path in known.keys() | now.keys() if known.get(path) != now.get(path)}
        known = now
        if changed:
            yield frozenset(changed)


def _state(folder: Path) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for path in folder.rglob("*"):
        try:
            about = path.lstat()
        except OSError:
            continue  # gone between the listing and the look: the next round tells
        found[str(path.relative_to(folder))] = (about.st_mtime_ns, about.st_size)
    return found
