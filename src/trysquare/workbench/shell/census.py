"""Census: how many processes a command has, counted by us where the kernel does not."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import anyio

from trysquare.core.threads import run_in_thread

_SECONDS = 0.01


async def outgrown(pid: int, most: int) -> None:
    """Return once a process has more descendants than it may."""
    before = _all_tasks()
    async for _ in _ticks():
        # One number tells of the whole system; only when it has grown is it worth while to look who it was.
        if _all_tasks() - before > most // 2 and await run_in_thread(lambda: descendants(pid)) > most:
            return


async def _ticks() -> AsyncIterator[None]:
    while True:
        await anyio.sleep(_SECONDS)
        yield


def _all_tasks() -> int:
    with open("/proc/loadavg", "rb") as file:
        return int(file.read().split()[3].partition(b"/")[2])


def descendants(pid: int) -> int:
    """How many processes a process has started that live, however far down."""
    parents: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        parent = _parent(name)
        if parent is not None:
            parents.setdefault(parent, []).append(int(name))
    count, waiting = 0, [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        count += len(children)
        waiting += children
    return count


def _parent(name: str) -> int | None:
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return None
    return int(stat[stat.rfind(b")") + 2 :].split()[1])
