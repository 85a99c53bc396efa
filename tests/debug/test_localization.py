"""Localization: the line that makes a test fail is found beside passing tests, and a change of it is tried safely."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import trysquare
from trysquare import call_tool
from trysquare.cli.main import main
from trysquare.debug import (
    DebugConfig,
    Explained,
    explain_failure,
    explain_target,
    localize_failures,
    open_debugger,
    read_target,
)
from trysquare.processes.supervisor import supervise

STARTS_PROCESSES = True  # one that records, and one that runs the tests beside it
SHOP = """\
import os

RATES = {"book": 7, "food": 19}  # RATE


class Cart:
    currency = "EUR"  # CLASS

    def __init__(self):
        self.items = []

    def add(self, kind, price, amount=2):  # DEFAULT
        self.items.append((kind, price, amount))

    def total(self):
        whole = 0
        for kind, price, amount in self.items:
            if kind not in RATES:
                raise KeyError(kind)
            whole += price + amount  # SUM
        return whole

    def prices(self):
        for _, price, _ in self.items:
            if price >= 0:  # SIGN
                yield price


def tax(kind):
    return RATES[kind]


def check(age):
    if age < 16:  # AGE
        raise ValueError(age)
    return age


def save(text, name):
    if os.path.exists(name + "x"):  # SAVE
        os.remove(name)
    return text
"""
TESTS = """\
import pytest
from shop import Cart, check, save, tax


def cart():
    made = Cart()
    made.add("book", 10, 1)
    return made


def test_empty():
    assert Cart().total() == 0


def test_one():
    assert cart().items == [("book", 10, 1)]


def test_unknown():
    made = cart()
    made.add("toy", 1, 1)
    with pytest.raises(KeyError):
        made.total()


def test_total():
    made = cart()
    made.add("food", 4, 3)
    assert made.total() == 22


def test_rate():
    assert tax("book") == 7


def test_other_rate():
    assert tax("food") == 20


def test_currency():
    assert Cart().currency == "EURO"


def test_default():
    made = Cart()
    made.add("book", 5)
    assert made.items == [("book", 5, 1)]


def test_prices():
    made = cart()
    made.add("food", 0, 1)
    assert list(made.prices()) == [10]


def test_adult():
    assert check(20) == 20


def test_young():
    with pytest.raises(ValueError):
        check(16)


def test_save():
    assert save("a", KEEP) == "b"
