"""Faults: whatever a program, its debugger or a client does, there is a clear answer in time and nothing is left."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tests.debug.calling import Tools, line_of, opened, status_of
from tests.support import missing_component, size
from trysquare.debug.adapters.lldb import PACKAGE as LLDB
from trysquare.debug.dap.python import PythonDebugger
from trysquare.debug.debugger import RequestFailed
from trysquare.debug.sessions.manager import MOST_CHILDREN
from trysquare.processes.reaper import TOKEN_VARIABLE, carries, look_up, processes


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncGenerator[Tools]:
    async with opened(tmp_path) as tools:
        yield tools


def mine(folder: Path) -> list[int]:
    """The living processes that work in a folder and were started by a debugger of ours."""
    found: list[int] = []
    for entry in processes():
        try:
            if carries(entry, "") and os.readlink(f"/proc/{entry.pid}/cwd").startswith(str(folder)):
                found.append(entry.pid)
        except OSError:
            continue
    return found


async def gone(folder: Path) -> None:
    """Wait until nothing of ours works in a folder any more."""
    with anyio.fail_after(30):
        while mine(folder):
            await anyio.lowlevel.checkpoint()


async def test_a_program_that_is_killed_is_told_with_its_signal(tools: Tools) -> None:
    program = tools.write("own.py", "import os, time\npid = os.getpid()\nx = 1\nwhile True:\n    time.sleep(0.01)\n")
    stop = await tools.start(program, 3)
    ended: dict[str, Any] = {}
    async with anyio.create_task_group() as group:
        group.start_soon(_kill_once_running, tools, int(stop["data"]["locals"]["pid"]))
        ended = await tools.call("execute", timeout=60)
    assert ended["data"]["signal"] == "SIGKILL"
    assert (await tools.refused("step"))["error"]["code"] == "SESSION_TERMINATED"


async def _kill_once_running(tools: Tools, pid: int) -> None:
    while (await tools.call("session"))["data"]["status"] != "running":
        await anyio.lowlevel.checkpoint()
    os.kill(pid, signal.SIGKILL)


async def test_a_program_killed_while_it_stands_is_told_at_the_next_call(tools: Tools) -> None:
    stop = await tools.start(tools.write("own.py", "import os\npid = os.getpid()\nx = 1\n"), 3)
    os.kill(int(stop["data"]["locals"]["pid"]), signal.SIGKILL)
    with anyio.fail_after(30):
        while (await tools.call("session"))["data"]["status"] != "terminated":
            await anyio.lowlevel.checkpoint()
    assert (await tools.call("session"))["data"]["ended"] == "killed by signal 9"


async def test_a_breakpoint_that_the_debugger_refuses_has_a_code_of_its_own(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tools.start(tools.write("two.py", "x = 1\ny = 2\n"), 1)

    async def refuse(*_: object) -> None:
        raise RequestFailed("setBreakpoints", "no room for more")

    monkeypatch.setattr(PythonDebugger, "set_breakpoints", refuse)
    refused = await tools.refused("breakpoint", location="two.py:2")
    assert refused["error"]["code"] == "EXECUTION_BREAKPOINT_FAILED"
    monkeypatch.undo()
    await tools.call("session", action="stop")


async def test_a_debugger_that_is_killed_is_told_and_its_program_goes_with_it(tools: Tools) -> None:
    if not any(shutil.which(name) for name in LLDB.programs):
        missing_component(LLDB.programs[0], "apt-get install lldb-19")
    program = tools.write(
        "wait.c", "#include <unistd.h>\nint main(void) {\n    int x = 1;\n    return x + pause();\n}\n"
    )
    await tools.start(program, 3, timeout=120)
    [adapter] = [pid for pid in mine(tools.folder) if _name_of(pid).startswith("lldb-dap")]
    os.kill(adapter, signal.SIGKILL)
    refused = await tools.refused("inspect", target="locals")
    assert refused["error"]["code"] in ("CONNECTION_LOST", "SESSION_LOST", "SESSION_TERMINATED")
    ended = await tools.call("execute", action="wait", timeout=60)
    assert status_of(ended) == "terminated"
    assert ended["data"]["exit_code"] is None
    await gone(tools.folder)


def _name_of(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8")


async def test_an_expression_that_never_ends_is_given_up(tools: Tools) -> None:
    program = tools.write("forever.py", "def forever():\n    while True:\n        pass\n\nx = 1\ny = 2\n")
    await tools.start(program, 6, allow_side_effects=True)
    with anyio.fail_after(60):
        refused = await tools.refused("variable", action="get", expression="forever()")
    assert refused["error"]["code"] in ("INTROSPECTION_EVAL_ERROR", "CONNECTION_TIMEOUT")
    assert status_of(await tools.call("execute")) == "terminated"


async def test_much_output_is_bounded_and_its_end_is_kept(tools: Tools) -> None:
    megabytes = size(5, 100)
    program = tools.write("loud.py", f"for _ in range({megabytes}):\n    print('x' * 2**20)\nprint('last words')\n")
    ended = await tools.start(program, timeout=300)
    assert ended["data"]["exit_code"] == 0
    assert "last words" in ended["data"]["output"]
    assert len(str(ended)) < 5000
    page = await tools.call("inspect", target="output")
    assert len(str(page)) < 20_000


async def test_a_program_of_many_threads_is_stopped_and_looked_into(tools: Tools) -> None:
    count = size(100, 1000)
    program = tools.write(
        "many.py",
        f"""
        import threading
        gate = threading.Event()
        threads = [threading.Thread(target=gate.wait, daemon=True) for _ in range({count})]
        for thread in threads:
            thread.start()
        done = True
        gate.set()
        """,
    )
    stop = await tools.start(program, 7, timeout=300)
    assert line_of(stop) == 7
    threads = await tools.call("inspect", target="threads")
    assert len(str(threads)) < 10_000
    assert (await tools.call("execute", timeout=300))["data"]["exit_code"] == 0


async def test_a_program_that_forks_without_end_is_ended_and_told(tools: Tools) -> None:
    program = tools.write("fork.py", "import os, time\nwhile True:\n    if os.fork() == 0:\n        time.sleep(600)\n")
    ended = await tools.start(program, timeout=120)
    assert status_of(ended) == "terminated"
    assert f"{MOST_CHILDREN} processes at once" in ended["summary"]
    await gone(tools.folder)
    assert len(await tools.sessions()) <= MOST_CHILDREN + 1


async def test_a_client_that_vanishes_in_the_middle_of_a_step_leaves_a_session_that_goes_on(tools: Tools) -> None:
    program = tools.write("slow.py", "import time\nx = 1\ntime.sleep(0.5)\ny = 2\nz = 3\n")
    await tools.start(program, 3)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: tools.send("step", timeout=60))
        while (await tools.call("session"))["data"]["status"] != "running":
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    stop = await tools.call("execute", action="wait", timeout=60)
    assert line_of(stop) == 4
    assert line_of(await tools.call("step")) == 5


async def test_nothing_is_left_of_a_program_that_has_ended(tools: Tools) -> None:
    left = [sys.executable, "-c", "import time; time.sleep(600)"]
    program = tools.write("litter.py", f"import subprocess\nsubprocess.Popen({left!r}, start_new_session=True)\n")
    await tools.start(program, timeout=60)
    await tools.call("session", action="stop")
    await gone(tools.folder)


SERVER = """
import asyncio, sys
from pathlib import Path
from typing import Any
from tests.debug.calling import opened

async def main():
    folder = Path(sys.argv[1])
    async with opened(folder) as tools:
        await tools.start(tools.write("own.py", "import time\\nx = 1\\ntime.sleep(600)\\n"), 2)
        print("stopped", flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.timeout(1800)
async def test_no_process_is_left_when_we_are_killed(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    environment.pop(TOKEN_VARIABLE, None)
    for number in range(size(2, 200)):
        folder = tmp_path / str(number)
        folder.mkdir()
        command = [sys.executable, "-c", SERVER, str(folder)]
        async with await anyio.open_process(command, env=environment) as server:
            assert server.stdout is not None
            with anyio.fail_after(60):
                assert b"stopped" in await server.stdout.receive()
            assert mine(folder)
            server.send_signal(signal.SIGKILL)
        assert look_up(server.pid) is None
        await gone(folder)
