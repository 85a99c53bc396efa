"""Values as answers show them: bounded in time and length, secrets masked, arrays by shape, parts by path."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.debug.serving import Desktop, served, size_of

PROGRAM = """\
import time


class Hanging:
    def __repr__(self):
        time.sleep(1000)


class Spinning:
    def __repr__(self):
        while True:
            pass


class Raising:
    def __repr__(self):
        raise ValueError("no text")


class Huge:
    def __repr__(self):
        return "x" * 50_000_000


class Array:
    shape = (1000, 3)
    dtype = "float64"

    def __repr__(self):
        return "[0.0, " * 3000


class Item:
    def __init__(self):
        self.tags = ["red", "green"]


class Basket:
    def __init__(self):
        self.items = [Item() for _ in range(5)]
        self.owner = self


def look():
    hanging = Hanging()
    within = [Hanging()]
    spinning = Spinning()
    raising = Raising()
    huge = Huge()
    array = Array()
    basket = Basket()
    cycle = [1]
    cycle.append(cycle)
    password = "tiger"
    api_key = "k-123"
    text = "y" * 100_000
    numbers = list(range(10_000))
    return 0


look()
"""
AT_RETURN = PROGRAM.splitlines().index("    return 0") + 1


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def desktop(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Desktop]:
    async with served(tmp_path_factory.mktemp("served")) as desktop:
        yield desktop


@pytest.fixture(scope="module")
async def stop(desktop: Desktop, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    program = tmp_path_factory.mktemp("program") / "values.py"
    program.write_text(PROGRAM, encoding="utf-8")
    return await desktop.start(program, AT_RETURN)


async def test_a_repr_that_hangs_spins_raises_or_is_huge_is_not_run(stop: dict[str, Any]) -> None:
    values = stop["data"]["locals"]
    assert values["hanging"] == "<Hanging>"
    assert values["within"] == "[<Hanging>]"
    assert values["spinning"] == "<Spinning>"
    assert values["raising"] == "<Raising>"
    assert values["huge"] == "<Huge>"
    assert size_of(stop) < 6000


async def test_a_long_value_tells_how_long_it_really_is(desktop: Desktop, stop: dict[str, Any]) -> None:
    told = await desktop.call("inspect", target="expression", expression="text")
    assert told["data"]["value"].endswith("(100000 characters)")
    told = await desktop.call("inspect", target="locals", budget=3000)
    assert told["data"]["locals"]["numbers"].endswith("(10000 items)")


async def test_arrays_are_shown_by_shape(stop: dict[str, Any]) -> None:
    assert stop["data"]["locals"]["array"] == "Array shape=(1000, 3) dtype=float64"


async def test_secrets_are_masked_wherever_they_are_asked_for(desktop: Desktop, stop: dict[str, Any]) -> None:
    assert stop["data"]["locals"]["password"] == stop["data"]["locals"]["api_key"] == "***"
    told = await desktop.call("variable", expression="password")
    assert "tiger" not in str(told)


async def test_cycles_end(stop: dict[str, Any]) -> None:
    assert stop["data"]["locals"]["cycle"] == "[1, <cycle>]"


async def test_parts_are_reached_by_their_path(desktop: Desktop, stop: dict[str, Any]) -> None:
    tags = await desktop.call("inspect", target="expression", expression="basket.items[3].tags")
    assert tags["data"]["value"] == "['red', 'green']"
    assert tags["data"]["parts"] == {"0": "'red'", "1": "'green'"}
    around = await desktop.call("inspect", target="expression", expression="basket.owner.owner.items[4]")
    assert around["data"]["parts"]["tags"] == "['red', 'green']"


async def test_every_answer_keeps_to_its_budget(desktop: Desktop, stop: dict[str, Any]) -> None:
    for arguments in ({"expression": "text"}, {"expression": "numbers"}, {"expression": "huge"}):
        told = await desktop.call("inspect", target="expression", **arguments)
        assert size_of(told) < 8000, arguments


async def test_types_are_shown_where_they_are_requested(desktop: Desktop, stop: dict[str, Any]) -> None:
    told = await desktop.call("inspect", target="locals", detailed=True)
    assert told["data"]["locals"]["array"] == {"value": "Array shape=(1000, 3) dtype=float64", "type": "Array"}


async def test_watched_expressions_are_shown_at_every_stop(desktop: Desktop, tmp_path: Path) -> None:
    program = tmp_path / "count.py"
    program.write_text("total = 0\nfor n in range(3):\n    total = total + n\nprint(total)\n", encoding="utf-8")
    await desktop.start(program, 3)
    assert (await desktop.call("watch", action="set", expression="n * 10"))["data"]["watch"] == {"n * 10": "0"}
    await desktop.call("watch", action="add", expression="missing")
    stop = await desktop.call("execute")
    assert stop["data"]["watch"]["n * 10"] == "10"
    assert "not defined" in stop["data"]["watch"]["missing"]
    await desktop.call("watch", action="remove", expression="missing")
    assert (await desktop.call("watch"))["data"]["watch"] == {"n * 10": "10"}
    assert (await desktop.refused("watch", action="set", expression="print(n)"))["code"] == "EXECUTION_NOT_ALLOWED"
