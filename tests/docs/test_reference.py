"""Everything that a user can name has its line in the reference; a missing one is named."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

import trysquare
from tests.docs.pages import ROOT, read_page
from tests.docs.settings_tables import MARK, settings_tables
from trysquare import ErrorCode
from trysquare.cli.clients import CLIENTS
from trysquare.cli.main import build_parser, find_commands
from trysquare.core.metadata import MetadataOptions
from trysquare.settings.keys import all_keys
from trysquare.settings.load import NO_SETTINGS

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
    assert without_a_line(all_keys(), "settings.md") == []
    _, mark, tables = read_page(REFERENCE / "settings.md").text.partition(MARK)
    assert mark + tables == MARK + settings_tables(), "run python -m tests.docs.refresh docs/reference/settings.md"


def test_each_environment_variable_that_is_no_setting_has_its_line() -> None:
    aliases = {key.environment.alias for key in all_keys().values() if key.environment.alias}
    names = aliases | NO_SETTINGS
    assert without_a_line(names, "environment.md") == []


def test_each_option_of_a_declaration_has_its_line() -> None:
    options = {*MetadataOptions.__annotations__, "name", "title", "description"}
    assert without_a_line(options, "../tools/adding-a-tool.md") == []


def test_each_client_has_its_line_with_what_it_takes() -> None:
    documented = rows("../start/clients.md")
    assert without_a_line(CLIENTS, "../start/clients.md") == []
    limits = {name: str(client.most_tools or "no known limit") for name, client in CLIENTS.items()}
    assert {name: documented[name].split("|")[-1].strip() for name in CLIENTS} == limits


def options_of(command: str) -> set[str]:
    """The names of the options and arguments that a command and its subcommands take."""
    return set(_names(build_parser(command).inner[command]))


def _names(parser: Any) -> Iterator[str]:
    for name, inner in parser.inner.items():
        yield name
        yield from _names(inner)
    yield from (str(each.action.metavar or each.action.dest) for each in parser.positionals())
    yield from (flag for each in parser.all_options() for flag in each.flags)


def shared_options() -> set[str]:
    """Options of commands that open tools, of which `config` has no more than `--json` besides."""
    return set(_names(build_parser("config").inner["config"])) - {"--json"}


def documented_options() -> dict[str, set[str]]:
    """What the tables under each heading of the page name: `trysquare serve` -> {`--http`}."""
    found: dict[str, set[str]] = {}
    heading = ""
    for _, line in read_page(REFERENCE / "cli.md").prose:
        if line.startswith("## "):
            heading = line.removeprefix("## ").strip("`")
            found[heading] = set()
        elif row := _ROW.match(line):
            found.setdefault(heading, set()).update(re.findall(r"`([^` =]+)[^`]*`", row["first"]))
    return found


@pytest.mark.parametrize("command", find_commands())
def test_each_option_of_the_command_has_its_line(command: str) -> None:
    documented = documented_options()
    assert f"trysquare {command}" in documented, f"docs/reference/cli.md has no heading `trysquare {command}`"
    own = documented[f"trysquare {command}"]
    assert sorted(options_of(command) - own - shared_options()) == []
    assert sorted(own - options_of(command)) == [], "documented, but the command does not take it"


def test_each_shared_option_has_its_line() -> None:
    assert sorted(shared_options() - documented_options()["Shared options"]) == []
