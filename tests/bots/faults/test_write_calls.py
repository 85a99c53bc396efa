"""A close whose process is killed, or whose disk fails, at each of its write calls to the system."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.bots.faults.desk import OPENED, desk
from tests.support import missing_component
from trysquare.store import project_state
from trysquare.store.database import open_database

ROOT = Path(__file__).parents[3]
FAILING = ("write", "pwrite64", "fsync", "fdatasync", "ftruncate", "rename", "renameat", "utimensat")
CALLS = (*FAILING, "unlink", "unlinkat", "flock")


@dataclass(frozen=True)
class Point:
    """The Nth time that one call is made."""

    call: str
    number: int


@dataclass(frozen=True)
class Traced:
    """What a traced close wrote, and what strace saw of it."""

    output: str
    errors: str
    calls: str


class Closer:
    """Makes closes in processes of their own, under strace."""

    def __init__(self, server: subprocess.Popen[str]) -> None:
        self._server = server

    def close(self, project: Path, *options: str) -> Traced:
        """One close in a project; the options are strace's."""
        stopped = self._ask(f"{project}\n").removeprefix("stopped ").strip()
        log = project.with_name("trace")
        command = ["strace", "-o", str(log), "-e", f"trace={','.join(CALLS)}", *options, "-p", stopped]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
            assert tracer.stderr is not None
            said = tracer.stderr.readline()
            os.kill(int(stopped), signal.SIGCONT)
            output = "".join(iter(self._line, "ended\n"))
            said += tracer.stderr.read()
        if "attached" not in said:
            missing_component(f"permission to trace processes ({said.strip()})", "allow ptrace for this user")
        return Traced(output=output, errors=said, calls=log.read_text())

    def _ask(self, line: str) -> str:
        assert self._server.stdin is not None
        self._server.stdin.write(line)
        self._server.stdin.flush()
        return self._line()

    def _line(self) -> str:
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        assert line, "the process that forks the closes has ended"
        return line


@pytest.fixture(scope="module")
def closer() -> Generator[Closer]:
    if shutil.which("strace") is None:
        missing_component("strace", "install Debian's package strace")
    command = [sys.executable, "-m", "tests.bots.faults.one_close"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        yield Closer(server)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which two actions were closed."""
    project = tmp_path_factory.mktemp("template") / "project"
    here = desk(project)
    here.close()
    here.close()
    while OPENED:
        OPENED.pop().close()
    return project


def copied(template: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(template, to)
    return to


@pytest.fixture(scope="module")
def points(closer: Closer, template: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Point]:
    """Every write call that one close makes."""
    traced = closer.close(copied(template, tmp_path_factory.mktemp("counted") / "project"))
    assert traced.output == "closed 3\n"
    counted = Counter(re.findall(r"^(\w+)\(", traced.calls, flags=re.MULTILINE))
    assert {*counted} >= {"pwrite64", "fdatasync", "fsync", "write", "renameat"}
    return [Point(call, number) for call in CALLS for number in range(1, counted[call] + 1)]


def check(project: Path, output: str) -> None:
    """The close was made or not, as a whole and as it was said; sent again, it is made once; and the file shows it."""
    database = open_database(project_state(project))
    assert database.problems() == []
    database.close()
    here = desk(project)
    state = here.load().state
    said = 3 if output.startswith("closed 3") else 2 if "Nothing was changed" in output else None
    assert state.version == said if said is not None else state.version in (2, 3)
    assert len(here.state.history()) == len(state.latest) == state.version
    again = here.close(key="k")
    assert again.replayed == (state.version == 3)
    assert here.load().state.version == 3
    assert here.completed() == ["shape.initialize_project", "shape.gather_context", "shape.validate_rules"]
    assert [event.kind for event in here.state.events()] == ["close"] * 3, "nothing was taken for an edit or a reset"
    assert here.state.verify().sound
    assert list(project.glob(".*.tmp")) == []
    here.state.close()


@pytest.mark.timeout(600)
def test_a_close_killed_at_any_write_call_is_whole_or_not_made(
    closer: Closer, template: Path, points: list[Point], tmp_path: Path
) -> None:
    for point in points:
        project = copied(template, tmp_path / "project")
        traced = closer.close(project, "-e", f"inject={point.call}:signal=KILL:when={point.number}")
        check(project, traced.output)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
def test_a_disk_that_fails_at_any_write_call_leaves_no_wrong_state(
    closer: Closer, template: Path, points: list[Point], tmp_path: Path, error: str
) -> None:
    for point in (each for each in points if each.call in FAILING):
        project = copied(template, tmp_path / "project")
        traced = closer.close(project, "-e", f"inject={point.call}:error={error}:when={point.number}")
        assert "INJECTED" in traced.calls
        assert "crashed" not in traced.output
        check(project, traced.output)
