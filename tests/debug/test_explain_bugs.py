"""Classic bugs: the explanation names the faulty line within its first three lines, in under 2 KB."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support import missing_component, node_program
from trysquare.core.call import call_tool
from trysquare.debug.config import DebugConfig
from trysquare.debug.engines.lldb import ADAPTERS, INSTALL
from trysquare.debug.explain import explain_failure
from trysquare.debug.targets import read_target
from trysquare.debug.toolset import debug_toolset
from trysquare.processes.nursery import open_nursery

FOLDER = Path(__file__).parent / "bugs"
BUGS = sorted((FOLDER / "python").glob("*.py"))
OTHERS = sorted([*(FOLDER / "javascript").glob("*.js"), *(FOLDER / "c").glob("*.c")])


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


@pytest.mark.parametrize("bug", OTHERS, ids=lambda path: f"{path.parent.name}-{path.stem}")
async def test_the_faulty_line_of_another_language_is_named_at_once(bug: Path, tmp_path: Path) -> None:
    shutil.copy(bug, tmp_path)
    if bug.suffix == ".c" and not any(shutil.which(name) for name in ADAPTERS):
        missing_component("lldb-dap", INSTALL)
    async with debug_toolset(DebugConfig(root=tmp_path)) as tools:
        runtime = {"runtime_path": node_program()} if bug.suffix == ".js" else {}
        result = await call_tool(tools, "explain", {"target": bug.name, **runtime})
    assert result.success, result.to_text()
    text = str(result.value)
    head = "\n".join(text.splitlines()[:3])
    assert any(f"{bug.name}:{line} " in head for line in _faulty_lines(bug)), text
    assert len(text.encode()) < 2000


def _faulty_lines(bug: Path) -> list[int]:
    lines = bug.read_text(encoding="utf-8").splitlines()
    return [number for number, line in enumerate(lines, start=1) if "FAULT" in line]
