"""Many agents in several processes close one workflow while processes are killed: each close counts exactly once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.bots.faults.closer import BOT, long_plan, long_state
from tests.support import size

ROOT = Path(__file__).parents[3]
CLOSES = size(100, 2000)
AGENTS = {"p0": 13, "p1": 13, "p2": 12, "p3": 12}
"""Fifty agents in four processes."""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str | None:
    return None if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@contextmanager
def process(project: Path, url: str | None, name: str) -> Generator[subprocess.Popen[str]]:
    """A process of the test's own, which is gone at the end of the block."""
    arguments = (str(project), url or "-", str(CLOSES), name, str(AGENTS[name]))
    started = subprocess.Popen(
        [sys.executable, "-m", "tests.bots.faults.closer", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def killed_after(started: subprocess.Popen[str], lines: int) -> list[str]:
    """Let a process acknowledge some closes, kill it with SIGKILL, and return all that it acknowledged."""
    assert started.stdout is not None
    got = [started.stdout.readline() for _ in range(lines)]
    started.kill()
    rest, _ = started.communicate(timeout=100)
    # A last line may have been cut while it was written: it acknowledges nothing.
    return [line.strip() for line in (*got, *rest.splitlines(keepends=True)) if line.endswith("\n")]


@pytest.mark.timeout(900)
def test_each_acknowledged_close_is_one_transition_though_processes_are_killed(url: str | None, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    acknowledged: set[str] = set()
    for round_ in range(size(2, 12)):
        with (
            process(project, url, "p0") as one,
            process(project, url, "p1") as two,
            process(project, url, "p2") as three,
        ):
            acknowledged.update(killed_after(one, 2 + round_ % 5))
            acknowledged.update(killed_after(two, 1))
            acknowledged.update(killed_after(three, 1))
    with ExitStack() as stack:
        for each in [stack.enter_context(process(project, url, name)) for name in AGENTS]:
            out, err = each.communicate(timeout=800)
            assert (each.returncode, err) == (0, "")
            acknowledged.update(out.splitlines())

    state = long_state(project, url, CLOSES)
    try:
        history = [line.entry for line in state.history(limit=10**6)]
        made = [(entry.version, f"{entry.position.behavior}.{entry.position.action}") for entry in history]
        told = sorted((int(version), path) for _, version, path in (line.split() for line in acknowledged))
        plan = long_plan(CLOSES)
        assert [path for _, path in made] == [f"{b}.{a}" for b in plan.behaviors for a in plan.actions]
        assert [version for version, _ in made] == list(range(1, CLOSES + 1))
        assert told == made, "every close has one acknowledged key, and every acknowledged key one close"
        loaded = state.load()
        assert (loaded.state.finished, loaded.notices.warnings) == (True, ())
        assert state.verify().sound
        assert (project / "workflow_state.json").read_text().count(f'"action_state": "{BOT}.') == CLOSES
        assert list(project.glob(".workflow_state.json.*")) == []
    finally:
        state.close()
