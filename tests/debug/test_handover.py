"""An explanation that hands over a live session: by the tool, and by the command with its prompt."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.debug.calling import Tools, opened
from tests.support import node_program

SHOP = """\
def lookup(key):
    try:
        return {"a": 1}[key]
    except KeyError:
        return 0


def discount(price, percent):
    return price * percent / 10


def total(price, percent):
    return price - discount(price, percent)
"""
TESTS = """\
import json

import pytest

from shop import lookup, total


def test_total():
    for key in "ab":
        assert lookup(key) in (0, 1)
    whole = total(100, 10)
    assert whole == 90


def test_nothing_off():
    assert total(100, 0) == 100


def test_library():
    json.loads("{")


@pytest.fixture
def broken():
    return {}["port"]


def test_fixture(broken):
    assert broken


@pytest.mark.parametrize("number", [1, 2, 3])
def test_number(number):
    assert number != 2


def test_raises_nothing():
    with pytest.raises(ValueError):
        lookup("a")
"""


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncGenerator[Tools]:
    async with opened(tmp_path) as tools:
        tools.write("shop.py", SHOP)
        tools.write("test_shop.py", TESTS)
        yield tools


async def test_a_session_stops_at_the_failing_assertion_past_caught_exceptions(tools: Tools) -> None:
    told = await tools.call("explain", target="test_shop.py::test_total", budget=0, stop="failure")
    assert told["value"].startswith("AssertionError")
    assert told["stop"]["location"] == f"{tools.folder}/test_shop.py:12 in test_total"
    assert told["stop"]["exception"]["type"] == "AssertionError"
    assert told["stop"]["locals"]["whole"] == "0.0"
    assert not [name for name in told["stop"]["locals"] if name.startswith("@")]
    value = await tools.call("inspect", target="expression", expression="whole + 1", session_id=told["session_id"])
    assert value["data"]["value"] == "1.0"


async def test_a_session_stops_at_the_first_suspect_and_can_be_stepped(tools: Tools) -> None:
    told = await tools.call("explain", target="test_shop.py::test_total", budget=20, stop="suspect")
    first = told["suspects"][0]
    assert first["location"].startswith("shop.py:")
    assert told["stop"]["location"] == f"{tools.folder}/{first['location']} in {first['function']}"
    assert "price" in told["stop"]["locals"]
    stepped = await tools.call("step")
    assert stepped["data"]["execution_state"]["status"] == "stopped_after_step"


@pytest.mark.parametrize(
    ("test", "place"),
    [
        ("test_library", "test_shop.py:20 in test_library"),
        ("test_fixture", "test_shop.py:25 in broken"),
        ("test_number[2]", "test_shop.py:34 in test_number"),
        ("test_raises_nothing", "test_shop.py:38 in test_raises_nothing"),
    ],
)
async def test_failures_of_libraries_fixtures_and_parameters_are_stopped_at(
    tools: Tools, test: str, place: str
) -> None:
    told = await tools.call("explain", target=f"test_shop.py::{test}", budget=0, stop="failure")
    assert told["stop"]["location"] == f"{tools.folder}/{place}"


async def test_a_script_and_a_node_program_are_stopped_at_their_failures(tools: Tools) -> None:
    tools.write("fails.py", "from shop import lookup\nlookup('b')\nprice = {}['price']\n")
    told = await tools.call("explain", target="python fails.py", stop="failure")
    assert told["stop"]["location"] == f"{tools.folder}/fails.py:3 in <module>"
    tools.write("fails.js", "let none = null;\ntry { none.a; } catch { }\nnone.b;\n")
    told = await tools.call("explain", target=f"{node_program()} fails.js", stop="failure")
    assert told["stop"]["location"].startswith(f"{tools.folder}/fails.js:3 ")


async def test_a_passing_test_has_no_failure_to_stop_at(tools: Tools) -> None:
    refused = await tools.refused("explain", target="test_shop.py::test_nothing_off", stop="failure")
    assert refused["error"]["message"] == "There is no failure to stop at."


@pytest.mark.parametrize("target", ["go test ./...", "cargo test", "node --test"])
async def test_a_target_of_another_framework_is_refused_before_it_runs(tools: Tools, target: str) -> None:
    refused = await tools.refused("explain", target=target, stop="failure")
    assert refused["error"]["code"] == "CAPABILITY_NOT_SUPPORTED"
    assert "without `stop`" in refused["instruction"]


def test_the_command_reads_commands_at_the_stop(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    (tmp_path / "test_shop.py").write_text(TESTS, encoding="utf-8")
    command = [sys.executable, "-m", "trysquare", "explain", "test_shop.py::test_total", "--budget", "0", "--stop"]
    lines = "p whole\np nosuch\nb shop.py:9\nrestart\nn\nw\nbogus\np\nh\nq\n"
    told = subprocess.run(command, cwd=tmp_path, input=lines, capture_output=True, text=True, timeout=120, check=False)
    assert told.returncode == 0, told.stderr
    assert ">  12" in told.stdout or "> 12" in told.stdout
    assert "whole = 0.0" in told.stdout
    assert "nosuch" in told.stdout
    assert f"{tmp_path}/shop.py:9 in discount" in told.stdout
    assert "Unknown command `bogus`" in told.stdout
    assert "Write p EXPRESSION." in told.stdout
    refused = subprocess.run(
        [*command, "--json"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert refused.returncode == 2
    assert "--stop" in refused.stderr
