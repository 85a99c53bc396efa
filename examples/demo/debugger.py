"""Steps of the debugger: why a test fails, in one call, and a program stopped, stepped through and looked into."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

from examples.demo.conversation import Conversation, converse
from examples.demo.stage import Stage, envelope_of

SHOP = """\
def discount(price, percent):
    return price * percent / 100


def total(prices, percent):
    whole = 0
    for price in prices:
        whole = whole + price + discount(price, percent)
    return whole


if __name__ == "__main__":
    print(total([100, 50], 10))
"""
TEST = """\
import unittest

from shop import total


class TotalTest(unittest.TestCase):
    def test_nothing_off(self):
        assert total([100, 50], 0) == 150

    def test_ten_percent_off(self):
        assert total([100, 50], 10) == 135
"""
FAULTY, IN_LOOP = "shop.py:8", 8


def missing() -> str | None:
    """What to install so that the debugger can be shown, or None if it can."""
    return None if find_spec("debugpy") else "it needs debugpy; run: pip install 'trysquare[debug]'"


def write_program(project: Path) -> None:
    """Write a small program with a bug, and a test that finds it."""
    (project / "shop.py").write_text(SHOP, encoding="utf-8")
    (project / "test_shop.py").write_text(TEST, encoding="utf-8")


@asynccontextmanager
async def debugger_server(stage: Stage) -> AsyncGenerator[Conversation]:
    """A server with the debugger, and a program to debug."""
    await asyncio.to_thread(write_program, stage.project)
    async with converse(stage, "--debugger") as talk:
        yield talk


async def explain_failure(talk: Conversation) -> None:
    """One call runs the test, records it, and names the suspect lines with the reason for each."""
    talk.transcript.code(TEST.rstrip().splitlines()[-1].strip())
    result = await talk.call("debug_explain", {"target": "python -m unittest test_shop"}, lines=5)
    answer = str(envelope_of(result).get("value", ""))
    talk.transcript.expect(FAULTY in answer, "the line at fault is named")
    talk.transcript.expect(len(answer) < 2048, f"one call, {len(answer)} characters")


async def step_through(talk: Conversation) -> None:
    """A program stops at a breakpoint, is stepped and looked into, and runs to its end."""
    breakpoints: list[object] = [{"file": "shop.py", "line": IN_LOOP}]
    stop = envelope_of(await talk.call("debug_session_start", {"target": "shop.py", "breakpoints": breakpoints}))
    talk.transcript.expect(
        stop["data"]["execution_state"]["status"] == "stopped_at_breakpoint", "the place, its code and its values"
    )
    stepped = envelope_of(await talk.call("debug_step", {}))
    talk.transcript.expect("whole" in stepped["data"]["changed"], "what the step changed")
    asked: dict[str, object] = {"target": "expression", "expression": "[price * percent for price in prices]"}
    looked = envelope_of(await talk.call("debug_inspect", asked))
    talk.transcript.expect(looked["data"]["value"] == "[1000, 500]", "an expression's value")
    refused = envelope_of(await talk.call("debug_inspect", {"target": "expression", "expression": "prices.clear()"}))
    talk.transcript.expect(refused.get("code") == "EXECUTION_NOT_ALLOWED", "no call that could change the program")
    await talk.call("debug_breakpoint", {"action": "clear_all"})
    ended = envelope_of(await talk.call("debug_execute", {}))
    talk.transcript.expect(ended["data"]["exit_code"] == 0, "its exit code and what it wrote")
