"""Node under its inspector: what is made from other files, what runs in threads, and programs that run already."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from tests.debug.calling import Tools, goes_on, line_of, opened, running, status_of
from tests.support import node_program
from trysquare.debug.adapters.base import listening_ports

TICKING = """
    let n = 0;
    setInterval(() => {
      n += 1;
      console.log(n);
    }, 10);
    """

# A Node that is asked to open its inspector can do so at one port only, of which a machine has one.
USUAL_PORT = pytest.mark.xdist_group("node's usual port")


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncGenerator[Tools]:
    async with opened(tmp_path) as tools:
        yield tools


async def test_a_module_that_was_made_from_another_file_stops_at_the_line_that_was_written(tools: Tools) -> None:
    tools.write(
        "sums.js",
        """\
        "use strict";


        exports.add = (a, b) => {
          const c = a + b;
          return c;
        };
        //# sourceMappingURL=sums.js.map
        """,
    )
    # Lines 4 to 6 of what runs are lines 1 to 3 of what was written.
    written = {"version": 3, "sources": ["sums.ts"], "names": [], "mappings": ";;;AAAA;AACA;AACA"}
    tools.write("sums.js.map", json.dumps(written))
    tools.write("sums.ts", "export const add = (a: number, b: number) => {\n  const c = a + b;\n  return c;\n};\n")
    program = tools.write("main.js", 'console.log(require("./sums.js").add(1, 2));\n')
    stop = await tools.call(
        "session_start",
        target=program.name,
        runtime_path=node_program(),
        breakpoints=[{"file": "sums.ts", "line": 3}],
    )
    assert (status_of(stop), line_of(stop)) == ("stopped_at_breakpoint", 3), stop
    assert stop["data"]["locals"]["c"] == "3"
    assert (await tools.call("execute"))["data"]["exit_code"] == 0


async def test_a_program_goes_on_under_the_debugger_when_a_context_of_its_own_is_gone(tools: Tools) -> None:
    program = tools.write(
        "contexts.js",
        """
        const vm = require("vm");
        require("v8").setFlagsFromString("--expose-gc");
        const collect = vm.runInNewContext("gc");
        for (let i = 0; i < 20; i++) vm.runInNewContext("1 + 1");
        setTimeout(() => {
          collect();
          setTimeout(() => {
            const left = 7;
            console.log("left", left);
          }, 50);
        }, 50);
        """,
    )
    stop = await tools.start(program, 10, runtime_path=node_program())
    assert stop["data"]["locals"]["left"] == "7", stop
    ended = await tools.call("execute")
    assert ended["data"]["exit_code"] == 0
    assert "left 7" in ended["data"]["output"]


async def test_a_breakpoint_in_a_thread_hits_and_the_thread_is_a_session_of_its_own(tools: Tools) -> None:
    program = tools.write(
        "threads.js",
        """
        const { Worker, isMainThread, workerData } = require("worker_threads");
        if (isMainThread) {
          new Worker(__filename, { workerData: 20 }).on("exit", (code) => process.exit(code + 3));
        } else {
          const twice = workerData * 2;
          console.log("twice", twice);
        }
        """,
    )
    stop = await tools.start(program, 7, runtime_path=node_program(), timeout=60)
    thread = stop["session_id"]
    [parent] = [each["started_by"] for each in await tools.sessions() if each["session_id"] == thread]
    assert (status_of(stop), line_of(stop)) == ("stopped_at_breakpoint", 7), stop
    assert stop["data"]["locals"]["twice"] == "40"
    assert [step["arguments"]["session_id"] for step in stop["next_steps"]] == [thread] * len(stop["next_steps"])
    assert parent in stop["warnings"][0]
    assert thread in stop["warnings"][0]
    await tools.call("execute", session_id=thread, wait_for_stop=False)
    ended = await tools.call("execute", action="wait", session_id=parent, timeout=60)
    assert ended["data"]["exit_code"] == 3
    assert "twice 40" in ended["data"]["output"]


@USUAL_PORT
async def test_a_program_that_was_not_started_for_debugging_is_attached_to_and_runs_on_after(tools: Tools) -> None:
    program = tools.write("ticking.js", TICKING)
    with running(node_program(), str(program)) as process:
        stop = await tools.call(
            "session_start",
            pid=process.pid,
            language="javascript",
            breakpoints=[{"file": "ticking.js", "line": 5}],
            timeout=60,
        )
        assert line_of(stop) == 5
        value = await tools.call("inspect", target="expression", expression="n")
        assert int(value["data"]["value"]) > 0
        assert (await tools.call("session", action="stop"))["summary"]
        assert await anyio.to_thread.run_sync(goes_on, process)


@USUAL_PORT
async def test_the_inspector_of_another_program_is_never_taken_for_the_one_that_was_named(tools: Tools) -> None:
    program = tools.write("ticking.js", TICKING)
    with running(node_program(), str(program)) as one, running(node_program(), str(program)) as other:
        first = await tools.call("session_start", pid=one.pid, language="javascript", timeout=60)
        refused = await tools.refused("session_start", pid=other.pid, language="javascript", timeout=2)
        assert refused["error"]["code"] == "SESSION_START_FAILED"
        assert "--inspect" in refused["instruction"]
        await tools.call("session", action="stop", session_id=first["session_id"])
        breakpoints = [{"file": "ticking.js", "line": 5}]
        await tools.call("session_start", pid=other.pid, language="javascript", breakpoints=breakpoints, timeout=60)
        value = await tools.call("inspect", target="expression", expression="process.pid")
        assert value["data"]["value"] == str(other.pid)
        assert await anyio.to_thread.run_sync(goes_on, one)


@USUAL_PORT
async def test_a_program_lives_on_however_often_it_is_attached_to_and_let_go(tools: Tools) -> None:
    program = tools.write("ticking.js", TICKING)
    with running(node_program(), str(program)) as one, running(node_program(), str(program)) as other:
        for process in [one, one, other, one, other, other]:
            breakpoints = [{"file": "ticking.js", "line": 5}]
            await tools.call(
                "session_start", pid=process.pid, language="javascript", breakpoints=breakpoints, timeout=60
            )
            value = await tools.call("inspect", target="expression", expression="process.pid")
            assert value["data"]["value"] == str(process.pid)
            await tools.call("session", action="stop")
        with anyio.fail_after(30):
            while listening_ports(other.pid):
                assert await anyio.to_thread.run_sync(goes_on, other)
        assert await anyio.to_thread.run_sync(goes_on, one)
        assert await anyio.to_thread.run_sync(goes_on, other)


async def test_a_process_that_is_no_node_is_refused_and_lives_on(tools: Tools) -> None:
    with running("/bin/sh", "-c", "echo ready; exec sleep 60") as process:
        refused = await tools.refused("session_start", pid=process.pid, language="javascript")
        assert refused["error"]["code"] == "CAPABILITY_NOT_SUPPORTED"
        assert process.poll() is None
