"""Deadline: work that ends when its time is up, whether it wants to or not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
GRACE = 5.0
"""Seconds in which work that is cancelled may end what it has begun, such as a process; then it is left to itself."""
_CANCELS = 3
"""How often work is cancelled in that time: some code swallows the first one by mistake."""

_log = logging.getLogger(__name__)
_abandoned: set[asyncio.Task[Any]] = set()


class Late(Exception):
    """The time was up before the work was done."""


async def within(seconds: float | None, work: Coroutine[Any, Any, T]) -> T:
    """What the work gives, or `Late` where it takes longer. It is cancelled then, and not waited for without end.

    A function in a thread cannot be interrupted, and a coroutine may refuse to be: either goes on by itself, and what
    comes of it is heard by nobody.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await _end(task)
        raise
    if not task.done():
        await _end(task)
        raise Late
    return task.result()


async def _end(task: asyncio.Task[Any]) -> None:
    for _ in range(_CANCELS):
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=GRACE / _CANCELS)
        if done:
            break
    _abandoned.add(task)
    task.add_done_callback(_forget)


def _forget(task: asyncio.Task[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.info("work that was too late failed: %s", type(error).__name__)
