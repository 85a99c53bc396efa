"""Answers say what is so: breakpoints that are bound, times that passed, frames that are compared, files that exist."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.debug.calling import Tools, opened, status_of
from trysquare import call_tool
from trysquare.debug import DebugConfig, open_debugger
from trysquare.debug.debugger import Frame
from trysquare.debug.snapshot import Shown, Snapshot, changes

LOOP = """\
def fact(n):
    if n == 0:
        return 1
    below = fact(n - 1)
    return n * below


total = 0
for i in range(3):
    total = total + fact(i)
print(total)
"""


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncGenerator[Tools]:
    async with opened(tmp_path) as tools:
        yield tools


async def test_breakpoints_that_are_not_bound_are_not_called_bound(tools: Tools) -> None:
    await tools.start(tools.write("loop.py", LOOP), 10)
    missing = await tools.call("breakpoint", action="function", name="nosuch")
    assert missing["data"]["functions"][0]["bound"] is False
    assert "nosuch" in missing["data"]["functions"][0]["why"]
    there = await tools.call("breakpoint", action="function", name="fact")
    assert [each["bound"] for each in there["data"]["functions"]] == [False, True]
    dotted = await tools.refused("breakpoint", action="function", name="Cart.fact")
    assert dotted["error"]["code"] == "VALIDATION_INVALID_PARAM"
    column = await tools.refused("breakpoint", location="loop.py:11:3")
    assert column["error"]["code"] == "CAPABILITY_NOT_SUPPORTED"
    assert len((await tools.call("breakpoint", action="list"))["data"]["breakpoints"]) == 1


async def test_a_condition_that_cannot_be_evaluated_is_reported(tools: Tools) -> None:
    program = tools.write("loop.py", LOOP)
    broken = await tools.refused(
        "session_start", target="loop.py", allow_side_effects=True,
        breakpoints=[{"file": "loop.py", "line": 10, "condition": "i =="}],
    )  # fmt: skip
    assert broken["error"]["code"] == "VALIDATION_INVALID_PARAM"
    for allowed in (False, True):
        ended = await tools.call(
            "session_start", target=program.name, allow_side_effects=allowed,
            breakpoints=[{"file": "loop.py", "line": 10, "condition": "nosuch > 1"}],
        )  # fmt: skip
        assert status_of(ended) == "terminated"
        assert any("nosuch" in warning and "loop.py:10" in warning for warning in ended["warnings"]), ended


async def test_one_expression_without_a_value_leaves_the_rest_of_a_log_message(tools: Tools) -> None:
    tools.write("loop.py", LOOP)
    logs = [{"file": "loop.py", "line": 10, "log_message": "i={i} y={nosuch} t={total}"}]
    ended = await tools.call("session_start", target="loop.py", breakpoints=logs)
    assert "i=1 y=<NameError" in ended["data"]["output"]
    assert "t=1" in ended["data"]["output"]


async def test_the_time_that_is_told_is_the_time_that_passed(tools: Tools) -> None:
    await tools.start(tools.write("wait.py", "x = 1\nimport threading\nthreading.Event().wait()\n"), 1)
    running = await tools.call("execute", wait_for_stop=False, timeout=500)
    assert "500" not in running["summary"]
    refused = await tools.refused("execute", action="continue")
    assert refused["error"]["code"] == "STATE_NOT_PAUSED"
    assert "execute continue" not in refused["instruction"]
    blocked = await tools.call("execute", action="pause", timeout=0.3)
    if status_of(blocked) == "running":
        assert all(step["arguments"].get("action") != "pause" for step in blocked["next_steps"])


async def test_a_jump_is_not_a_breakpoint_and_none_is_active_once_all_are_cleared(tools: Tools) -> None:
    await tools.start(tools.write("loop.py", LOOP), 10)
    jumped = await tools.call("execute", action="goto", jump_target="loop.py:9")
    assert status_of(jumped) != "stopped_at_breakpoint"
    await tools.call("breakpoint", action="clear_all")
    ended = await tools.call("run_until", location="loop.py:2", condition="n == 99")
    assert status_of(ended) == "terminated"
    assert ended["data"]["execution_state"]["breakpoints_active"] is False
    late = await tools.refused("breakpoint", location="loop.py:10")
    assert late["error"]["code"] == "SESSION_TERMINATED"
    assert (await tools.call("breakpoint", action="list"))["data"]["breakpoints"] == []


async def test_values_of_another_frame_are_not_called_changed(tools: Tools) -> None:
    await tools.start(tools.write("loop.py", LOOP), 3)
    out = await tools.call("step", action="out")
    assert "n" not in out["data"].get("changed", {})


def test_changes_are_those_of_one_frame() -> None:
    frame = Frame(id=1, name="fact", file="/loop.py", line=4)
    earlier = Snapshot(frame=frame, code="", values=Shown(values={}), texts={"n": "0"}, changed={}, depth=5, watched={})
    assert changes(earlier, frame, {"n": "1"}, depth=4) == {}
    assert changes(earlier, frame, {"n": "1"}, depth=5) == {"n": "0 -> 1"}


async def test_a_file_that_is_not_there_is_refused(tools: Tools) -> None:
    tools.write("loop.py", LOOP)
    for target in ("nosuch.py", "looop.py", "nosuch.js", "nosuch.go", "tests/test_x.py::test_y"):
        refused = await tools.refused("session_start", target=target)
        assert refused["error"]["code"] == "VALIDATION_INVALID_PARAM", refused
    assert "loop.py" in (await tools.refused("session_start", target="looop.py"))["instruction"]


async def test_launch_configurations_that_exist_are_named_and_what_is_not_done_is_said(tools: Tools) -> None:
    tools.write("loop.py", LOOP)
    names = [
        {"name": f"Run {each}", "type": "debugpy", "program": "loop.py", "preLaunchTask": "build"}
        for each in ("alpha", "beta")
    ]
    (tools.folder / ".vscode").mkdir()
    tools.write(".vscode/launch.json", json.dumps({"configurations": names}))
    refused = await tools.refused("session_start", launch_config_name="qqqqqqqqqq")
    assert "Run alpha" in refused["error"]["message"]
    started = await tools.call("session_start", launch_config_name="Run alpha")
    assert any("preLaunchTask" in warning for warning in started["warnings"])


async def test_output_that_was_not_asked_for_is_not_shown(tools: Tools) -> None:
    await tools.start(tools.write("loop.py", LOOP), 11)
    ended = await tools.call("execute", collect_output=False)
    assert status_of(ended) == "terminated"
    assert "output" not in ended["data"]


async def test_names_of_python_itself_are_not_among_the_values(tools: Tools) -> None:
    stop = await tools.start(tools.write("loop.py", LOOP), 10)
    assert not [name for name in stop["data"]["locals"] if name.startswith("__")]


async def test_a_function_that_is_never_called_is_not_a_tool_that_is_missing(tools: Tools) -> None:
    tools.write("loop.py", LOOP)
    refused = await tools.refused("trace", target="loop.py", function="nosuch")
    assert refused["error"]["code"] == "INTROSPECTION_NOT_FOUND"


async def test_one_write_of_a_key_is_counted_once(tools: Tools) -> None:
    tools.write("conf.py", "conf = dict(port=1)\nconf['port'] = 2\nconf['other'] = 3\n")
    told = await tools.call("who_wrote", target="conf.py", value="conf['port']")
    assert told["count"] == 2
    assert "conf.py:3" not in told["value"]


async def test_a_tool_that_only_reads_keeps_to_it_where_more_is_allowed_and_names_the_call(tools: Tools) -> None:
    await tools.start(tools.write("loop.py", LOOP), 10, allow_side_effects=True, session_id="mine")
    refused = await tools.refused("inspect", target="expression", expression="fact(3)")
    assert refused["error"]["code"] == "EXECUTION_NOT_ALLOWED"
    assert refused["next"]["tool"] == "debug_variable"
    told = await tools.call("variable", **refused["next"]["arguments"])
    assert told["data"]["value"] == "6"


EXPRESSIONS = ("conf", "conf['password']", "conf['inner'][0]")


@pytest.mark.parametrize("shows", [False, True])
async def test_secrets_are_shown_where_the_setting_says_so(tmp_path: Path, shows: bool) -> None:
    # In pieces: the code around a stop is shown as it is written.
    program = """
        conf = {"password": "tig" + "er", "tokens": 3, "inner": [{"api_key": "k-" + "1"}]}
        token = "t-" + "9"
        done = 1
    """
    (tmp_path / "conf.py").write_text(dedent(program).lstrip(), encoding="utf-8")
    async with open_debugger(DebugConfig(root=tmp_path, shows_secrets=shows)) as toolset:
        arguments: dict[str, Any] = {"target": "conf.py", "breakpoints": [{"file": "conf.py", "line": 3}]}
        asked: list[tuple[str, dict[str, Any]]] = [
            ("session_start", arguments),
            *(("inspect", {"target": "expression", "expression": each}) for each in EXPRESSIONS),
            ("variable", {"expression": "token"}),
            ("watch", {"action": "set", "expression": "conf"}),
        ]
        told = [(await call_tool(toolset, tool, each)).to_text() for tool, each in asked]
    whole = "\n".join(told)
    assert [secret in whole for secret in ("tiger", "k-1", "t-9")] == [shows] * 3
    assert "'tokens': 3" in whole
