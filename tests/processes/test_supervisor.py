"""Children are ended with all that they have started, whatever becomes of us."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import anyio
import pytest

from tests.processes.started import family
from trysquare.processes.reaper import look_up
from trysquare.processes.supervisor import ChildProcess, Command, supervise

PROGRAM = Path(__file__).with_name("started.py")


def python(code: str) -> Command:
    return Command(program=sys.executable, arguments=("-I", "-S", "-c", code), environment={"LANG": "C"})


async def line(child: ChildProcess) -> str:
    """The first line that a child prints."""
    await anyio.wait_readable(child.stdout)
    return os.read(child.stdout, 1000).decode()


async def has_ended(pid: int) -> None:
    """Wait until a process is gone."""
    while look_up(pid) is not None:
        handle = os.pidfd_open(pid)
        await anyio.wait_readable(handle)
        os.close(handle)


async def test_a_child_that_ends_when_its_input_does_is_not_hurt() -> None:
    async with supervise() as supervisor:
        child = supervisor.start(python("import sys; print(1, flush=True); sys.stdin.read(); sys.exit(7)"))
        await line(child)
        await supervisor.end(child)
        assert child.exit_status() == 7
        assert supervisor.children == ()


async def test_a_child_is_asked_before_it_is_forced() -> None:
    code = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(9)); print(1, flush=True); time.sleep(600)"
    async with supervise() as supervisor:
        child = supervisor.start(python(code))
        await line(child)
        await supervisor.end(child, grace=0.2)
        assert child.exit_status() == 9


async def test_all_descendants_are_ended_with_a_child() -> None:
    async with supervise() as supervisor:
        child = supervisor.start(family())
        pids = [int(word) for word in (await line(child)).split()]
        assert len(pids) == 4
        await supervisor.end(child, grace=0.2)
        assert [pid for pid in pids if look_up(pid) is not None] == []


async def test_a_supervisor_that_is_left_has_no_children() -> None:
    async with supervise() as supervisor:
        children = [supervisor.start(family()) for _ in range(3)]
        pids = [int(word) for child in children for word in (await line(child)).split()]
        await supervisor.close(grace=0.2)
    assert [pid for pid in pids if look_up(pid) is not None] == []


async def test_a_child_leads_a_session_of_its_own_and_has_only_what_it_was_given() -> None:
    code = "import os; print(os.getpid() == os.getsid(0), sorted(os.environ), os.listdir('/proc/self/fd'), flush=True)"
    async with supervise() as supervisor:
        told = await line(supervisor.start(python(code)))
    assert told.startswith("True ['LANG', 'LC_CTYPE', 'TRYSQUARE_STARTED_BY'] ['0', '1', '2', '3']")


async def test_a_reaper_that_is_killed_is_replaced() -> None:
    async with supervise() as supervisor:
        first = supervisor.start(python("print(1, flush=True); import time; time.sleep(600)"))
        await line(first)
        reaper = _reaper_of(os.getpid(), first)
        os.kill(reaper, signal.SIGKILL)
        with anyio.fail_after(20):
            await has_ended(reaper)
        second = supervisor.start(python("print(1, flush=True); import time; time.sleep(600)"))
        await line(second)
        assert _reaper_of(os.getpid(), second) != reaper
        await supervisor.close(grace=0.1)


def _reaper_of(maker: int, child: ChildProcess) -> int:
    """The reaper that watches over a child: the one that was started with its token."""
    environment = Path(f"/proc/{child.pid}/environ").read_bytes().split(b"\0")
    (mark,) = [entry for entry in environment if entry.startswith(b"TRYSQUARE_STARTED_BY=")]
    token = mark.partition(b"=")[2].partition(b".")[0]
    for folder in Path("/proc").glob("[0-9]*"):
        words = (folder / "cmdline").read_bytes().split(b"\0") if (folder / "cmdline").exists() else []
        if token in words and str(maker).encode() in words:
            return int(folder.name)
    raise AssertionError("no reaper")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_nothing_is_left_when_we_are_killed(number: signal.Signals) -> None:
    async with await anyio.open_process([sys.executable, str(PROGRAM), "2"], stderr=None) as process:
        assert process.stdout is not None
        pids: list[int] = json.loads(await process.stdout.receive())
        assert len(pids) == 8
        assert None not in [look_up(pid) for pid in pids]
        process.send_signal(number)
        with anyio.fail_after(30):
            for pid in pids:
                await has_ended(pid)
