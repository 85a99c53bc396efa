"""No process is left behind: of servers that are killed, of a gateway that ends, and of one that is killed."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from tests.gateway.marked_processes import marked, none_is_left
from tests.gateway.toys import hear_nothing, say, toy, words
from tests.support import size
from trysquare import ToolError
from trysquare.gateway.pool.pool import open_pool

SERVERS_IN_A_GATEWAY = 5
PROGRAM = Path(__file__).parents[1] / "gateway_process.py"
ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.timeout(size(120, 1200))


async def test_no_process_is_left_of_servers_that_are_killed(record_property: Callable[[str, object], None]) -> None:
    mark, rounds = secrets.token_hex(8), size(25, 250)
    async with open_pool({"toy": toy("toy", env={"TOY_MARK": mark})}, on_change=hear_nothing) as pool:
        pids: set[str] = set()
        for _ in range(rounds):
            pids.add(await words(pool, "pid"))
            await words(pool, "stray")
            with pytest.raises(ToolError):
                await say(pool, "kill")
        await words(pool, "echo")
    assert len(pids) == rounds
    assert marked(mark) == []
    record_property("shown", f"{rounds} servers killed, no process left")


async def test_no_process_is_left_of_a_gateway_that_is_killed(record_property: Callable[[str, object], None]) -> None:
    mark, rounds = secrets.token_hex(8), size(5, 50)
    command = [sys.executable, str(PROGRAM), str(SERVERS_IN_A_GATEWAY), mark]
    for _ in range(rounds):
        async with await anyio.open_process(command, stderr=None, env=_importing_tests()) as gateway:
            assert gateway.stdout is not None
            with anyio.fail_after(60):
                assert await gateway.stdout.receive() == b"ready\n"
            assert len(marked(mark)) == 2 * SERVERS_IN_A_GATEWAY
            gateway.kill()
            with anyio.fail_after(60):
                await none_is_left(mark)
    record_property("shown", f"{rounds} gateways of {SERVERS_IN_A_GATEWAY} servers killed, no process left")


def _importing_tests() -> dict[str, str]:
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
