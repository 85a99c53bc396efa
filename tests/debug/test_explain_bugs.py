"""Classic bugs: the explanation names the faulty line within its first three lines, in under 2 KB."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from trysquare.debug.explain import explain_failure
from trysquare.debug.targets import read_target
from trysquare.processes.nursery import open_nursery

BUGS = sorted((Path(__file__).parent / "bugs" / "python").glob("*.py"))


@pytest.mark.parametrize("bug", BUGS, ids=lambda path: path.stem)
async def test_the_faulty_line_is_named_at_once(bug: Path, tmp_path: Path) -> None:
    shutil.copy(bug, tmp_path)
    async with open_nursery() as nursery:
        explained = await explain_failure(read_target(f"pytest {bug.name}", tmp_path), tmp_path, nursery)
    [(_, explanation)] = explained.failures
    text = explanation.to_text(str(tmp_path))
    head = "\n".join(text.splitlines()[:3])
    assert any(f"{bug.name}:{line} " in head for line in _faulty_lines(bug)), text
    assert len(text.encode()) < 2000


def _faulty_lines(bug: Path) -> list[int]:
    lines = bug.read_text(encoding="utf-8").splitlines()
    return [number for number, line in enumerate(lines, start=1) if "# FAULT" in line]
