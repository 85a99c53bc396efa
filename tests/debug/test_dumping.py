"""dump: what a process that hangs is doing, and that it goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import missing_component
from trysquare import call_tool
from trysquare.debug import DebugConfig, open_debugger

HANGING = """
import asyncio, sys, threading
lock = threading.Lock()
lock.acquire()
def worker(number):
    lock.acquire()
for number in range(3):
    threading.Thread(target=worker, args=(number,), daemon=True).start()
async def wait_for(event):
    await event.wait()
async def main():
    event = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin, event.set)
    print("waits", flush=True)
    await asyncio.gather(*(wait_for(event) for _ in range(5)))
asyncio.run(main())
print("goes on", flush=True)
"""


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "hanging.py").write_text(HANGING, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "hanging.py"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


async def test_threads_and_tasks_are_listed_and_the_process_continues(
    hanging: subprocess.Popen[str], tmp_path: Path
) -> None:
    if shutil.which("gdb") is None:
        missing_component("gdb", "apt-get install gdb")
    async with open_debugger(DebugConfig(root=tmp_path)) as tools:
        result = await call_tool(tools, "dump", {"pid": hanging.pid})
    assert result.success, result.to_text()
    text = str(result.value)
    assert "hanging.py:6 worker: lock.acquire()" in text
    assert "number=" in text
    assert "hanging.py:10 wait_for: await event.wait()" in text
    assert result.to_json()["threads"] == 4
    assert result.to_json()["tasks"] == 6
    said, _ = hanging.communicate("\n", timeout=20)
    assert said == "goes on\n"
    assert hanging.returncode == 0


async def test_a_process_that_is_not_there_is_refused(tmp_path: Path) -> None:
    number = 2**22 + 1  # more than Linux gives to any process
    async with open_debugger(DebugConfig(root=tmp_path)) as tools:
        result = await call_tool(tools, "dump", {"pid": number})
        own = await call_tool(tools, "dump", {"pid": os.getpid()})
    assert result.to_json()["error"]["code"] == "SESSION_NOT_FOUND"
    assert own.to_json()["error"]["code"] == "VALIDATION_INVALID_PARAM"


async def test_a_process_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    async with open_debugger(DebugConfig(root=tmp_path)) as tools:
        result = await call_tool(tools, "dump", {"pid": os.getppid()})
    assert not result.success
    assert "belongs to another user" in result.to_text()
