"""Changes of a resource are told from the moment somebody wants to know, across restarts, until nobody does."""

from __future__ import annotations

import anyio
import pytest

from tests.gateway.toys import ERAS, has_ended, say, toy, words
from trysquare import ToolError
from trysquare.gateway.pool.pool import open_pool


class Ear:
    """Hears of changes, and waits for one."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str]] = []
        self._changed = anyio.Event()

    def hear(self, server: str, kind: str) -> None:
        self.changes.append((server, kind))
        self._changed.set()

    async def hears(self, server: str, kind: str) -> None:
        """Wait until it has heard this; forgets it."""
        with anyio.fail_after(20):
            while (server, kind) not in self.changes:
                self._changed = anyio.Event()
                await self._changed.wait()
        self.changes.remove((server, kind))


@pytest.mark.parametrize("era", ERAS)
async def test_a_change_is_announced_before_and_after_a_restart(era: str) -> None:
    ear = Ear()
    async with open_pool({"toy": toy("toy", "--era", era)}, on_change=ear.hear) as pool:
        await pool.subscribe("toy", "toy://one")
        await pool.subscribe("toy", "toy://two")
        assert await words(pool, "touch") == '["toy://one", "toy://two"]'
        await ear.hears("toy", "toy://one")
        await ear.hears("toy", "toy://two")
        with pytest.raises(ToolError):
            await say(pool, "kill")
        assert await words(pool, "touch") == '["toy://one", "toy://two"]'
        await ear.hears("toy", "toy://one")


async def test_a_server_that_somebody_listens_to_is_started_again_by_itself() -> None:
    ear = Ear()
    async with open_pool({"toy": toy()}, on_change=ear.hear) as pool:
        await pool.subscribe("toy", "toy://one")
        await ear.hears("toy", "connected")
        with pytest.raises(ToolError):
            await say(pool, "kill")
        await ear.hears("toy", "connected")
        assert pool.status()["toy"].state == "running"
        assert await words(pool, "touch") == '["toy://one"]'


async def test_whoever_listens_still_does_when_the_entry_has_changed() -> None:
    ear = Ear()
    async with open_pool({"toy": toy()}, on_change=ear.hear) as pool:
        await pool.subscribe("toy", "toy://one")
        await ear.hears("toy", "connected")
        await pool.replace({"toy": toy("toy", env={"NEW": "1"})})
        await ear.hears("toy", "connected")
        assert await words(pool, "touch") == '["toy://one"]'
        await ear.hears("toy", "toy://one")


async def test_a_server_that_somebody_listens_to_is_not_put_to_sleep() -> None:
    ear = Ear()
    servers = {name: toy(name, idle=0.05) for name in ("heard", "unheard")}
    async with open_pool(servers, on_change=ear.hear) as pool:
        await pool.subscribe("heard", "toy://one")
        unheard = int(await words(pool, "pid", server="unheard"))
        with anyio.fail_after(20):
            await has_ended(unheard)
        assert pool.status()["heard"].state == "running"


async def test_a_flood_of_changes_is_announced_once() -> None:
    ear = Ear()
    async with open_pool({"toy": toy()}, on_change=ear.hear) as pool:
        await pool.subscribe("toy", "toy://one")
        await ear.hears("toy", "connected")
        async with anyio.create_task_group() as group:
            for _ in range(50):
                group.start_soon(words, pool, "touch")
        await ear.hears("toy", "toy://one")
    assert len(ear.changes) < 50
