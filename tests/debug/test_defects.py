"""What other debuggers for agents were found to get wrong, each as it has to be, over MCP against the real debugger."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import anyio
import pytest

from tests.debug.serving import Desktop, served, size_of

SHOP = """\
def price(item):
    amount = item["amount"]
    cost = item["cost"]
    total = amount * cost
    return total


def main():
    basket = [{"amount": 2, "cost": 5}, {"amount": 3, "cost": 7}]
    whole = 0
    for item in basket:
        whole = whole + price(item)
    return whole


print("sum", main())
"""
WAITING = """\
import sys


def answer(word):
    count = len(word)
    return count


print("ready", flush=True)
for line in sys.stdin:
    print(answer(line.strip()), flush=True)
"""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """The same loop for all of the module, so that one server can answer all of it."""
    return "asyncio"


@pytest.fixture(scope="module")
async def desktop(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Desktop]:
    async with served(tmp_path_factory.mktemp("served")) as desktop:
        yield desktop


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return written(tmp_path, "shop.py", SHOP)


@pytest.fixture
def waiting(tmp_path: Path) -> Generator[subprocess.Popen[str]]:
    """A program that was not started for debugging, and answers each line that it is given."""
    program = written(tmp_path, "waiting.py", WAITING)
    with subprocess.Popen(
        [sys.executable, program.name], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def written(folder: Path, name: str, text: str) -> Path:
    program = folder / name
    program.write_text(text, encoding="utf-8")
    return program


async def test_1_attaching_to_a_process_works_and_leaves_it_running(
    desktop: Desktop, waiting: subprocess.Popen[str], tmp_path: Path
) -> None:
    await desktop.call("session_start", pid=waiting.pid, workspace_root=str(tmp_path), timeout=60)
    await desktop.call("breakpoint", action="set", location="waiting.py:6")
    told = asyncio.create_task(asyncio.to_thread(asked, waiting, "seven"))
    stop = await desktop.call("execute", action="wait", timeout=60)
    assert stop["data"]["locals"]["word"] == "'seven'"
    await desktop.call("session", action="stop")
    with anyio.fail_after(60):
        assert await told == "5\n"
        assert await asyncio.to_thread(asked, waiting, "and") == "3\n"


def asked(process: subprocess.Popen[str], word: str) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{word}\n")
    process.stdin.flush()
    return process.stdout.readline()


async def test_2_another_interpreter_can_be_named(desktop: Desktop, shop: Path) -> None:
    stop = await desktop.start(shop, 4, runtime_path=sys.executable)
    assert stop["data"]["execution_state"]["status"] == "stopped_at_breakpoint"
    refused = await desktop.refused(
        "session_start", target="shop.py", workspace_root=str(shop.parent), runtime_path="/no/such/python"
    )
    assert "/no/such/python" in refused["message"]


async def test_3_a_second_breakpoint_in_a_file_leaves_the_first(desktop: Desktop, shop: Path) -> None:
    await desktop.start(shop, 2)
    told = await desktop.call("breakpoint", action="set", location="shop.py:4")
    assert [each["location"] for each in told["data"]["breakpoints"]] == [f"{shop}:2", f"{shop}:4"]
    assert (await desktop.call("execute"))["data"]["location"].startswith(f"{shop}:4 ")
    assert (await desktop.call("execute"))["data"]["location"].startswith(f"{shop}:2 ")


async def test_4_running_to_a_place_keeps_breakpoints_and_tells_where_it_stopped(desktop: Desktop, shop: Path) -> None:
    await desktop.start(shop, 9)
    there = await desktop.call("run_until", location="shop.py:13", alternative_locations=["shop.py:5"])
    assert there["data"]["location"].startswith(f"{shop}:5 ")
    assert "warnings" not in there

    await desktop.call("breakpoint", action="set", location="shop.py:3")
    elsewhere = await desktop.call("run_until", location="shop.py:13")
    assert elsewhere["data"]["location"].startswith(f"{shop}:3 ")
    assert "stopped elsewhere" in elsewhere["warnings"][0]

    kept = await desktop.call("breakpoint", action="list")
    assert [each["location"] for each in kept["data"]["breakpoints"]] == [f"{shop}:9", f"{shop}:3"]
    await desktop.call("breakpoint", action="clear_all")
    ended = await desktop.call("run_until", location="shop.py:9")
    assert ended["data"]["exit_code"] == 0
    assert f"{shop}:9" in ended["warnings"][0]


async def test_5_a_crash_is_told_as_one_with_its_exit_code_and_its_output_once(
    desktop: Desktop, tmp_path: Path
) -> None:
    program = written(tmp_path, "crash.py", 'print("begun")\nnames = {}\nprint(names["ada"])\n')
    stop = await desktop.start(program)
    assert stop["data"]["execution_state"]["status"] == "stopped_at_exception"
    assert stop["data"]["exception"] == {"type": "KeyError", "message": "'ada'"}
    ended = await desktop.call("execute")
    assert ended["data"]["exit_code"] == 1
    assert "completed" not in ended["summary"]
    assert "exit code 1" in ended["summary"]
    whole = (await desktop.call("inspect", target="output"))["data"]["output"]
    assert whole.count("begun\n") == whole.count("KeyError: 'ada'") == 1
    assert ended["data"]["output"] in whole
    assert "pydevd" not in whole
    assert size_of(ended) < 2000


async def test_6_a_frame_is_the_one_that_was_asked_for(desktop: Desktop, shop: Path) -> None:
    await desktop.start(shop, 4)
    outer = await desktop.call("inspect", target="locals", frame=1)
    assert set(outer["data"]["locals"]) == {"basket", "whole", "item"}
    assert (await desktop.call("inspect", target="expression", expression="whole + 1", frame=1))["data"]["value"] == "1"
    assert (await desktop.call("variable", expression="len(basket)", frame=1))["data"]["value"] == "2"
    assert (await desktop.refused("inspect", frame=40))["code"] == "INTROSPECTION_INVALID_FRAME"


async def test_7_code_can_be_patched_in(desktop: Desktop, shop: Path) -> None:
    await desktop.start(shop, 4, allow_side_effects=True)
    await desktop.call("variable", action="patch", code="amount = amount + 40\nnote = 'patched'")
    assert (await desktop.call("variable", expression="(amount, note)"))["data"]["value"] == "(42, 'patched')"
    await desktop.call("breakpoint", action="clear_all")
    assert "sum 231" in (await desktop.call("execute"))["data"]["output"]


async def test_8_until_and_jump_target_are_done(desktop: Desktop, shop: Path) -> None:
    await desktop.start(shop, 2, allow_side_effects=True)
    there = await desktop.call("execute", until="shop.py:4")
    assert there["data"]["location"].startswith(f"{shop}:4 ")
    back = await desktop.call("execute", action="goto", jump_target="shop.py:3")
    assert back["data"]["location"].startswith(f"{shop}:3 ")
    again = await desktop.call("execute", action="goto", jump_target="shop.py:4")
    assert again["data"]["location"].startswith(f"{shop}:4 ")
    await desktop.call("execute")
    skipped = await desktop.call("execute", jump_target="shop.py:4")
    assert skipped["data"]["execution_state"]["status"] == "stopped_at_exception"
    assert "amount" in skipped["data"]["exception"]["message"]


async def test_9_the_first_stop_tells_its_place_code_and_reason(desktop: Desktop, shop: Path) -> None:
    stop = await desktop.start(shop, 4)
    assert stop["summary"] == f"Stopped at {shop}:4 in price: breakpoint"
    data = stop["data"]
    assert data["execution_state"] == {
        "status": "stopped_at_breakpoint",
        "breakpoints_active": True,
        "stop_reason": "breakpoint",
    }
    assert "> 4     total = amount * cost" in data["code_snapshot"]["formatted"]
    assert data["locals"] == {"amount": "2", "cost": "5", "item": "{'amount': 2, 'cost': 5}"}


async def test_10_history_names_each_operation_and_advice_fits_the_state(desktop: Desktop, shop: Path) -> None:
    await desktop.start(shop, 2)
    await desktop.call("step")
    told = await desktop.call("context")
    names = [each.split(":")[0] for each in told["data"]["history"]]
    assert [name.split()[0] for name in names] == ["session_start", "step"]
    assert all(each.endswith(" ms)") for each in told["data"]["history"])
    assert [each["location"] for each in told["data"]["breakpoints"]] == [f"{shop}:2"]
    known = {tool.name for tool in (await desktop.client.list_tools()).tools}
    assert {step["tool"] for step in told["next_steps"]} <= known


async def test_11_the_full_context_has_the_values(desktop: Desktop, shop: Path) -> None:
    await desktop.start(shop, 4)
    told = await desktop.call("context", detail_level="full")
    assert told["data"]["locals"]["amount"] == "2"
    assert [line.split()[1] for line in told["data"]["stack"]] == ["price", "main", "<module>"]


async def test_12_a_step_tells_what_it_changed(desktop: Desktop, shop: Path) -> None:
    await desktop.start(shop, 3)
    stepped = await desktop.call("step", count=2)
    assert stepped["data"]["changed"] == {"cost": "5", "total": "10"}
    assert stepped["data"]["before"]["location"] == f"{shop}:3 in price"
    assert stepped["data"]["stack_depth"] == 3


async def test_13_answers_keep_within_their_budget(desktop: Desktop, tmp_path: Path) -> None:
    text = (
        "def main():\n"
        + "".join(f"    value_{n} = 'x' * 300\n" for n in range(400))
        + "    return value_1\n\n\nmain()\n"
    )
    stop = await desktop.start(written(tmp_path, "many.py", text), 402)
    assert stop["data"]["truncated"]
    assert stop["data"]["total_variables"] == 400
    assert size_of(stop) < 5000
    small = await desktop.call("inspect", target="locals", budget=50)
    assert size_of(small) < 1000
    assert "value_1" in (await desktop.call("inspect", target="locals"))["data"]["locals"]


async def test_14_expressions_that_do_more_than_read_are_refused(desktop: Desktop, shop: Path) -> None:
    await desktop.start(shop, 4)
    for expression in ("__import__('os').getpid()", "item.pop('cost')", "(amount := 3)", "open('x')"):
        refused = await desktop.refused("inspect", target="expression", expression=expression)
        assert refused["code"] == "EXECUTION_NOT_ALLOWED", expression
    refused = await desktop.refused("breakpoint", location="shop.py:5", condition="item.clear()")
    assert refused["code"] == "EXECUTION_NOT_ALLOWED"
    refused = await desktop.refused("breakpoint", location="shop.py:5", log_message="now {item.clear()}")
    assert refused["code"] == "EXECUTION_NOT_ALLOWED"
    refused = await desktop.refused("variable", action="set", name="amount", value="3")
    assert refused["code"] == "EXECUTION_NOT_ALLOWED"


async def test_15_operations_of_one_session_take_turns(desktop: Desktop, tmp_path: Path) -> None:
    text = "def main():\n" + "".join(f"    step_{n} = {n}\n" for n in range(12)) + "    return 0\n\n\nmain()\n"
    program = written(tmp_path, "steps.py", text)
    await desktop.start(program, 2)
    stops = await asyncio.gather(*(desktop.call("step") for _ in range(8)))
    lines = sorted(int(stop["data"]["location"].split(":")[1].split()[0]) for stop in stops)
    assert lines == list(range(3, 11))


async def test_16_an_unknown_name_is_an_error_of_the_expression(desktop: Desktop, shop: Path) -> None:
    await desktop.start(shop, 4)
    refused = await desktop.refused("inspect", target="expression", expression="amuont")
    assert refused["code"] == "INTROSPECTION_EVAL_ERROR"
    assert "name 'amuont' is not defined" in refused["message"]
    assert "amount" in refused["instruction"]
