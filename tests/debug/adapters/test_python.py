"""Python under the debugger: started, attached to, at a distance, with its children, threads and ends."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from tests.debug.calling import Tools, goes_on, line_of, opened, running, status_of
from tests.support import missing_component

TICKING = """
    import sys, time
    def tick(n):
        m = n + 1
        return m
    n = 0
    print("ready", flush=True)
    while True:
        n = tick(n)
        print(n, flush=True)
        time.sleep(0.01)
    """


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncGenerator[Tools]:
    async with opened(tmp_path) as tools:
        yield tools


async def test_a_program_that_was_not_started_for_debugging_is_attached_to_and_runs_on_after(tools: Tools) -> None:
    if shutil.which("gdb") is None:
        missing_component("gdb", "apt-get install gdb")
    program = tools.write("ticking.py", TICKING)
    with running(sys.executable, str(program)) as process:
        stop = await tools.call(
            "session_start", pid=process.pid, breakpoints=[{"file": "ticking.py", "line": 4}], timeout=60
        )
        assert status_of(stop) == "stopped_at_breakpoint"
        assert line_of(stop) == 4
        assert "n" in stop["data"]["locals"]
        ended = await tools.call("session", action="stop")
        assert ended["summary"]
        assert await anyio.to_thread.run_sync(goes_on, process)
        assert await tools.sessions() == []


async def test_a_process_of_another_user_is_refused(tools: Tools) -> None:
    if os.geteuid() != 0:
        refused = await tools.refused("session_start", pid=1)
    else:
        with running("/bin/sh", "-c", "echo ready; exec sleep 60", user=65534) as process:
            refused = await tools.refused("session_start", pid=process.pid)
    assert refused["error"]["code"] == "EXECUTION_NOT_ALLOWED"
    assert "another user" in refused["error"]["message"]


async def test_the_debugger_does_not_attach_to_itself_nor_to_what_is_not_there(tools: Tools) -> None:
    assert (await tools.refused("session_start", pid=os.getpid()))["error"]["code"] == "VALIDATION_INVALID_PARAM"
    gone = await anyio.run_process(["sh", "-c", "echo $$"])
    refused = await tools.refused("session_start", pid=int(gone.stdout))
    assert refused["error"]["code"] == "SESSION_START_FAILED"


async def test_a_program_whose_debugger_listens_is_attached_to(tools: Tools) -> None:
    program = tools.write(
        "waiting.py",
        """
        import debugpy
        def add(a, b):
            c = a + b
            return c
        # The port is the system's choice, and told once somebody listens there.
        print(debugpy.listen(("127.0.0.1", 0))[1], flush=True)
        debugpy.wait_for_client()
        add(1, 2)
        """,
    )
    async with await anyio.open_process([sys.executable, str(program)], cwd=tools.folder) as process:
        try:
            assert process.stdout is not None
            with anyio.fail_after(100):
                port = int(await process.stdout.receive())
                breakpoints = [{"file": "waiting.py", "line": 4}]
                stop = await tools.call("session_start", port=port, breakpoints=breakpoints, timeout=90)
                assert stop["data"]["locals"]["b"] == "2"
                assert status_of(await tools.call("execute")) == "terminated"
        finally:
            # Without it a failure would wait for a program that waits for a debugger.
            with suppress(ProcessLookupError):
                process.kill()


async def test_a_breakpoint_in_a_child_process_hits(tools: Tools) -> None:
    program = tools.write(
        "parent.py",
        """
        import multiprocessing
        def work(n):
            m = n * 2
            print("did", m, flush=True)
        if __name__ == "__main__":
            child = multiprocessing.Process(target=work, args=(21,))
            child.start()
            child.join()
        """,
    )
    stop = await tools.start(program, 4, timeout=60)
    assert stop["data"]["locals"]["n"] == "21"
    program_itself = stop["session_id"].partition(".")[0]
    await tools.call("execute", session_id=stop["session_id"])
    ended = await tools.call("execute", action="wait", session_id=program_itself)
    assert ended["data"]["exit_code"] == 0
    assert "did 42" in ended["data"]["output"]


async def test_a_module_runs_with_arguments_environment_and_folder(tools: Tools) -> None:
    (tools.folder / "inner").mkdir()
    tools.write("inner/tool.py", "import os, sys\nwhere = os.getcwd()\nprint(sys.argv[1:], os.environ['SHADE'])\n")
    stop = await tools.call(
        "session_start",
        module="tool",
        cwd="inner",
        args=["a b"],
        env={"SHADE": "grey"},
        breakpoints=[{"file": "inner/tool.py", "line": 3}],
    )
    assert stop["data"]["locals"]["where"].strip("'").endswith("inner")
    ended = await tools.call("execute")
    assert "['a b'] grey" in ended["data"]["output"]


async def test_a_crash_is_reported_with_a_traceback_of_the_program_alone(tools: Tools) -> None:
    program = tools.write("crash.py", "def f():\n    return {}['x']\n\nf()\n")
    stop = await tools.start(program)
    assert status_of(stop) == "stopped_at_exception"
    assert stop["data"]["exception"]["type"] == "KeyError"
    assert line_of(stop) == 2
    ended = await tools.call("execute")
    assert ended["data"]["exit_code"] == 1
    assert "Traceback" in ended["data"]["output"]
    assert "pydevd" not in ended["data"]["output"]
    assert len(re.findall(r'File "', ended["data"]["output"])) == 2


async def test_leaving_by_sys_exit_is_no_crash(tools: Tools) -> None:
    ended = await tools.start(tools.write("leave.py", "import sys\nsys.exit(3)\n"))
    assert status_of(ended) == "terminated"
    assert ended["data"]["exit_code"] == 3


async def test_a_program_killed_by_a_signal_is_reported_with_it(tools: Tools) -> None:
    ended = await tools.start(tools.write("dying.py", "import os\nos.kill(os.getpid(), 11)\n"))
    assert ended["data"]["signal"] == "SIGSEGV"
    assert "SIGSEGV" in ended["summary"]


async def test_the_adapter_takes_over_where_the_direct_way_fails(tools: Tools) -> None:
    program = tools.write("app.py", "x = 1\ny = x + 1\nprint(y)\n")
    shy = tools.write(
        "python", f'#!/bin/sh\ncase "$*" in *--json-dap-http*) exit 7;; esac\nexec {sys.executable} "$@"\n'
    )
    shy.chmod(0o755)
    stop = await tools.start(program, 2, runtime_path=str(shy), timeout=60)
    assert status_of(stop) == "stopped_at_breakpoint"
    assert stop["data"]["locals"]["x"] == "1"
    ended = await tools.call("execute")
    assert ended["data"]["exit_code"] == 0
    assert "2" in ended["data"]["output"]


async def test_an_interpreter_that_cannot_start_is_reported(tools: Tools) -> None:
    program = tools.write("app.py", "x = 1\n")
    refused = await tools.refused("session_start", target=program.name, runtime_path="/no/such/python")
    assert refused["error"]["code"] == "SESSION_START_FAILED"


async def test_threads_and_tasks_stop_together_and_are_stepped_one_by_one(tools: Tools) -> None:
    program = tools.write(
        "tasks.py",
        """
        import asyncio, threading
        def work(n):
            m = n + 1
            return m
        async def main():
            return await asyncio.gather(*(step(i) for i in range(3)))
        async def step(i):
            await asyncio.sleep(0)
            return i * 2
        thread = threading.Thread(target=work, args=(1,), name="worker")
        thread.start()
        thread.join()
        print(asyncio.run(main()))
        """,
    )
    stop = await tools.start(program, 4, 10)
    assert line_of(stop) == 4
    threads = await tools.call("inspect", target="threads")
    assert "worker" in str(threads["data"])
    stop = await tools.call("execute")
    assert (line_of(stop), stop["data"]["locals"]["i"]) == (10, "0")
    await tools.call("breakpoint", action="clear_all")
    assert "[0, 2, 4]" in (await tools.call("execute"))["data"]["output"]


@pytest.mark.parametrize("target", ["python -m unittest test_sums", "python -m pytest test_sums.py", "test_sums.py"])
async def test_tests_are_started_by_either_runner(tools: Tools, target: str) -> None:
    tools.write(
        "test_sums.py",
        """
        import unittest
        class TestSums(unittest.TestCase):
            def test_sum(self):
                total = sum([1, 2])
                self.assertEqual(total, 3)
        """,
    )
    stop = await tools.call("session_start", target=target, breakpoints=[{"file": "test_sums.py", "line": 6}])
    assert stop["data"]["locals"]["total"] == "3"
    assert (await tools.call("execute"))["data"]["exit_code"] == 0


async def test_a_function_and_a_raised_exception_are_places_to_stop_at(tools: Tools) -> None:
    program = tools.write(
        "places.py",
        """
        def work(n):
            return n
        x = 1
        work(2)
        try:
            raise ValueError("known")
        except ValueError:
            pass
        """,
    )
    await tools.start(program, 4)
    session = await tools.call("breakpoint", action="function", name="work")
    assert session["success"]
    assert line_of(await tools.call("execute")) == 2
    await tools.call("breakpoint", action="exceptions", filters=["raised"])
    stop = await tools.call("execute")
    assert (status_of(stop), line_of(stop)) == ("stopped_at_exception", 7)


async def test_execution_goes_on_at_another_line_and_up_to_one(tools: Tools) -> None:
    program = tools.write("jump.py", "x = 1\nx = 2\nx = 3\ny = x\nz = y\nprint(z)\n")
    await tools.start(program, 2)
    stop = await tools.call("execute", action="goto", jump_target="jump.py:4")
    assert line_of(stop) == 4
    stop = await tools.call("execute", until="jump.py:6")
    assert line_of(stop) == 6
    assert stop["data"]["locals"]["z"] == "1"
