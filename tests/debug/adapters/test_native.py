"""C, Ruby and Node under their debuggers, where they differ: crashes, watched values, attaching, what cannot be."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from tests.debug.calling import Tools, line_of, opened, status_of
from tests.support import missing_component, node_program
from trysquare.debug.adapters.lldb import PACKAGE as LLDB
from trysquare.debug.adapters.rdbg import PACKAGE as RDBG

COUNTING = """
    #include <stdio.h>
    int total = 0;
    int add(int n) {
        total += n;
        return total;
    }
    int main(void) {
        for (int i = 0; i < 3; i++) add(i);
        printf("total %d\\n", total);
        return 0;
    }
    """


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncGenerator[Tools]:
    async with opened(tmp_path) as tools:
        yield tools


def need(names: tuple[str, ...], package: str) -> None:
    if not any(shutil.which(name) for name in names):
        missing_component(names[0], f"apt-get install {package}")


async def test_a_crash_in_c_is_a_stop_at_the_place(tools: Tools) -> None:
    need(LLDB.programs, "lldb-19")
    program = tools.write("crash.c", "int main(void) {\n    int *p = 0;\n    *p = 3;\n    return 0;\n}\n")
    stop = await tools.start(program, timeout=120)
    assert status_of(stop) == "stopped_at_exception"
    assert line_of(stop) == 3
    assert "SIGSEGV" in stop["summary"]
    ended = await tools.call("execute", timeout=60)
    assert ended["data"].get("signal") == "SIGSEGV", ended


async def test_c_stops_where_a_function_is_entered_and_where_a_value_is_written(tools: Tools) -> None:
    need(LLDB.programs, "lldb-19")
    program = tools.write("count.c", COUNTING)
    stop = await tools.start(program, 9, timeout=120)
    assert line_of(stop) == 9
    await tools.call("breakpoint", action="clear_all")
    await tools.call("breakpoint", action="watch", name="total")
    stop = await tools.call("execute")
    assert "watch" in stop["data"]["execution_state"]["stop_reason"] or "data" in str(stop), stop
    await tools.call("breakpoint", action="unwatch", name="total")
    assert status_of(await tools.call("execute")) == "terminated"


async def test_python_says_what_to_use_instead_of_watching_a_value(tools: Tools) -> None:
    await tools.start(tools.write("app.py", "x = 1\nx = 2\n"), 2)
    refused = await tools.refused("breakpoint", action="watch", name="x")
    assert refused["error"]["code"] == "CAPABILITY_NOT_SUPPORTED"
    assert "trace" in refused["instruction"]


async def test_a_breakpoint_removed_in_ruby_is_gone(tools: Tools) -> None:
    need(RDBG.programs, "ruby")
    program = tools.write("loop.rb", "x = 1\n3.times do |i|\n  x += i\n  x += 1\nend\nputs x\n")
    stop = await tools.start(program, 3, 4, timeout=60)
    assert line_of(stop) == 3
    await tools.call("breakpoint", action="remove", location="loop.rb:3")
    assert [line_of(await tools.call("execute")) for _ in range(3)] == [4, 4, 4]
    assert status_of(await tools.call("execute")) == "terminated"


async def test_ruby_refuses_what_it_would_pass_over(tools: Tools) -> None:
    need(RDBG.programs, "ruby")
    program = tools.write("loop.rb", "x = 1\ny = 2\nputs x\n")
    await tools.start(program, 2, timeout=60)
    refused = await tools.refused("breakpoint", location="loop.rb:3", hit_condition="5")
    assert refused["error"]["code"] == "CAPABILITY_NOT_SUPPORTED"
    refused = await tools.refused("session_start", pid=1, language="ruby")
    assert refused["error"]["code"] == "CAPABILITY_NOT_SUPPORTED"


async def test_a_node_program_whose_inspector_listens_is_attached_to_and_runs_on_after(tools: Tools) -> None:
    program = tools.write("tick.js", "let n = 0;\nsetInterval(() => {\n  n += 1;\n  console.log(n);\n}, 10);\n")
    command = [node_program(), "--inspect=127.0.0.1:0", str(program)]
    async with await anyio.open_process(command) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        told = b""
        with anyio.fail_after(30):
            while b"ws://" not in told:
                told += await process.stderr.receive()
        port = int(told.split(b"ws://127.0.0.1:")[1].split(b"/")[0])
        stop = await tools.call(
            "session_start", port=port, language="javascript", breakpoints=[{"file": "tick.js", "line": 3}]
        )
        assert line_of(stop) == 3
        await tools.call("session", action="stop")
        with anyio.fail_after(30):
            for _ in range(3):
                assert await process.stdout.receive()
        assert process.returncode is None
        process.kill()