"""


@pytest.fixture(name="project")
def project_fixture(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n", encoding="utf-8")
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    (tmp_path / "keep.txt").write_text("kept", encoding="utf-8")
    text = TESTS.replace("KEEP", repr(str(tmp_path / "keep.txt")))
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_shop.py").write_text(text, encoding="utf-8")
    return tmp_path


async def explained(
    target: str, root: Path, *, budget: float = 60, changes: bool = True, git: bool = False
) -> Explained:
    async with supervise() as supervisor:
        wanted = read_target(target, root, runtime=sys.executable)
        return await explain_target(wanted, root, supervisor, timeout=60, budget=budget, changes=changes, git=git)


def commit(root: Path) -> None:
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", *words], cwd=root, check=True)


def marked(root: Path, mark: str) -> str:
    lines = (root / "shop.py").read_text(encoding="utf-8").splitlines()
    [line] = [number for number, line in enumerate(lines, start=1) if line.endswith(f"# {mark}")]
    return f"{root}/shop.py:{line}"


@pytest.mark.parametrize(
    ("test", "mark"),
    [("test_total", "SUM"), ("test_prices", "SIGN"), ("test_young", "AGE"), ("test_default", "DEFAULT")],
)
async def test_the_wrong_line_is_first_and_a_change_proves_it(test: str, mark: str, project: Path) -> None:
    found = await explained(f"tests/test_shop.py::{test}", project)
    explanation = found.failures[0][1]
    first = explanation.suspects[0]
    assert first.location == marked(project, mark), explanation.to_text(str(project))
    assert first.proof is not None
    assert first.proof["breaks"] == 0
    assert explanation.localization is not None
    assert len(explanation.to_text(str(project)).encode()) <= 2000


@pytest.mark.parametrize(("test", "mark"), [("test_other_rate", "RATE"), ("test_currency", "CLASS")])
async def test_a_value_of_the_module_or_class_that_a_test_reads_is_suspect(test: str, mark: str, project: Path) -> None:
    found = await explained(f"tests/test_shop.py::{test}", project)
    explanation = found.failures[0][1]
    assert marked(project, mark) in [each.location for each in explanation.suspects[:3]], explanation.to_text()


async def test_a_changed_program_may_not_touch_the_users_files(project: Path) -> None:
    found = await explained("tests/test_shop.py::test_save", project)
    explanation = found.failures[0][1]
    assert explanation.localization is not None
    assert int(explanation.localization.found["trials"]) > 0
    assert (project / "keep.txt").read_text(encoding="utf-8") == "kept"
    assert not any(each.proof for each in explanation.suspects)


async def test_nothing_is_changed_if_that_is_switched_off(project: Path) -> None:
    found = await explained("tests/test_shop.py::test_total", project, changes=False)
    explanation = found.failures[0][1]
    assert explanation.localization is not None
    assert explanation.localization.found["trials"] == 0
    assert marked(project, "SUM") in [each.location for each in explanation.suspects[:5]]
    assert all(each.proof is None for each in explanation.suspects)


async def test_without_a_budget_only_the_failing_test_is_run(project: Path) -> None:
    found = await explained("tests/test_shop.py::test_total", project, budget=0)
    assert found.failures[0][1].localization is None


async def test_a_test_case_of_unittest_is_localized_without_pytest(project: Path) -> None:
    (project / "test_case.py").write_text(
        "import unittest\nfrom shop import check\n\n\nclass TestCheck(unittest.TestCase):\n"
        "    def test_old(self):\n        self.assertEqual(check(20), 20)\n\n"
        "    def test_young(self):\n        with self.assertRaises(ValueError):\n            check(16)\n",
        encoding="utf-8",
    )
    found = await explained("python -m unittest test_case", project)
    assert found.failures[0][1].suspects[0].location == marked(project, "AGE")


async def test_a_line_that_was_changed_lately_is_a_hint_that_is_named(project: Path) -> None:
    commit(project)
    text = (project / "shop.py").read_text(encoding="utf-8")
    (project / "shop.py").write_text(text.replace("whole = 0", "whole = 00"), encoding="utf-8")
    found = await explained("tests/test_shop.py::test_total", project, changes=False, git=True)
    hinted = [each for each in found.failures[0][1].suspects if each.evidence.get("changed")]
    assert [each.code for each in hinted] == ["whole = 00"]


async def test_an_installed_package_is_suspect_if_the_test_reaches_nothing_else(tmp_path: Path) -> None:
    package = tmp_path / "lib" / "site-packages" / "shipped"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def up(n):\n    return n + 2\n", encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = lib/site-packages\n", encoding="utf-8")
    (tmp_path / "test_up.py").write_text(
        "from shipped import up\n\n\ndef test_up():\n    assert up(1) == 2\n", encoding="utf-8"
    )
    found = await explained("test_up.py", tmp_path)
    assert found.failures[0][1].suspects[0].location == f"{package}/__init__.py:2"


async def test_the_tool_returns_the_suspects_as_data(project: Path) -> None:
    async with open_debugger(DebugConfig(root=project)) as tools:
        result = await call_tool(tools, "explain", {"target": "tests/test_shop.py::test_young", "budget": 30})
    assert result.fields["suspects"][0]["location"] == marked(project, "AGE").removeprefix(f"{project}/")
    assert result.fields["suspects"][0]["proved"]
    assert result.fields["confidence"] == "high"


def test_a_recorded_call_becomes_a_test_that_fails(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["explain", "tests/test_shop.py::test_young", "--project", str(project), "--python", sys.executable]
    file = project / "tests" / "test_adult.py"
    assert main([*words, "--write-test", str(file)]) == 0
    assert "No regression test was written" in capsys.readouterr().err
    assert not file.exists()
    (project / "scale.py").write_text("def scale(n, factor=2):\n    return n + factor\n", encoding="utf-8")
    (project / "tests" / "test_scale.py").write_text(
        "from scale import scale\n\n\ndef test_scale():\n    assert scale(5, 3) == 15\n", encoding="utf-8"
    )
    assert main(["explain", "tests/test_scale.py", *words[2:], "--write-test", str(file)]) == 0
    assert "assert scale(n=5, factor=3) == 15" in file.read_text(encoding="utf-8")
    assert main(["explain", "tests/test_scale.py", *words[2:], "--write-test", str(file)]) == 2


async def test_a_test_that_passes_by_itself_is_called_flaky(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "test_state.py").write_text(
        "seen = []\n\n\ndef test_one():\n    seen.append(1)\n\n\ndef test_two():\n    assert not seen\n",
        encoding="utf-8",
    )
    found = await explained("test_state.py", tmp_path)
    localization = found.failures[0][1].localization
    assert localization is not None
    assert localization.found["again"] == "passed"
    assert not found.failures[0][1].suspects


DEEP = """\
def same(number): return number


