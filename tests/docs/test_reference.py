"""Everything that a user can name has its line in the reference; a missing one is named."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable

import trysquare
from tests.docs.pages import ROOT, read_page
from trysquare import ErrorCode
from trysquare.settings.environment import CONFIG_VARIABLE, EXAMPLES_VARIABLE, NO_SETTINGS, PREFIX_VARIABLE
from trysquare.settings.keys import all_keys

REFERENCE = ROOT / "docs" / "reference"
_ROW = re.compile(r"^\| (?P<first>[^|]+?) +\|(?P<rest>.*)\|$")


def rows(page: str) -> dict[str, str]:
    """The rows of a page's tables: each name in the first column, with the rest of its row."""
    found: dict[str, str] = {}
    for _, line in read_page(REFERENCE / page).prose:
        if row := _ROW.match(line):
            for name in re.findall(r"`([^`]+)`", row["first"]):
                found[name] = row["rest"]
    return found


def without_a_line(names: Iterable[str], page: str) -> list[str]:
    documented = rows(page)
    return sorted(name for name in names if not documented.get(name, "").strip(" |"))


def test_each_public_name_has_its_line() -> None:
    assert without_a_line(trysquare.__all__, "api.md") == []


def test_each_error_code_has_its_line() -> None:
    assert without_a_line((code.value for code in ErrorCode), "error-codes.md") == []


def test_each_extra_has_its_line() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert without_a_line(project["optional-dependencies"], "extras.md") == []


def test_each_setting_has_its_line_with_the_words_of_the_model() -> None:
    documented = rows("settings.md")
    wrong = [key.name for key in all_keys().values() if key.description not in documented.get(key.name, "")]
    assert wrong == []
    assert sorted(name for name in documented if name not in all_keys()) == []


def test_each_environment_variable_that_is_no_setting_has_its_line() -> None:
    names = {CONFIG_VARIABLE, PREFIX_VARIABLE, EXAMPLES_VARIABLE, *NO_SETTINGS}
    assert without_a_line(names, "environment.md") == []
