"""Processes that carry a mark of a test in their environment, and so do those that they start."""

from __future__ import annotations

import os
from pathlib import Path

import anyio

from trysquare.processes.reaper import Entry, processes


def marked(mark: str) -> list[Entry]:
    """The living processes that carry a mark of this test in their environment."""
    return [entry for entry in processes() if _carries(entry.pid, f"TOY_MARK={mark}".encode())]


def _carries(pid: int, mark: bytes) -> bool:
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


async def none_is_left(mark: str) -> None:
    """Wait until the last process with this mark is gone."""
    while left := marked(mark):
        for entry in left:
            try:
                handle = os.pidfd_open(entry.pid)
            except ProcessLookupError:
                continue
            await anyio.wait_readable(handle)
            os.close(handle)
