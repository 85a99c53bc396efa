"""`make demo`: every step shows what it should, and nothing is left behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.demo import gateway, local, workbench
from examples.demo.chapters import EVERYTHING, TOUR, chosen, names
from examples.demo.transcript import Transcript
from tests.support import missing_component

ROOT = Path(__file__).parents[2]
DATA = ROOT / ".data"
"""Where `make weights` puts the smallest model."""
# What a user's environment may hold: a proxy, and settings that are wrong.
UNHELPFUL = {"HTTP_PROXY": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9", "TRYSQUARE_PREFX": "x"}


def played(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The demo, run from a folder that is not the repository."""
    temporary = folder / "temporary"
    temporary.mkdir()
    return subprocess.run(
        [sys.executable, "-m", "examples.demo", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(temporary),
            "COLUMNS": "100",
            **UNHELPFUL,
            **environment,
        },
    )


@pytest.mark.timeout(600)
def test_the_whole_demo_shows_every_step_and_leaves_nothing_behind(tmp_path: Path, own_home: Path) -> None:
    if local.missing({"XDG_DATA_HOME": str(DATA)}):
        missing_component("the smallest model", "run `make weights`")
    ran = played(tmp_path, "--all", XDG_DATA_HOME=str(DATA))
    assert ran.returncode == 0, ran.stdout[-3000:]
    left_out = {"gateway": gateway.missing(), "workbench": workbench.missing()}
    steps = sum(len(chapter.steps) for chapter in EVERYTHING if not left_out.get(chapter.name))
    assert f"{steps} steps showed what they should" in ran.stdout
    assert ran.stderr == ""
    assert "\x1b[" not in ran.stdout
    assert "NOT SEEN" not in ran.stdout
    assert re.search(r"\d+ tools for \d+ tokens", ran.stdout)
    assert not list((tmp_path / "temporary").iterdir())
    assert not list(own_home.iterdir())
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"]


@pytest.mark.timeout(300)
def test_the_tour_needs_no_model_no_node_and_no_system_packages(tmp_path: Path, own_home: Path) -> None:
    (tmp_path / "bin").mkdir()
    for program in ("sh", "git"):
        (tmp_path / "bin" / program).symlink_to(f"/usr/bin/{program}")
    ran = played(tmp_path, PATH=str(tmp_path / "bin"), XDG_DATA_HOME=str(tmp_path / "none"), PYTHONIOENCODING="ascii")
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert "7 steps showed what they should" in ran.stdout
    assert "left out: it needs a model of 98 MB; run: trysquare models install smollm2-135m" in ran.stdout
    assert ran.stdout.isascii()
    assert ran.stderr == ""
    assert not list((tmp_path / "temporary").iterdir())


def test_only_some_steps_are_played(tmp_path: Path) -> None:
    ran = played(tmp_path, "--only", "mistake")
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert "1/1 A mistake comes back corrected" in ran.stdout


def test_an_unknown_step_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    ran = played(tmp_path, "--only", "mistke")
    assert ran.returncode == 2
    assert "Did you mean `mistake`?" in ran.stderr


def test_a_step_that_continues_others_brings_its_chapter() -> None:
    assert [len(chapter.steps) for chapter in chosen(["resume"])] == [5]
    assert [step.name for chapter in chosen(["consent", "stepping"]) for step in chapter.steps] == [
        "consent", "stepping",
    ]  # fmt: skip


def test_each_step_has_a_name_of_its_own_and_says_what_it_shows() -> None:
    steps = [step for chapter in (*TOUR, *EVERYTHING) for step in chapter.steps]
    assert all(step.shows for step in steps)
    assert sum(len(chapter.steps) for chapter in TOUR) == 8
    once = {step.name for step in EVERYTHING[1].steps}
    assert len(names()) == len({*names()}) == len(steps) - len(once) + len(TOUR) + len(EVERYTHING)


def test_an_expectation_that_does_not_hold_is_a_failure() -> None:
    transcript = Transcript()
    transcript.step("A step", "something")
    transcript.expect(True, "this")
    transcript.expect(False, "that")
    transcript.broke(ExceptionGroup("tasks", [OSError("gone")]))
    assert transcript.failures == ["A step: expected that", "A step: OSError: gone"]
