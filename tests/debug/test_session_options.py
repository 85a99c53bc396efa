"""How a session starts: stop on entry, exceptions, input, many breakpoints; and where each breakpoint is."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.debug.calling import Tools, line_of, opened, status_of
from tests.support import node_program

CAUGHT = """\
def read(text):
    try:
        return int(text)
    except ValueError:
        return 0


print(read("x"))
"""
GREETS = """\
name = input()
print("hello", name, flush=True)
rest = input()
print("and", rest)
"""
JS_GREETS = """\
let all = '';
process.stdin.on('data', (chunk) => { all += chunk; });
process.stdin.on('end', () => { console.log('got', all.trim()); });
"""
SHAPE = '''\
"""A module."""


def area(
    width,
    height,
):
    # the product

    return (
        width
        * height
    )


print(area(2, 3))
'''


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncGenerator[Tools]:
    async with opened(tmp_path) as tools:
        yield tools


async def test_a_program_stops_before_its_first_line(tools: Tools) -> None:
    tools.write("caught.py", CAUGHT)
    stop = await tools.call("session_start", target="caught.py", stop_on_entry=True)
    assert line_of(stop) == 1
    assert stop["data"]["execution_state"]["stop_reason"] == "entry"
    ended = await tools.call("execute")
    assert ended["data"]["exit_code"] == 0


async def test_a_test_stops_at_the_first_line_of_its_own_file(tools: Tools) -> None:
    tools.write("test_one.py", "def test_one():\n    assert 1\n")
    stop = await tools.call("session_start", target="test_one.py::test_one", stop_on_entry=True)
    assert stop["data"]["location"].startswith(f"{tools.folder}/test_one.py:1 ")


async def test_a_node_program_stops_before_its_first_line_and_a_restart_does_so_again(tools: Tools) -> None:
    tools.write("caught.js", "let a = 1;\na += 1;\nconsole.log(a);\n")
    given: dict[str, Any] = {"target": "caught.js", "runtime_path": node_program()}
    stop = await tools.call("session_start", **given, stop_on_entry=True)
    assert line_of(stop) == 1
    assert line_of(await tools.call("session", action="restart")) == 1


async def test_the_entry_of_a_launch_configuration_is_used(tools: Tools) -> None:
    tools.write("caught.py", CAUGHT)
    (tools.folder / ".vscode").mkdir()
    entry = {"name": "Run", "type": "debugpy", "program": "caught.py", "stopOnEntry": True}
    tools.write(".vscode/launch.json", json.dumps({"configurations": [entry]}))
    assert line_of(await tools.call("session_start", launch_config_name="Run")) == 1


async def test_exceptions_are_chosen_at_the_start(tools: Tools) -> None:
    tools.write("caught.py", CAUGHT)
    stop = await tools.call("session_start", target="caught.py", exceptions=["raised"])
    assert status_of(stop) == "stopped_at_exception"
    assert line_of(stop) == 3
    refused = await tools.refused("session_start", target="caught.py", exceptions=["nosuch"])
    assert "raised" in refused["instruction"]
    assert len(await tools.sessions()) == 1


async def test_no_exceptions_means_none(tools: Tools) -> None:
    tools.write("fails.py", "x = {}\nx['a']\n")
    ended = await tools.call("session_start", target="fails.py", exceptions=[])
    assert ended["data"]["exit_code"] == 1


async def test_input_is_given_at_the_start(tools: Tools) -> None:
    tools.write("greets.py", GREETS)
    ended = await tools.call("session_start", target="greets.py", stdin="Ann\nBob\n")
    assert ended["data"]["exit_code"] == 0
    assert "hello Ann\nand Bob\n" in ended["data"]["output"]
    tools.write("greets.js", JS_GREETS)
    ended = await tools.call("session_start", target="greets.js", stdin="Ann\nBob\n", runtime_path=node_program())
    assert "got Ann\nBob" in ended["data"]["output"]


async def test_input_is_written_while_it_runs_and_not_after_its_end_was_given(tools: Tools) -> None:
    tools.write("greets.py", GREETS)
    waiting = await tools.call("session_start", target="greets.py", timeout=1)
    assert status_of(waiting) == "running"
    assert status_of(await tools.call("execute", action="wait", stdin="Ann\n", timeout=1)) == "running"
    ended = await tools.call("execute", action="wait", stdin="Bob\n")
    assert "and Bob" in ended["data"]["output"]
    await tools.start(tools.write("caught.py", CAUGHT), 8, stdin="one line")
    refused = await tools.refused("execute", stdin="more")
    assert refused["error"]["code"] == "CAPABILITY_NOT_SUPPORTED"


async def test_input_is_not_given_to_a_program_that_runs_already(tools: Tools) -> None:
    refused = await tools.refused("session_start", port=1, stdin="x")
    assert "`stdin`" in refused["error"]["message"]


async def test_a_breakpoint_at_a_line_without_code_moves_to_the_next_statement(tools: Tools) -> None:
    stop = await tools.start(tools.write("shape.py", SHAPE), 8)
    assert line_of(stop) == 10
    assert stop["data"]["locals"]["width"] == "2"
    told = await tools.call("breakpoint", location="shape.py:9")
    assert "shape.py:10 (not at line 9, which has no code)" in told["summary"]
    moved = [(each["location"].rsplit(":", 1)[1], each["moved_from"]) for each in told["data"]["breakpoints"]]
    assert moved == [("10", 8), ("10", 9)]


async def test_200_breakpoints_take_one_request(tools: Tools) -> None:
    lines = "".join(f"x{number} = {number}\n" for number in range(1, 401))
    program = tools.write("long.py", lines)
    await tools.start(program, 1)
    told = await tools.call("breakpoint", locations=[f"long.py:{line}" for line in range(2, 202)])
    assert told["summary"] == "Set 200 breakpoints: 200 bound, 0 not bound."
    assert told["data"]["breakpoints"]["count"] == 201
    assert told["data"]["breakpoints"]["bound"][str(program)] == list(range(1, 202))
    assert line_of(await tools.call("execute")) == 2
    told = await tools.call("breakpoint", action="remove", locations=[f"long.py:{line}" for line in range(3, 202)])
    assert told["summary"] == "Removed 199 breakpoints."
    assert len(told["data"]["breakpoints"]) == 2


async def test_200_breakpoints_at_the_start_of_a_node_program(tools: Tools) -> None:
    program = tools.write("long.js", "".join(f"let x{number} = {number};\n" for number in range(1, 302)))
    stop = await tools.start(program, *range(2, 202), runtime_path=node_program())
    assert line_of(stop) == 2
    assert "warnings" not in stop
    assert line_of(await tools.call("execute")) == 3


async def test_breakpoints_that_are_not_bound_share_their_reason(tools: Tools) -> None:
    tools.write("other.js", "let a = 1;\n" * 6)
    await tools.start(tools.write("short.js", "let a = 1;\na += 1;\n"), 2, runtime_path=node_program())
    told = await tools.call("breakpoint", locations=[f"other.js:{line}" for line in range(1, 7)])
    assert told["summary"] == "Set 6 breakpoints: 0 bound, 6 not bound."
    [warning] = told["warnings"]
    assert warning.startswith("6 breakpoints are not bound: no loaded script has this line yet: ")
    assert warning.endswith("other.js:5 and 1 more.")


async def test_bulk_breakpoints_are_all_or_none(tools: Tools) -> None:
    await tools.start(tools.write("shape.py", SHAPE), 16)
    refused = await tools.refused("breakpoint", locations=["shape.py:10", "shape.py:99"])
    assert "17 lines" in refused["error"]["message"] or "16 lines" in refused["error"]["message"]
    assert len((await tools.call("breakpoint", action="list"))["data"]["breakpoints"]) == 1
