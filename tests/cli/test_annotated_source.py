"""`trysquare explain --source`: the failing line, the suspects and the values, fit to the terminal."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run

STARTS_PROCESSES = True  # the tests that are explained
SHOP = """\
def total(prices, rate):
\twhole = 0
\tfor price in prices:
\t\twhole = whole - price * rate  # 全部の価格を合計する、この行は間違っている
\treturn whole


def unrelated():
\treturn None
"""
TESTS = """\
from shop import total


def test_total():
    found = total([1, 2], 1)
    assert found == 3


def test_nothing():
    assert total([], 1) == 0
"""
_COLOUR = re.compile(r"\x1b\[\d*m")


def explained(run: Run, project: Path, *options: str) -> str:
    (project / "shop.py").write_text(SHOP, encoding="utf-8")
    (project / "test_shop.py").write_text(TESTS, encoding="utf-8")
    ran = run("explain", "test_shop.py::test_total", "--python", sys.executable, "--no-changes", *options)
    assert ran.code == 0, ran.err
    return ran.out


def rows(text: str) -> dict[tuple[str, int], str]:
    """The rows of the excerpts, by file and line."""
    found: dict[tuple[str, int], str] = {}
    file = ""
    for line in text.splitlines():
        if re.fullmatch(r"[\w/]+\.py", line):
            file = line
        elif file and (match := re.match(r"[✗ ][ \d]{2} +(\d+)(?:  |$)", line)):
            found[file, int(match[1])] = line
    return found


def test_the_source_has_the_failing_line_the_suspects_and_their_values(run: Run, project: Path) -> None:
    text = explained(run, project, "--source")
    found = rows(text)
    assert found["test_shop.py", 6].startswith("✗"), text
    assert found["test_shop.py", 5].endswith("# found = -3"), text
    assert found["shop.py", 4].startswith("  1 4 "), text
    assert found["shop.py", 1].endswith("# prices = [1, 2], rate = 1"), text
    assert ("shop.py", 9) not in found, "far from all that matters"
    assert "AssertionError: assert -3 == 3" in text
    assert "Lines that ran" not in text
    assert "\x1b" not in text


def test_everything_ends_with_the_source(run: Run, project: Path) -> None:
    text = explained(run, project, "--full")
    ran, _, source = text.partition("Lines that ran")
    assert ran.startswith("AssertionError: assert -3 == 3")
    assert rows(source)["test_shop.py", 6].startswith("✗"), text
    assert text.count("assert -3 == 3") == 1, "what failed is said once"


@pytest.mark.parametrize("width", [40, 200])
def test_on_a_terminal_it_has_colours_and_fits(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    text = explained(run, project, "--source")
    assert "\x1b[31m" in text
    plain = _COLOUR.sub("", text)
    lines = plain.splitlines()
    # Characters of Chinese and Japanese take two columns.
    assert max(sum(2 if ord(each) > 0x2E80 else 1 for each in line) for line in lines) <= width, plain
    assert "prices = [1, 2], rate = 1" in " ".join(line.strip(" │") for line in lines), plain
    assert rows(plain)["shop.py", 4].startswith("  1 4 "), plain


def test_the_source_is_not_json(run: Run, project: Path) -> None:
    ran = run("explain", "test_shop.py", "--source", "--json")
    assert ran.code == 2
    assert ran.err.startswith("trysquare: --source:")
    assert str(project) not in ran.err


def test_without_a_failure_it_says_so(run: Run, project: Path) -> None:
    (project / "test_fine.py").write_text("def test_fine():\n    assert True\n", encoding="utf-8")
    ran = run("explain", "test_fine.py", "--python", sys.executable, "--source")
    assert "did not fail" in ran.out
