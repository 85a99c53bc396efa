"""Watching: the configuration anew, whenever an edit of its files changed it.

The files are looked at a few times a second. That costs next to nothing, and it works for links, for files that are
replaced, and where the system has no more watches to give.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from trysquare.core.errors import ConfigurationError
from trysquare.gateway.config import GatewayConfig, read_config

logger = logging.getLogger("trysquare.gateway")

POLL_SECONDS = 0.25
_SETTLED_NANOSECONDS = 100_000_000
"""A file that was written so shortly ago may be written again without its times telling."""

_Stamps: TypeAlias = tuple[tuple[int, ...] | None, ...]


async def config_changes(
    config: GatewayConfig,
    *,
    read: Callable[..., GatewayConfig] = read_config,
    poll_seconds: float = POLL_SECONDS,
) -> AsyncIterator[GatewayConfig]:
    """Each configuration that differs from the one before. While a file is wrong as a whole, what was known stays."""
    seen: _Stamps | None = None
    told: _Stamps | None = None
    while True:
        stamps = await asyncio.to_thread(_stamps, config.paths)
        if stamps != seen:
            found = await asyncio.to_thread(_read, read, config.paths)
            if isinstance(found, GatewayConfig) and found != config:
                config = found
                yield config
            elif isinstance(found, ConfigurationError) and _is_settled(stamps) and stamps != told:
                # An editor may leave a half-written file for a moment; only one that stays is worth a line.
                logger.warning("the servers stay as they were: %s", found)
                told = stamps
            seen = stamps if _is_settled(stamps) else None
        await asyncio.sleep(poll_seconds)


def _read(read: Callable[..., GatewayConfig], paths: Sequence[Path]) -> GatewayConfig | ConfigurationError:
    try:
        return read(*paths)
    except ConfigurationError as error:
        return error


def _stamps(paths: Sequence[Path]) -> _Stamps:
    """What tells one version of each file from another; None for one that is not there."""
    return tuple(_stamp(path) for path in paths)


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        about = os.stat(path)
    except OSError:
        return None
    return (about.st_mtime_ns, about.st_ctime_ns, about.st_dev, about.st_ino, about.st_size)


def _is_settled(stamps: _Stamps) -> bool:
    now = time.time_ns()
    return all(stamp is None or abs(now - stamp[1]) > _SETTLED_NANOSECONDS for stamp in stamps)
