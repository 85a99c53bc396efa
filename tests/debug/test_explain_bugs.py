"""Classic bugs: the explanation names the faulty line within its first three lines, in under 2 KB."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from textwrap import indent

import pytest

from tests.support import missing_component, node_program
from trysquare import call_tool
from trysquare.debug import DebugConfig, explain_failure, open_debugger, read_target
from trysquare.debug.adapters.lldb import PACKAGE as LLDB
from trysquare.debug.explain.explain import Explanation
from trysquare.processes.supervisor import supervise

FOLDER = Path(__file__).parent / "bugs"
BUGS = sorted((FOLDER / "python").glob("*.py"))
OTHERS = sorted([*(FOLDER / "javascript").glob("*.js"), *(FOLDER / "c").glob("*.c")])

STARTS_PROCESSES = True  # one for each program with a bug
SUBTEST = """\
import unittest


def twice(n):
    return n * 2 + n // 2


class TestTwice(unittest.TestCase):
    def test_twice(self):
        for n in (0, 1, 2):
            with self.subTest(n=n):
                self.assertEqual(twice(n), n * 2)
"""


@pytest.mark.parametrize("bug", BUGS, ids=lambda path: path.stem)
async def test_the_faulty_line_is_named_at_once(bug: Path, tmp_path: Path) -> None:
    shutil.copy(bug, tmp_path)
    explanation = await _explained(f"pytest {bug.name}", tmp_path)
    text = explanation.to_text(str(tmp_path))
    head = "\n".join(text.splitlines()[:3])
    assert any(f"{bug.name}:{line} " in head for line in _faulty_lines(bug)), text
    assert len(text.encode()) < 2000


@pytest.mark.parametrize("bug", BUGS, ids=lambda path: path.stem)
async def test_a_check_of_unittest_blames_what_an_assert_blames(bug: Path, tmp_path: Path) -> None:
    file = _as_test_case(bug, tmp_path)
    explanation = await _explained(f"python -m unittest {bug.stem}", tmp_path)
    text = explanation.to_text(str(tmp_path))
    head = "\n".join(text.splitlines()[:3])
    assert any(f"{bug.name}:{line} " in head for line in _faulty_lines(file)), text
    assert explanation.blamed is None or explanation.blamed.expression != "self", text


async def test_a_check_in_a_subtest_is_explained_by_what_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "test_sub.py").write_text(SUBTEST, encoding="utf-8")
    explanation = await _explained("python -m unittest test_sub", tmp_path)
    assert explanation.to_text(str(tmp_path)).splitlines()[:2] == [
        "AssertionError: 5 != 4  [test_sub.py:12 in TestTwice.test_twice: self.assertEqual(twice(n), n * 2)]",
        "Look first at test_sub.py:5 `return n * 2 + n // 2`: twice(n=2) returned 5",
    ]


async def _explained(target: str, folder: Path) -> Explanation:
    async with supervise() as supervisor:
        explained = await explain_failure(read_target(target, folder), folder, supervisor)
    [(_, explanation)] = explained.failures
    return explanation


def _as_test_case(bug: Path, folder: Path) -> Path:
    """Write a test with `assert` as a test case with the checks of unittest."""
    code, definition, test = bug.read_text(encoding="utf-8").partition("def test_")
    test = re.sub(r"assert (.*) == (.*)", r"self.assertEqual(\1, \2)", f"{definition}{test}".replace("()", "(self)", 1))
    test = re.sub(r"assert (.*)", r"self.assertTrue(\1)", test)
    file = folder / bug.name
    file.write_text(
        f"import unittest\n{code}class TestBug(unittest.TestCase):\n{indent(test, '    ')}", encoding="utf-8"
    )
    return file


@pytest.mark.parametrize("bug", OTHERS, ids=lambda path: f"{path.parent.name}-{path.stem}")
async def test_the_faulty_line_of_another_language_is_named_at_once(bug: Path, tmp_path: Path) -> None:
    shutil.copy(bug, tmp_path)
    if bug.suffix == ".c" and not any(shutil.which(name) for name in LLDB.programs):
        missing_component("lldb-dap", LLDB.install_command)
    async with open_debugger(DebugConfig(root=tmp_path)) as tools:
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
