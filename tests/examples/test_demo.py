"""`make demo`: every step shows what it should, and nothing is left behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.demo import gateway, local, workbench
from examples.demo.steps import (
    AT_THE_WORKBENCH,
    BEHIND_THE_GATEWAY,
    IN_EACH_ERA,
    OF_THE_DEBUGGER,
    OF_THE_GUIDE,
    OVER_HTTP,
    WITH_A_BOT,
    WITH_A_LOCAL_MODEL,
)
from examples.demo.transcript import Transcript
from tests.support import missing_component

ROOT = Path(__file__).parents[2]
DATA = ROOT / ".data"
"""Where `make weights` puts the smallest model."""


@pytest.mark.timeout(600)
def test_the_demo_shows_every_step_and_leaves_nothing_behind(tmp_path: Path, own_home: Path) -> None:
    if local.missing({"XDG_DATA_HOME": str(DATA)}):
        missing_component("the smallest model", "run `make weights`")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    # What a user's environment may hold: a proxy, and settings that are wrong.
    unhelpful = {"HTTP_PROXY": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9", "TRYSQUARE_PREFX": "x"}
    ran = subprocess.run(
        [sys.executable, "-m", "examples.demo"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary), "XDG_DATA_HOME": str(DATA), **unhelpful},
    )
    assert ran.returncode == 0, ran.stdout[-3000:]
    steps = 2 * len(IN_EACH_ERA) + len(OF_THE_GUIDE) + len(OF_THE_DEBUGGER) + len(OVER_HTTP) + len(WITH_A_BOT)
    steps += len(WITH_A_LOCAL_MODEL)
    steps += len(AT_THE_WORKBENCH) if workbench.missing() is None else 0
    steps += 0 if gateway.missing() else len(BEHIND_THE_GATEWAY)
    assert f"All {steps} steps showed what they should" in ran.stdout
    assert ran.stderr == ""
    assert "\x1b[" not in ran.stdout
    assert "NOT SEEN" not in ran.stdout
    assert re.search(r"\d+ tools for \d+ tokens", ran.stdout)
    assert not list(temporary.iterdir())
    assert not list(own_home.iterdir())
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"]


def test_each_step_says_what_it_shows() -> None:
    assert all(step.shows for step in (*IN_EACH_ERA, *OF_THE_GUIDE, *BEHIND_THE_GATEWAY, *OVER_HTTP, *WITH_A_BOT))


def test_an_expectation_that_does_not_hold_is_a_failure() -> None:
    transcript = Transcript()
    transcript.step("A step", "something")
    transcript.expect(True, "this")
    transcript.expect(False, "that")
    transcript.broke(ExceptionGroup("tasks", [OSError("gone")]))
    assert transcript.failures == ["A step: expected that", "A step: OSError: gone"]
