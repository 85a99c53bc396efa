"""Several processes on one state file, killed in the middle of what they do, and a disk that is full."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from tests.support import size

from trysquare.store.audit import Audit
from trysquare.store.database import open_database

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".trysquare" / "state.db"


def start(what: str, path: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.store.worker", what, str(path), name, str(count)]
    return subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finished(processes: Sequence[subprocess.Popen[str]]) -> list[str]:
    """The lines that processes printed until they ended."""
    lines: list[str] = []
    for process in processes:
        out, err = process.communicate(timeout=100)
        assert (process.returncode, err) == (0, "")
        lines.extend(out.splitlines())
    return lines


def killed_after(process: subprocess.Popen[str], lines: int) -> list[str]:
    """Let a process acknowledge some lines, kill it with SIGKILL, and return all that it acknowledged."""
    assert process.stdout is not None
    got = [process.stdout.readline().strip() for _ in range(lines)]
    process.kill()
    rest, _ = process.communicate(timeout=100)
    # A last line may have been cut while it was written: it acknowledges nothing.
    complete = rest[: rest.rfind("\n") + 1]
    return [line for line in (*got, *complete.splitlines()) if line]


def work_in(path: Path) -> list[str]:
    """What stands in the file, after its chain was found sound and the file whole."""
    with closing(open_database(path)) as database:
        assert database.problems() == []
        report = Audit(database).verify()
        assert report.sound, report.problem
        rows = Audit(database).rows(limit=100_000)
    return [f"{row.principal} {row.body['number']}" for row in rows]


def test_several_processes_open_a_new_file_at_once_and_lose_nothing(path: Path) -> None:
    count = size(10, 200)
    acknowledged = finished([start("append", path, f"p{number}", count) for number in range(4)])
    assert sorted(work_in(path)) == sorted(acknowledged)
    assert len(acknowledged) == 4 * count


def test_what_was_acknowledged_survives_kill_9(path: Path) -> None:
    rounds = size(3, 60)
    acknowledged: list[str] = []
    with ExitStack() as stack:
        for number in range(rounds):
            pair = [start("append", path, f"{name}{number}", 100_000) for name in "ab"]
            for process in pair:
                stack.callback(process.kill)
            acknowledged.extend(killed_after(pair[0], 3 + number % 7))
            acknowledged.extend(killed_after(pair[1], 2))
            kept = work_in(path)
            assert set(acknowledged) <= set(kept), "an acknowledged row is gone"
            assert len(kept) == len(set(kept)), "a row stands twice"
    assert len(acknowledged) >= 5 * rounds


def test_a_process_killed_inside_a_transaction_leaves_nothing_of_it_and_blocks_nobody(path: Path) -> None:
    finished([start("append", path, "before", 2)])
    holding = start("hold", path, "held", 500)
    assert killed_after(holding, 1) == ["held inside"]
    finished([start("append", path, "after", 2)])
    assert work_in(path) == ["before 0", "before 1", "after 0", "after 1"]


def test_keyed_calls_run_once_though_processes_are_killed_and_started_again(path: Path) -> None:
    count = size(15, 300)
    for attempt in range(3):
        killed_after(start("once", path, f"killed{attempt}", count), 1 + attempt * count // 6)
    finished([start("once", path, f"last{number}", count) for number in range(2)])
    numbers = [int(line.split()[1]) for line in work_in(path)]
    assert sorted(numbers) == list(range(count))


def test_a_full_disk_is_a_clear_error_and_keeps_what_was_acknowledged(path: Path) -> None:
    with closing(open_database(path)):
        pass
    *acknowledged, last = finished([start("fill", path, "p", 600_000)])
    assert last.startswith("full STATE_UNAVAILABLE Nothing was changed: the state file cannot be written")
    assert acknowledged
    assert work_in(path) == acknowledged
    assert finished([start("append", path, "later", 1)]) == ["later 0"], "the file can be used again"
