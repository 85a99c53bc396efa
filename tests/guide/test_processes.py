"""Several processes change one guide at once, and some are killed while they hold its locks: nothing is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.guide.updating_process import PROJECT, opened_guide, state_of
from tests.support import size
from trysquare import Toolset
from trysquare.store.content import StoredDocuments
from trysquare.store.database import open_database
from trysquare.testing import call

ROOT = Path(__file__).parents[2]
NAMES = ("one", "two", "three", "four")

pytestmark = pytest.mark.timeout(300)

Process = subprocess.Popen[str]
Start = Callable[..., Process]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "guide" / "lang").mkdir(parents=True)
    (tmp_path / "guide" / "lang" / "python.md").write_text("# Python\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def start(folder: Path) -> Generator[Start]:
    """Starts processes, and ends those that are left when the test is over."""
    started: list[Process] = []

    def start_process(what: str, *rest: str) -> Process:
        command = [sys.executable, "-m", "tests.guide.updating_process", what, str(folder), *rest]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True))
        return started[-1]

    yield start_process
    for process in started:
        process.kill()
        process.communicate()


def read_line(process: Process) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def let_go(processes: Sequence[Process]) -> None:
    """Start the work of all, once all of them are ready."""
    assert [read_line(process) for process in processes] == ["ready"] * len(processes)
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [read_line(process) for process in processes] == ["trying"] * len(processes)


def acknowledged(process: Process) -> list[str]:
    """The rounds that a process says it made, until its end."""
    assert process.stdout is not None
    # Only whole lines count: the last one may have been cut by the kill.
    lines = [line for line in process.stdout.readlines() if line.endswith("\n")]
    process.wait()
    return [f"{name}-{number}" for name, number, _ in (line.split() for line in lines)]


def finished(process: Process) -> list[str]:
    made = acknowledged(process)
    assert process.stderr is not None
    assert (process.returncode, process.stderr.read()) == (0, "")
    return made


async def told(toolset: Toolset, tool: str, **arguments: Any) -> Any:
    result = await call(toolset, tool, **arguments)
    assert result.fields.get("project", PROJECT) == PROJECT
    return result.value


async def check_that_all_is_kept(folder: Path, made: Sequence[str]) -> None:
    """Every acknowledged round is there, in each of the places that it changed."""
    with closing(open_database(state_of(folder).path)) as database:
        assert database.problems() == []
    async with opened_guide(folder) as toolset:
        flags = await told(toolset, "list_project_flags")
        features = await told(toolset, "list_feature_flags")
        documents = await told(toolset, "list_content", kind="documents", category="notes")
        categories = await told(toolset, "list_content", kind="categories")
        collections = await told(toolset, "list_content", kind="collections")
    with closing(state_of(folder)) as state:
        [shared] = [each for each in StoredDocuments(state, PROJECT).all() if each.name == "shared"]
    wanted = set(made)
    assert wanted - flags.keys() == set()
    assert wanted - features.keys() == set()
    assert wanted - {each["id"].removeprefix("notes/") for each in documents} == set()
    assert wanted - shared.metadata.keys() == set()
    assert wanted - {each["name"] for each in categories} == set()
    assert {f"all-{each}" for each in wanted} - {each["name"] for each in collections} == set()


async def test_four_processes_with_twenty_updates_each_lose_nothing(folder: Path, start: Start) -> None:
    count = size(20, 60)
    processes = [start("work", name, str(count)) for name in NAMES]
    let_go(processes)
    made = [each for process in processes for each in finished(process)]
    assert len(made) == 4 * count
    await check_that_all_is_kept(folder, made)


@pytest.mark.parametrize("lock", ["hold-state", "hold-file"])
async def test_a_process_killed_while_it_holds_a_lock_blocks_nobody_and_costs_nothing(
    folder: Path, start: Start, lock: str
) -> None:
    holder = start(lock)
    assert read_line(holder) == "holding"
    processes = [start("work", name, "5") for name in NAMES]
    let_go(processes)
    assert holder.poll() is None, "the four work while the lock is held"
    holder.kill()
    assert holder.wait() == -signal.SIGKILL
    made = [each for process in processes for each in finished(process)]
    assert len(made) == 20
    await check_that_all_is_kept(folder, made)


async def test_one_of_four_killed_in_the_middle_of_its_work_keeps_what_it_acknowledged(
    folder: Path, start: Start
) -> None:
    count = 20
    processes = [start("work", name, str(count)) for name in NAMES]
    let_go(processes)
    made: list[str] = []
    for rounds, victim in enumerate(processes[:2], start=2):
        lines = [read_line(victim) for _ in range(rounds)]
        victim.kill()
        made += ["-".join(line.split()[:2]) for line in lines] + acknowledged(victim)
    others = [each for process in processes[2:] for each in finished(process)]
    assert len(others) == 2 * count
    await check_that_all_is_kept(folder, [*made, *others])
