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
from trysquare.core.errors import ToolError
from trysquare.gateway.fleet.fleet import Fleet, open_fleet

CALLERS = 32


@pytest.mark.parametrize("era", ERAS)
async def test_no_call_gets_another_ones_answer_or_none(
    era: str, record_property: Callable[[str, object], None]
) -> None:
    outcomes: Counter[str] = Counter()
    done = anyio.Event()

    async def call(fleet: Fleet, caller: int) -> None:
        number = 0
        while not done.is_set():
            number += 1
            try:
                assert await words(fleet, "echo", f"{caller}.{number}") == f"{caller}.{number}"
                outcomes["answered"] += 1
            except ToolError as error:
                outcomes[str(error.fields["outcome"])] += 1

    async with open_fleet({"toy": toy("toy", "--era", era)}, on_change=hear_nothing) as fleet:
        async with anyio.create_task_group() as group:
            for caller in range(CALLERS):
                group.start_soon(call, fleet, caller)
            for _ in range(size(5, 100)):
                os.kill(int(await pid_of(fleet)), signal.SIGKILL)
            before = outcomes["answered"]
            while outcomes["answered"] <= before + CALLERS:
                await anyio.lowlevel.checkpoint()
            done.set()
        assert await words(fleet, "echo", "after") == "after"
        assert fleet.status()["toy"].under_way == 0
    record_property("shown", f"{era}: {dict(outcomes)} with {size(5, 100)} kills")


async def pid_of(fleet: Fleet) -> str:
    """The server's process, whichever it is by now."""
    while True:
        try:
            return await words(fleet, "pid")
        except ToolError:
            continue
