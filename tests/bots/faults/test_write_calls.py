"""A close whose process is killed, or whose disk fails, at each of its write calls to the system."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.bots.faults.desk import OPENED, desk
from tests.support import missing_component, size
from trysquare.store.database import open_database
from trysquare.store.location import project_state

ROOT = Path(__file__).parents[3]
CALLS = ("write", "pwrite64", "fsync", "fdatasync", "ftruncate", "rename", "renameat", "unlink", "unlinkat", "flock")
FAILING = ("write", "pwrite64", "fsync", "fdatasync", "ftruncate", "rename", "renameat")
ENVIRONMENT = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True)
class Point:
    """The Nth time that one call is made."""

    call: str
    number: int


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


def traced(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the close under strace, which writes what it saw beside the project."""
    if shutil.which("strace") is None:
        missing_component("strace", "install Debian's package strace")
    log = project.with_name("trace")
    command = ["strace", "-f", "-qq", "-o", str(log), "-e", f"trace={','.join(CALLS)}", *options]
    return subprocess.run(
        [*command, sys.executable, "-m", "tests.bots.faults.one_close", str(project)],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def copied(template: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(template, to)
    return to


@pytest.fixture(scope="module")
def points(template: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Point]:
    """Every write call that one close makes."""
    project = copied(template, tmp_path_factory.mktemp("counted") / "project")
    done = traced(project)
    if "ptrace" in done.stderr or "Operation not permitted" in done.stderr:
        missing_component("permission to trace processes", "allow ptrace for this user")
    assert done.stdout == "closed 3\n", done.stderr
    names = re.findall(r"^\d+\s+(\w+)\(", project.with_name("trace").read_text(), flags=re.MULTILINE)
    counted = Counter(names)
    return [Point(call, number) for call in CALLS for number in range(1, counted[call] + 1)]


def chosen(points: list[Point], calls: tuple[str, ...]) -> list[Point]:
    """All of them in the full size; else some of each call, the first and the last among them."""
    found: list[Point] = []
    for call in calls:
        mine = [point for point in points if point.call == call]
        step = max(1, len(mine) // size(3, len(mine) or 1))
        found += dict.fromkeys([*mine[::step], *mine[-1:]])
    return found


def check(project: Path, acknowledged: bool) -> None:
    """The close was made or not, as a whole; sent again, it is made once; and the file shows it."""
    database = open_database(project_state(project))
    assert database.problems() == []
    database.close()
    here = desk(project)
    state = here.load().state
    assert state.version == 3 if acknowledged else state.version in (2, 3)
    assert len(here.state.history()) == len(state.latest) == state.version
    again = here.close(key="k")
    assert again.replayed == (state.version == 3)
    assert here.load().state.version == 3
    assert here.completed() == ["shape.initialize_project", "shape.gather_context", "shape.validate_rules"]
    assert [event.kind for event in here.state.events()] == ["close"] * 3, "nothing was taken for an edit or a reset"
    assert here.state.verify().sound
    assert list(project.glob(".workflow_state.json.*")) == []
    here.state.close()


@pytest.mark.timeout(1800)
def test_a_close_killed_at_any_write_call_is_whole_or_not_made(
    template: Path, points: list[Point], tmp_path: Path
) -> None:
    assert {point.call for point in points} >= {"pwrite64", "fdatasync", "fsync", "write"}
    for point in chosen(points, CALLS):
        project = copied(template, tmp_path / "project")
        done = traced(project, "-e", f"inject={point.call}:signal=KILL:when={point.number}")
        check(project, acknowledged=done.stdout == "closed 3\n")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
def test_a_disk_that_fails_at_any_write_call_leaves_no_wrong_state(
    template: Path, points: list[Point], tmp_path: Path, error: str
) -> None:
    for point in chosen(points, FAILING):
        project = copied(template, tmp_path / "project")
        done = traced(project, "-e", f"inject={point.call}:error={error}:when={point.number}")
        assert "Traceback" not in done.stderr or point.call == "write", done.stderr
        check(project, acknowledged=done.stdout.startswith("closed 3"))