def third(number): return same(number)


def second(number):
    return sum(third(number) for _ in range(300)) - 299 * number


def total(numbers):
    return sum(second(each) for each in numbers) + 1  # WRONG
"""


async def test_values_far_from_where_a_test_fails_are_not_recorded_and_its_neighbours_need_not_load(
    tmp_path: Path,
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\naddopts = --color=yes\n", encoding="utf-8")
    (tmp_path / "deep.py").write_text(DEEP, encoding="utf-8")
    (tmp_path / "test_broken.py").write_text("import no_such_module, deep\nfrom deep import total\n", encoding="utf-8")
    (tmp_path / "test_deep.py").write_text(
        "import deep\nfrom deep import total\n\n\ndef test_total():\n    assert str(total([1, 2])) == '3'\n\n\n"
        "def test_same():\n    assert deep.same(1) == 1\n",
        encoding="utf-8",
    )
    async with supervise() as supervisor:
        target = read_target("test_deep.py::test_total", tmp_path, runtime=sys.executable)
        near = await explain_failure(target, tmp_path, supervisor)
        full = await explain_failure(target, tmp_path, supervisor, is_run_before=False)
        found = await localize_failures(near, target, tmp_path, supervisor, budget=30, is_processor_time=True)
    assert near.cost.lines < full.cost.lines / 5
    [(_, one)], [(_, other)] = near.failures, full.failures
    assert (one.error, one.location, one.origins) == (other.error, other.location, other.origins)
    assert one.detail
    assert "\x1b" not in one.to_text()
    suspects = found.failures[0][1].suspects
    assert suspects[0].location == f"{tmp_path}/deep.py:{1 + DEEP[: DEEP.index('# WRONG')].count(chr(10))}"
    # A function in one line counts as run by the test that passes.
    [same] = [each for each in suspects if each.code.startswith("def same")]
    assert (same.evidence["failing"], same.evidence["passing"]) == (1, 1)


async def test_a_test_that_fails_only_the_first_time_is_reported_as_flaky(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "once").write_text("", encoding="utf-8")
    (tmp_path / "test_once.py").write_text(
        "import pathlib\n\n\ndef test_once():\n    file = pathlib.Path(__file__).with_name('once')\n"
        "    if file.exists():\n        file.unlink()\n        raise LookupError('first')\n",
        encoding="utf-8",
    )
    found = await explained("test_once.py::test_once", tmp_path)
    [(name, explanation)] = found.failures
    assert name == "test_once.py::test_once"
    assert explanation.error == "LookupError: first"
    assert any("did not fail" in each for each in explanation.notes)
    assert explanation.localization is not None
    assert explanation.localization.found["again"] == "passed"


def test_the_recorder_can_be_read_by_the_oldest_python_that_it_records() -> None:
    folder = Path(trysquare.__file__).parent / "debug" / "recorder"
    for file in folder.glob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 9))
        checks = [
            each for each in ast.walk(tree) if isinstance(each, ast.Call) and ast.unparse(each.func) == "isinstance"
        ]
        assert not [each for each in checks if isinstance(each.args[1], ast.BinOp)], file
        assert not [each for each in ast.walk(tree) if isinstance(each, ast.Match)], file


ASKED = """\
import asyncio


async def add(number):
    waiting = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(waiting.set_result, 3)
    return number - await waiting  # SUM


def test_add():
    assert asyncio.run(add(4)) == 7
"""


async def test_a_coroutine_that_waits_has_returned_nothing_and_a_proof_without_passing_tests_is_not_high(
    tmp_path: Path,
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "test_add.py").write_text(ASKED, encoding="utf-8")
    found = await explained("test_add.py", tmp_path)
    explanation = found.failures[0][1]
    assert explanation.suspects[0].code == "return number - await waiting  # SUM"
    assert explanation.suspects[0].proof is not None
    assert explanation.localization is not None
    assert explanation.localization.confidence.startswith("fair: ")
    assert "return <Future>" not in explanation.to_text(str(tmp_path))
    assert not [each for each in explanation.suspects if "def test_add" in each.code]
