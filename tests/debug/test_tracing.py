"""trace, who_wrote, probe and diff: what a recorded run tells through the debugger's tools."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from trysquare import Result, Toolset, call_tool
from trysquare.debug import DebugConfig, open_debugger

CART = """class Cart:
    def __init__(self):
        self.total = 0
        self.items = {}

    def add(self, name, price):
        self.items[name] = price
        self.total += price


def check(prices, limit):
    cart = Cart()
    for number, price in enumerate(prices):
        cart.add(f"p{number}", price)
    if cart.total > limit:
        return "too much"
    return "enough"


if __name__ == "__main__":
    import sys

    print(check([5] * int(sys.argv[1]), 100))
"""
LOOP = "x = 0\nfor i in range(20000):\n    x = i % 7\n    y = x\n"


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncGenerator[Toolset]:
    (tmp_path / "cart.py").write_text(CART, encoding="utf-8")
    (tmp_path / "loop.py").write_text(LOOP, encoding="utf-8")
    async with open_debugger(DebugConfig(root=tmp_path)) as toolset:
        yield toolset


async def called(tools: Toolset, name: str, **arguments: Any) -> Result[Any]:
    result = await call_tool(tools, name, arguments)
    assert result.success, result.to_text()
    assert len(result.to_text().encode()) < 4500
    return result


async def test_a_call_is_traced_with_its_lines_changes_and_calls_and_its_loop_folded(tools: Toolset) -> None:
    result = await called(tools, "trace", target="cart.py 30", function="check")
    text = str(result.value)
    assert text.startswith("check(prices=[5, 5, 5, 5, 5, 5, … 30 items], limit=100)  [call 1, from cart.py:")
    assert "#1 12: cart = Cart()   # cart = <Cart total=0 items={}>; Cart.__init__() -> None" in text
    assert "… 26 more rounds of lines 13 to 14" in text
    assert text.endswith("returned 'too much' at line 16")
    recording = result.to_json()["recording"]
    assert recording["lines"] == 64
    assert recording["slow_down"] >= 1


async def test_a_call_is_chosen_by_its_number_from_the_end_or_by_a_condition(tools: Toolset) -> None:
    third = await called(tools, "trace", target="cart.py 5", function="Cart.add", call=3)
    assert "name='p2'" in str(third.value)
    last = await called(tools, "trace", target="cart.py 5", function="add", call=-1)
    assert "name='p4'" in str(last.value)
    chosen = await called(tools, "trace", target="cart.py 5", function="add", when="self.total == 10")
    assert "name='p2'" in str(chosen.value)


async def test_a_trace_is_read_step_by_step_and_backwards(tools: Toolset) -> None:
    await called(tools, "trace", target="cart.py 2", function="check")
    last = (await called(tools, "trace")).to_json()["data"]
    assert last["code"] == 'return "enough"'
    before = (await called(tools, "trace", at=-2)).to_json()["data"]
    assert (before["code"], before["step"]) == ("if cart.total > limit:", last["step"] - 1)
    first = (await called(tools, "trace", at=1)).to_json()["data"]
    assert first["values"] == {"prices": "[5, 5]", "limit": "100"}


async def test_what_was_not_recorded_cannot_be_read(tools: Toolset) -> None:
    result = await call_tool(tools, "trace", {"at": 1})
    assert not result.success
    assert result.to_json()["error"]["code"] == "VALIDATION_MISSING_PARAM"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"function": "nowhere"}, "was never called"),
        ({"function": "check", "call": 9}, "called 1 times, so there is no call 9"),
        ({"function": "check", "when": "limit > 1000"}, "none of the 1 calls"),
        ({"function": "check", "when": "prices.clear()"}, "calls a function"),
        ({"function": "check", "when": "limit >"}, "is not a Python expression"),
        ({}, "VALIDATION_MISSING_PARAM"),
    ],
)
async def test_a_trace_that_cannot_be_says_why(tools: Toolset, arguments: dict[str, Any], said: str) -> None:
    result = await call_tool(tools, "trace", {"target": "cart.py 2", **arguments})
    assert not result.success
    assert said in result.to_text()


async def test_the_last_writes_of_an_attribute_a_name_and_a_key_are_found(tools: Toolset) -> None:
    total = await called(tools, "who_wrote", target="cart.py 3", value="Cart.total")
    assert total.to_json()["count"] == 4
    assert "#4 cart.py:8 in Cart.add: `self.total += price`  self.total = 15 of object 1" in str(total.value)
    key = await called(tools, "who_wrote", target="cart.py 3", value="items['p1']")
    assert key.to_json()["count"] == 1
    assert "cart.py:7" in str(key.value)
    name = await called(tools, "who_wrote", target="loop.py", value="x", when="x == 6")
    assert "loop.py:3" in str(name.value)
    assert name.to_json()["count"] == 20000 // 7
    nobody = await called(tools, "who_wrote", target="loop.py", value="z")
    assert "`z`" in str(nobody.value)


async def test_probes_lose_no_hit_and_are_summed_up(tools: Toolset) -> None:
    probes = [{"location": "loop.py:4", "expressions": ["x", "i"]}, {"location": "loop.py:1", "expressions": ["nope"]}]
    result = await called(tools, "probe", target="loop.py", probes=probes)
    assert str(result.value).splitlines() == [
        "loop.py:4 `y = x` 20000 hits",
        "  x: 20000 values, min 0, max 6, 7 distinct, first 0, last 0, first change at hit 2: 0 -> 1, "
        "mostly 0 2858x, 1 2857x, 2 2857x",
        "  i: 20000 values, min 0, max 19999, 1000 or more distinct, first 0, last 19999, "
        "first change at hit 2: 0 -> 1",
        "loop.py:1 `x = 0` 1 hits",
        "  nope: 0 values, 1 failed, such as NameError: name 'nope' is not defined",
    ]


async def test_probes_in_threads_lose_no_hit(tools: Toolset, tmp_path: Path) -> None:
    code = (
        "import threading\n\ndef work():\n    for i in range(2500):\n        pass\n\n"
        "threads = [threading.Thread(target=work) for _ in range(8)]\n"
        "for each in threads: each.start()\nfor each in threads: each.join()\n"
    )
    (tmp_path / "threads.py").write_text(code, encoding="utf-8")
    result = await called(tools, "probe", target="threads.py", probes=[{"location": "threads.py:5"}])
    assert "20000 hits" in str(result.value)


@pytest.mark.parametrize(
    ("probe", "said"),
    [
        ({"location": "loop.py:4", "expressions": ["open('f', 'w')"]}, "calls a function"),
        ({"location": "loop.py:99"}, "the file has 4 lines"),
        ({"location": "none.py:1"}, "No such file or directory"),
    ],
)
async def test_a_probe_that_cannot_be_is_refused(tools: Toolset, probe: dict[str, Any], said: str) -> None:
    result = await call_tool(tools, "probe", {"target": "loop.py", "probes": [probe]})
    assert not result.success
    assert said in result.to_text()


async def test_two_runs_are_compared_up_to_where_they_part(tools: Toolset) -> None:
    result = await called(tools, "diff", target="cart.py 30", passing="cart.py 10")
    text = str(result.value)
    assert "First different value: cart.py:11 check called  prices" in text
    assert "after cart.py:13 `for number, price in enumerate(prices):` in check" in text
    assert "  here: cart.py:14" in text
    assert "  there: cart.py:15" in text


async def test_two_stops_are_compared_part_by_part(tools: Toolset) -> None:
    await called(tools, "session_start", target="cart.py", args=["3"], breakpoints=[{"file": "cart.py", "line": 14}])
    await called(tools, "execute")
    found = (await called(tools, "diff")).to_json()["data"]
    assert found["changed"]["number"] == "0 -> 1"
    assert found["changed"]["cart.total"] == "0 -> 5"
    assert found["changed"]["cart.items['p0']"] == "new: 5"
    missing = await call_tool(tools, "diff", {"stop": 9})
    assert missing.to_json()["error"]["code"] == "VALIDATION_INVALID_PARAM"
