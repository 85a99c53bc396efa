"""`trysquare check`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run

BAD = '''
from trysquare import Declarations

tools = Declarations()


@tools.declare(destructive=True)
def frobnicate(x: str) -> str:
    """TODO"""
    return x
'''


@pytest.fixture
def bad(project: Path) -> tuple[str, str]:
    """A module with tools that break rules."""
    (project / "bad_tools.py").write_text(BAD, encoding="utf-8")
    return ("--tools", "bad_tools:tools")


def test_errors_fail_the_check_and_say_what_to_do(run: Run, bad: tuple[str, str]) -> None:
    ran = run("check", *bad)
    assert ran.code == 1
    assert "error  frobnicate.x  (field-described)" in ran.out
    assert ran.out.splitlines()[-1].startswith("1 tool checked: ")


def test_json_lists_the_findings(run: Run, bad: tuple[str, str]) -> None:
    findings = run("check", "--json", *bad).json
    assert {"rule", "severity", "tool", "field", "message", "fix"} == set(findings[0])


def test_strict_makes_warnings_errors(run: Run, bad: tuple[str, str], project: Path) -> None:
    rules = {one["rule"] for one in run("check", "--json", *bad).json if one["severity"] == "error"}
    ignored = ", ".join(f'"{rule}"' for rule in rules)
    (project / "trysquare.toml").write_text(f"[lint]\nignore = [{ignored}]\n", encoding="utf-8")
    left = run("check", "--json", *bad)
    assert "warning" in {one["severity"] for one in left.json}
    assert left.code == 0
    assert run("check", "--strict", *bad).code == 1


def test_good_tools_pass(run: Run) -> None:
    ran = run("check", "--strict", "--tools", "demo_tools:tools")
    assert ran.code == 0
    assert " 0 errors, 0 warnings" in ran.out


def test_an_unknown_rule_names_the_line(run: Run, bad: tuple[str, str], project: Path) -> None:
    (project / "trysquare.toml").write_text('[lint]\nignore = ["field-descrbed"]\n', encoding="utf-8")
    ran = run("check", *bad)
    assert ran.code == 2
    assert f"{project}/trysquare.toml:2: lint.ignore: Unknown lint rule `field-descrbed`." in ran.err
    assert "`field-described`" in ran.err


def test_nothing_to_check_is_wrong_usage(run: Run) -> None:
    assert run("check").code == 2
