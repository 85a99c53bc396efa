"""`trysquare why`: every error code and lint rule has a page with cause, example and repair."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import trysquare
from trysquare import ErrorCode
from trysquare.catalog.lint.engine import RULES
from trysquare.cli.main import main
from trysquare.cli.why import pages, read_page

SOURCE = Path(trysquare.__file__).parent
CODES = [code.value for code in ErrorCode]
NAMES = [*CODES, *(rule.name for rule in RULES)]


def test_the_pages_are_those_of_the_codes_and_rules() -> None:
    assert sorted(pages()) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_cause_example_and_repair(name: str) -> None:
    page = re.fullmatch(r"# (.+?)\n\n(.+?)\n\n## Example\n\n(.+?)\n\n## Repair\n\n(.+)\n", read_page(name), re.DOTALL)
    assert page is not None
    assert page[1] == name


@pytest.mark.parametrize("spelling", ["TOOL_NOT_FOUND", "tool_not_found", "tool-not-found"])
def test_a_code_is_found_in_any_spelling(spelling: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", spelling]) == 0
    assert capsys.readouterr().out.startswith("# TOOL_NOT_FOUND\n")


def test_without_a_code_all_are_listed_with_their_cause(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == sorted(NAMES)


def test_an_unknown_code_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "TOOL_NOT_FOND"]) == 2
    assert "`TOOL_NOT_FOUND`" in capsys.readouterr().err


def test_every_code_is_sent_by_some_module() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    sent = set(re.findall(r"\bErrorCode\.([A-Z_]+)\b", sources))
    assert [code for code in CODES if code not in sent] == [], "Send these, or remove them with their pages."
