"""The gateway's door: what is about to be called is started first, and nothing else."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.opened import ADD, Place, opened
from trysquare.gateway.definitions.catalogue import Catalogue
from trysquare.gateway.door import open_servers
from trysquare.store.lazy import LazyDatabase


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(folder=tmp_path)


def _states(gateway: Any) -> dict[str, str]:
    return {name: one.state for name, one in gateway.toolset.servers.fleet.status().items()}


@pytest.mark.parametrize("name", ["mcp_sums", "sums__add"])
async def test_only_the_server_whose_call_is_on_its_way_is_started_before_it(place: Place, name: str) -> None:
    place.write_config({"sums": place.server("sums", ADD), "texts": place.server("texts", ADD)})
    async with opened(place, called=[name, "mcp_sum", "mcp_sums__add"]) as gateway:
        assert _states(gateway)["sums"] in ("starting", "running")
        await gateway.toolset.settled()
        assert _states(gateway) == {"sums": "running", "texts": "asleep"}
        assert (await gateway.execute("sums", "add", a=1, b=2)).success
        assert gateway.toolset.servers.fleet.status()["sums"].connections == 1


async def test_a_server_that_waits_for_a_person_is_not_started_before_its_call_either(place: Place) -> None:
    place.write_config({"sums": place.server("sums", ADD)})
    async with opened(place) as gateway:
        assert (await gateway.execute("sums", "add", a=1, b=2)).success
    place.write_config({"sums": {**place.server("sums", ADD), "env": {"MODE": "other"}}})
    async with opened(place, called=["mcp_sums"]) as gateway:
        await gateway.toolset.settled()
        assert _states(gateway) == {"sums": "asleep"}
        refused = await gateway.execute("sums", "add", a=1, b=2)
        assert "until a person has agreed" in str(refused.error)


async def test_servers_that_were_opened_before_go_on_behind_the_door(place: Place) -> None:
    place.write_config({"sums": place.server("sums", ADD)})
    state = LazyDatabase(place.folder / "state" / "state.db")
    async with open_servers([place.config], state=state) as servers:
        await servers.begin(["mcp_sums"])
        async with opened(place, called=["mcp_sums"], opened=servers) as gateway:
            assert (await gateway.execute("sums", "add", a=1, b=2)).success
            assert gateway.toolset.servers.fleet.status()["sums"].connections == 1
            assert gateway.toolset.servers.fleet is servers.fleet
    state.close()


async def test_the_door_takes_further_files_than_those_that_were_opened_before(place: Place) -> None:
    place.write_config({"sums": place.server("sums", ADD)})
    first = place.folder / "first.json"
    first.write_text(json.dumps({"sums": place.server("sums", ADD), "gone": {"command": "/nowhere"}}))
    state = LazyDatabase(place.folder / "state" / "state.db")
    async with open_servers([first], state=state) as servers, opened(place, opened=servers) as gateway:
        assert list(_states(gateway)) == ["sums"]
        assert (await gateway.execute("sums", "add", a=1, b=2)).success
    state.close()


async def test_a_call_that_comes_while_the_tools_are_put_down_waits_for_them(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, goes_on = threading.Event(), threading.Event()
    take = Catalogue.take

    def take_slowly(self: Catalogue, *arguments: Any) -> Any:
        entered.set()
        assert goes_on.wait(20)
        return take(self, *arguments)

    monkeypatch.setattr(Catalogue, "take", take_slowly)
    place.write_config({"sums": place.server("sums", ADD)})
    async with opened(place, called=["mcp_sums"]) as gateway:
        assert await asyncio.to_thread(entered.wait, 20)
        called = asyncio.create_task(gateway.execute("sums", "add", a=1, b=2))
        for _ in range(100):
            await asyncio.sleep(0)
        goes_on.set()
        assert (await called).success
