"""Many callers on one server that is killed again and again: every call gets its own answer or a true outcome."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable

import anyio
import pytest

from tests.gateway.toys import ERAS, hear_nothing, toy, words
from tests.support import size
from trysquare import ToolError
from trysquare.gateway.pool.pool import ServerPool, open_pool

CALLERS = 32


@pytest.mark.parametrize("era", ERAS)
async def test_no_call_gets_another_ones_answer_or_none(
    era: str, record_property: Callable[[str, object], None]
) -> None:
    outcomes: Counter[str] = Counter()
    done = anyio.Event()

    async def call(pool: ServerPool, caller: int) -> None:
        number = 0
        while not done.is_set():
            number += 1
            try:
                assert await words(pool, "echo", f"{caller}.{number}") == f"{caller}.{number}"
                outcomes["answered"] += 1
            except ToolError as error:
                outcomes[str(error.fields["outcome"])] += 1

    async with open_pool({"toy": toy("toy", "--era", era)}, on_change=hear_nothing) as pool:
        async with anyio.create_task_group() as group:
            for caller in range(CALLERS):
                group.start_soon(call, pool, caller)
            for _ in range(size(5, 100)):
                os.kill(int(await pid_of(pool)), signal.SIGKILL)
            before = outcomes["answered"]
            while outcomes["answered"] <= before + CALLERS:
                await anyio.lowlevel.checkpoint()
            done.set()
        assert await words(pool, "echo", "after") == "after"
        assert pool.status()["toy"].under_way == 0
    record_property("shown", f"{era}: {dict(outcomes)} with {size(5, 100)} kills")


async def pid_of(pool: ServerPool) -> str:
    """The server's process, whichever it is by now."""
    while True:
        try:
            return await words(pool, "pid")
        except ToolError:
            continue
