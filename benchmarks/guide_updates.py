"""Updates of a guide by several processes: how long they take together, and how long anybody waits for a dead one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peers.known import ROOT

_WORKER = "tests.guide.updating_process"
_HELD_SECONDS = 0.3
"""Long enough for a waiting process to have settled into its longest sleep."""
LOCKS = {"hold-state": "the state file", "hold-file": "guide.json"}


def updates_seconds(processes: int, each: int) -> float:
    """The time from the word to go until the last process has made all of its updates."""
    with _content() as folder, _processes() as start:
        workers = [start("work", folder, f"p{number}", str(each)) for number in range(processes)]
        for worker in workers:
            _expect(worker, "ready")
        started = time.monotonic()
        for worker in workers:
            _say_go(worker)
        for worker in workers:
            _lines_until_end(worker)
        return time.monotonic() - started


def wait_for_dead(lock: str) -> float:
    """The time from the kill of a process that holds a lock until one that waits for it has made its update."""
    with _content() as folder, _processes() as start:
        waiting = start("update-once", folder, lock)
        _expect(waiting, "ready")
        holder = start(lock, folder)
        _expect(holder, "holding")
        _say_go(waiting)
        _expect(waiting, "trying")
        time.sleep(_HELD_SECONDS)
        killed = time.monotonic()
        holder.kill()
        [done] = _lines_until_end(waiting)
        return float(done) - killed


@contextmanager
def _content() -> Generator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        category = Path(folder) / "guide" / "lang"
        category.mkdir(parents=True)
        (category / "python.md").write_text("# Python\n", encoding="utf-8")
        yield Path(folder)


@contextmanager
def _processes() -> Generator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}

    def start(what: str, folder: Path, *rest: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", _WORKER, what, str(folder), *rest]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True))
        return started[-1]

    try:
        yield start
    finally:
        for process in started:
            process.kill()
            process.communicate()


def _expect(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    if (came := process.stdout.readline().strip()) != line:
        raise RuntimeError(f"the process said {came!r} in place of {line!r}")


def _say_go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def _lines_until_end(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()
    if process.wait():
        raise RuntimeError(f"the process ended with {process.returncode}")
    return lines
