"""The recorder under programs that are hard on it: each failure is still explained."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.debug.hard_cases import HARD
from trysquare.debug import Explained, explain_failure, read_target
from trysquare.processes.supervisor import supervise

WORKERS = "[pytest]\naddopts = -n 2\n"


async def explained(folder: Path, target: str, *, timeout: float = 60.0) -> Explained:
    async with supervise() as supervisor:
        wanted = read_target(target, folder, runtime=sys.executable)
        return await explain_failure(wanted, folder, supervisor, timeout=timeout)


@pytest.mark.parametrize("name", HARD)
async def test_a_hard_case_is_explained(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "workers":
        monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    (tmp_path / "test_case.py").write_text(HARD[name], encoding="utf-8")
    (tmp_path / "pytest.ini").write_text(WORKERS if name == "workers" else "[pytest]\n", encoding="utf-8")
    target = "python -m unittest test_case" if name == "unittest" else "pytest test_case.py"
    found = await explained(tmp_path, target)
    assert found.outcome == "failed", found
    text = found.failures[0][1].to_text(str(tmp_path))
    assert "test_case.py:" in text.splitlines()[0]
    assert "repr was called" not in text
    assert len(text.encode()) < 2000
    if "wrong = " in HARD[name]:
        line = next(n for n, each in enumerate(HARD[name].splitlines(), 1) if "wrong = " in each)
        assert f"test_case.py:{line} " in text or f"  {line}: wrong" in text, text


async def test_a_loop_of_a_million_lines_is_recorded_in_its_first_rounds_and_says_so(tmp_path: Path) -> None:
    code = "def test_it():\n    x = 0\n    for i in range(600_000):\n        x = i\n    assert x == 1\n"
    (tmp_path / "test_case.py").write_text(code, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    found = await explained(tmp_path, "pytest test_case.py")
    assert found.cost.cut == ("test_it",)
    assert found.cost.lines < 10_000
    text = found.failures[0][1].to_text(str(tmp_path))
    assert "lines that were not recorded" in text
    assert found.cost.warnings


async def test_a_program_that_hangs_tells_where(tmp_path: Path) -> None:
    code = "import threading\n\ndef wait():\n    threading.Event().wait()\n\nready = 1\nwait()\n"
    (tmp_path / "hang.py").write_text(code, encoding="utf-8")
    found = await explained(tmp_path, "hang.py", timeout=1.0)
    assert found.outcome == "unfinished"
    assert "hang.py:4 in wait" in found.failures[0][1].to_text(str(tmp_path)).splitlines()[0]


SEVERAL = """\
seen = []

def double(value):
    result = value * 3
    return result

def test_good():
    for _ in range(50):
        double(2)

def test_bad():
    assert double(2) == 4

def test_otherwise():
    seen.append(1)
    assert len(seen) == 2, len(seen)
"""


async def test_of_many_tests_those_that_fail_are_recorded_with_their_values(tmp_path: Path) -> None:
    (tmp_path / "test_case.py").write_text(SEVERAL, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    found = await explained(tmp_path, "pytest test_case.py")
    bad, otherwise = (explanation.to_text(str(tmp_path)) for _, explanation in found.failures)
    assert "result = value * 3   # result = 6" in bad
    assert found.cost.lines < 20
    # It changed what it depends on: run once more to be recorded, it passes.
    assert "it did not fail" in otherwise
