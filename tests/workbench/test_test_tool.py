"""test: tests are run in the sandbox, counted, and those that fail are named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from tests.support import missing_component
from tests.workbench.workplace import need_sandbox, workplace
from trysquare.workbench.test_runners import Counts, go_counts, npm_counts, pytest_counts, unittest_counts

PYTHON = """\
import pytest

def test_good(): pass

def test_bad(): assert 1 == 2

@pytest.mark.parametrize("x", ["a - b"])
def test_worse(x): raise ValueError(x)
"""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The variable that lets pytest start without the plugins of this project."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return ("PYTEST_DISABLE_PLUGIN_AUTOLOAD",)


async def test_python_tests_are_counted_and_the_failing_ones_named(tmp_path: Path, quick: tuple[str, ...]) -> None:
    need_sandbox()
    async with workplace(tmp_path / "work", passed=quick) as place:
        place.write("test_a.py", PYTHON)
        told = await place.send("test", type="python")
        assert told["error"] == {"code": "COMMAND_FAILED", "message": "2 of 3 tests fail."}
        assert (told["passed"], told["data"]) == snapshot(
            (
                False,
                {
                    "exit_status": 1,
                    "counts": {"passed": 1, "failed": 2, "skipped": 0},
                    "failing": ["test_a.py::test_bad", "test_a.py::test_worse[a - b]"],
                },
            )
        )
        assert "assert 1 == 2" in told["output"]
        good = await place.done("test", type="python", module="test_a.py", run="good")
        assert (good["passed"], good["message"]) == (True, "1 passed.")


async def test_a_run_without_tests_does_not_pass(tmp_path: Path, quick: tuple[str, ...]) -> None:
    need_sandbox()
    async with workplace(tmp_path / "work", passed=quick) as place:
        told = await place.send("test", type="python")
    assert (told["passed"], told["error"]["message"]) == (False, "No test was run.")


async def test_go_tests_are_counted_and_the_failing_ones_named(tmp_path: Path) -> None:
    need_sandbox()
    if shutil.which("go") is None:
        missing_component("go", "install the Debian package golang-go")
    async with workplace(tmp_path / "work") as place:
        place.write("go.mod", "module example\n\ngo 1.19\n")
        place.write(
            "a_test.go",
            'package a\n\nimport "testing"\n\nfunc TestGood(t *testing.T) {}\n\n'
            'func TestBad(t *testing.T) { t.Fatal("not so") }\n',
        )
        told = await place.send("test", type="go", count=1)
    assert told["data"] == snapshot(
        {"exit_status": 1, "counts": {"passed": 1, "failed": 1, "skipped": 0}, "failing": ["example.TestBad"]}
    )
    assert "not so" in told["output"]


@pytest.mark.parametrize("argument", ["package", "module", "script", "run"])
async def test_an_option_is_no_test(tmp_path: Path, argument: str) -> None:
    async with workplace(tmp_path / "work") as place:
        code, _ = await place.refused("test", type="python", **{argument: "--collect-only"})
    assert code == "VALIDATION_INVALID_PARAM"


@pytest.mark.parametrize(
    ("output", "counts"),
    [
        ("...\n3 passed in 0.01s\n", Counts(passed=3, failed=0, skipped=0)),
        ("== 1 failed, 2 passed, 1 error in 2.00s (0:00:02) ==\n", Counts(passed=2, failed=2, skipped=0)),
        (
            "ERROR tests/a.py - SyntaxError\n1 error in 0.1s\n",
            Counts(passed=0, failed=1, skipped=0, failures=("tests/a.py",)),
        ),
        ("no tests ran in 0.00s\n", Counts(passed=0, failed=0)),
        ("Traceback …", Counts()),
    ],
)
def test_pytest_is_read(output: str, counts: Counts) -> None:
    assert pytest_counts(output) == counts


def test_unittest_is_read() -> None:
    output = "FAIL: test_bad (test_a.T.test_bad)\n----\nRan 3 tests in 0.001s\n\nFAILED (failures=1, skipped=1)\n"
    assert unittest_counts(output) == Counts(passed=1, failed=1, skipped=1, failures=("test_a.T.test_bad",))
    assert unittest_counts("Ran 2 tests in 0.1s\n\nOK\n") == Counts(passed=2, failed=0, skipped=0)


@pytest.mark.parametrize(
    ("output", "failures"),
    [
        ("  ● math adds\n\nTests:       1 failed, 2 passed, 3 total\n", ("math adds",)),
        (" FAIL  a.test.ts > adds\n      Tests  1 failed | 2 passed (3)\n", ("a.test.ts > adds",)),
        ("ok 1 - good\nnot ok 2 - adds\n# pass 2\n# fail 1\n", ("adds",)),
        ("✖ adds (1.2ms)\n\u2139 pass 2\n\u2139 fail 1\n", ("adds",)),
        ("  2 passing (3ms)\n  1 failing\n\n  1) math\n", ("math",)),
    ],
)
def test_the_runners_of_node_are_read(output: str, failures: tuple[str, ...]) -> None:
    assert npm_counts(output) == Counts(passed=2, failed=1, failures=failures)


def test_of_an_unknown_runner_nothing_is_claimed() -> None:
    assert npm_counts("everything is fine, 5 passed\n").to_json() == {}


def test_a_go_package_that_does_not_build_fails_as_a_whole() -> None:
    output = (
        'a.go:3: syntax error\n{"Action":"fail","Package":"example"}\n{"Action":"pass","Package":"b","Test":"TestX"}\n'
    )
    assert go_counts(output) == Counts(passed=1, failed=1, skipped=0, failures=("example",))
