"""Several processes on one database: the jobs of one that dies are taken up by the others, and it stays out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from tests.bots.faults.postgres import postgres_server
from tests.support import size
from trysquare.jobs import JobReader, JobStatus, open_reader

SHORT = {"every": 0.1, "silence": 1.5}
STEPS = size(5, 10)


@pytest.fixture
def postgres() -> Generator[str]:
    with postgres_server() as url:
        yield url


class Member:
    """A process of the crew, and the lines that it has printed."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self._changed = anyio.Event()

    async def listen(self) -> None:
        assert self.process.stdout is not None
        rest = ""
        async for text in TextReceiveStream(self.process.stdout):
            *lines, rest = (rest + text).split("\n")
            self.lines.extend(lines)
            self._changed.set()
            self._changed = anyio.Event()

    async def said(self, *, at_least: int = 1, ending: str = "") -> None:
        """Wait until so many lines end like this."""
        with anyio.fail_after(60):
            while sum(line.endswith(ending) for line in self.lines) < at_least:
                await self._changed.wait()


@asynccontextmanager
async def member(**asked: Any) -> AsyncGenerator[Member]:
    """A process of the crew, which is killed at the end."""
    command = [sys.executable, "-m", "tests.jobs.crew", json.dumps(asked)]
    async with (
        await anyio.open_process(command, stdin=subprocess.PIPE, stderr=None) as process,
        anyio.create_task_group() as tasks,
    ):
        one = Member(process)
        tasks.start_soon(one.listen)
        try:
            await one.said(ending="ready")
            yield one
        finally:
            if process.returncode is None:
                process.kill()


async def all_done(jobs: JobReader, count: int) -> list[JobStatus]:
    """Every job, once so many are done."""
    found: list[JobStatus] = []
    with anyio.fail_after(120):
        while len(found) < count:
            # They end in other processes, so there is no event to wait for.
            await anyio.sleep(0.1)
            found = [each for each in await jobs.list(limit=1000) if each.state == "done"]
    return found


async def ended(one: Member) -> None:
    """Let a process come to its end."""
    assert one.process.stdin is not None
    await one.process.stdin.send(b"\n")
    with anyio.fail_after(60):
        await one.process.wait()


async def test_sixty_jobs_on_two_processes_all_finish_after_one_of_them_is_killed(
    postgres: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gate = tmp_path / "gate"
    argument = {"steps": STEPS, "seconds": 0.2, "gate": str(gate)}
    first, second = [f"a{number:02}" for number in range(30)], [f"b{number:02}" for number in range(30)]
    async with (
        member(url=postgres, start=first, argument=argument) as dying,
        member(url=postgres, start=second, argument=argument) as living,
        open_reader(postgres) as jobs,
    ):
        gate.touch()
        await dying.said(at_least=40)
        held = [each.job for each in await jobs.list() if each.job in first and each.state == "running"]
        killed = time.time()
        os.kill(dying.process.pid, signal.SIGKILL)
        found = await all_done(jobs, 60)
        recorded = {job: [step.name for step in await jobs.steps(job)] for job in first + second}
        await dying.process.wait()

    last = max(each.updated for each in found if each.job in held)
    with capsys.disabled():
        sys.stdout.write(f"\n{len(held)} jobs of a killed process were done {last - killed:.1f} s after the kill\n")
    assert held
    assert all(names == [f"step {number}" for number in range(STEPS)] for names in recorded.values())
    done_by_the_dead = Counter(line for line in dying.lines if line != "ready")
    done_by_the_living = Counter(line for line in living.lines if line != "ready")
    twice = done_by_the_dead & done_by_the_living
    # Only what was in flight, one step of each job, may have run on both.
    assert len({line.split()[0] for line in twice}) == len(twice)
    assert max((done_by_the_dead + done_by_the_living).values()) <= 2


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
async def test_a_process_that_was_only_stopped_is_fenced_when_it_wakes_up(
    database: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = request.getfixturevalue("postgres") if database == "postgres" else f"sqlite:///{tmp_path / 'jobs.db'}"
    go, job = tmp_path / "go", f"zombie-{database}"
    held = {"url": url, "kind": "hold", "pulse": SHORT, "argument": {"until": str(go)}}
    async with member(**held, start=[job], adopting=False) as zombie:
        await zombie.said(ending="holds")
        os.kill(zombie.process.pid, signal.SIGSTOP)
        async with member(**held) as adopter, open_reader(url) as jobs:
            await adopter.said(ending="holds")
            go.touch()
            await adopter.said(ending=f"{job} 0")
            os.kill(zombie.process.pid, signal.SIGCONT)
            found = next(each for each in await all_done(jobs, 1) if each.job == job)
            await ended(zombie)
    assert found.holder is not None
    assert f"-{adopter.process.pid}-" in found.holder
    assert f"{job} went on" not in zombie.lines
    assert f"{job} 0" not in zombie.lines


async def test_two_processes_share_one_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    argument = {"steps": 4, "seconds": 0}
    async with (
        member(url=url, start=["a1", "a2", "a3"], argument=argument),
        member(url=url, start=["b1", "b2", "b3"], argument=argument),
        open_reader(url) as jobs,
    ):
        found = await all_done(jobs, 6)
    assert len({each.holder for each in found}) == 2


async def test_a_job_is_cancelled_from_another_process_in_the_middle_of_a_step(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    argument = {"until": str(tmp_path / "never")}
    async with (
        member(url=url, start=["job"], kind="hold", argument=argument) as one,
        open_reader(url) as jobs,
    ):
        await one.said(ending="holds")
        await jobs.cancel("job")
        assert (await jobs.status("job")).state == "cancelled"
        await ended(one)
    assert "job went on" not in one.lines


async def test_what_a_dead_process_had_queued_for_itself_is_taken_up_too(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    argument = {"until": str(tmp_path / "go")}
    asked = {"url": url, "kind": "hold", "argument": argument, "pulse": SHORT}
    async with member(**asked, start=["job"], adopting=False) as first:
        await first.said(ending="holds")
        os.kill(first.process.pid, signal.SIGKILL)
        await first.process.wait()
        async with member(**asked) as second:
            await second.said(ending="holds")
            os.kill(second.process.pid, signal.SIGKILL)
            await second.process.wait()
            async with member(**asked) as third, open_reader(url) as jobs:
                await third.said(ending="holds")
                (tmp_path / "go").touch()
                await all_done(jobs, 1)
