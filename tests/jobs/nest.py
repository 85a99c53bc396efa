"""Lives of jobs in processes that may be killed, for the tests that kill them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STEPS = 10


class Nest:
    """One life after the other, in a folder."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self.folder = folder
        self.url = f"sqlite:///{folder / 'jobs.db'}"

    def live(self, job: str, **life: Any) -> int:
        """Run one life to its end; -9 is that of a killed one."""
        asked = {"url": self.url, "folder": str(self.folder), "steps": STEPS, "job": job, "resume": False, **life}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def effects(self) -> list[str]:
        """Everything that the lives did, in order."""
        file = self.folder / "effects"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


class Hatchery:
    """The process that forks lives; it takes seconds to start, so tests share it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def nest(self, folder: Path) -> Nest:
        """Lives of one test, whose jobs and effects are in a folder."""
        return Nest(self._process, folder)


@contextmanager
def open_hatchery() -> Generator[Hatchery]:
    """A process that ends with the block."""
    command = [sys.executable, "-m", "tests.jobs.worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        # The end of its input is the end of the process; to leave the block closes it and waits.
        yield Hatchery(process)
