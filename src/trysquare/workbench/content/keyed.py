"""keyed: work that happens once for a request key, whoever sends it again."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from trysquare.core.errors import ToolError
from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject
from trysquare.store.idempotency import Claim, EarlierAnswer, claim, finish, release
from trysquare.store.lazy import Transactions
from trysquare.workbench.content.api import ServiceLost

KEPT = 10 * 365 * 86400.0
"""Seconds for which a publication is remembered: a job may be resumed long after its first try."""


async def once(
    state: Transactions, key: str, *, tool: str, principal: str, digest: str, work: Callable[[], Awaitable[JsonObject]]
) -> tuple[JsonObject, bool]:
    """What the work gave, now or in an earlier call with this key; says whether it was done now.

    Work that failed without an effect gives its key back. Where nobody knows, the key stays taken, so that the work is
    never simply done again.
    """

    def claimed() -> Claim | EarlierAnswer:
        with state.write() as connection:
            return claim(connection, key, tool=tool, principal=principal, digest=digest, now=time.time())

    held = await run_in_thread(claimed)
    if isinstance(held, EarlierAnswer):
        return held.result, False
    try:
        done = await work()
    except ServiceLost:
        raise
    except ToolError:
        await run_in_thread(lambda: _release(state, held))
        raise
    await run_in_thread(lambda: _finish(state, held, done))
    return done, True


def _release(state: Transactions, held: Claim) -> None:
    with state.write() as connection:
        release(connection, held)


def _finish(state: Transactions, held: Claim, done: JsonObject) -> None:
    with state.write() as connection:
        finish(connection, held, done, now=time.time(), kept=KEPT)
