"""ARCHITECTURE.md and AGENTS.md speak of the code as it is: its folders, its layers, its files."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.docs.pages import ROOT, read_page

PACKAGE = ROOT / "src" / "trysquare"
_CODE_SPAN = re.compile(r"`([\w/]+\.(?:py|md|toml))`")


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "AGENTS.md", "CONTRIBUTING.md"])
def test_each_file_that_the_page_names_exists(page: str) -> None:
    named = {name for _, line in read_page(ROOT / page).prose for name in _CODE_SPAN.findall(line)}
    places = (ROOT, PACKAGE)
    # Names that every source package uses, neighbours of a file that is named whole, and the settings of a user.
    planned = {"config.py", "provider.py", "tools.py", "schema_rules.py", "text_rules.py", "trysquare.toml"}
    assert sorted(name for name in named - planned if not any((place / name).exists() for place in places)) == []


def test_the_tree_shows_each_folder_and_module_of_the_package() -> None:
    [tree] = [block.text for block in read_page(ROOT / "ARCHITECTURE.md").blocks if "src/trysquare/" in block.text]
    shown = {line.split()[0].rstrip("/") for line in tree.splitlines()[1:] if line.strip()}
    there = {path.name for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert sorted(there - {"__pycache__", "__main__.py"} - shown) == []
    assert sorted(shown - there) == []


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "AGENTS.md"])
def test_the_layers_are_those_that_import_linter_holds(page: str) -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [layers] = [one["layers"] for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers"]
    text = "\n".join(line.strip() for line in read_page(ROOT / page).text.splitlines())
    assert "\n".join(layers) in text


def test_the_page_for_coding_agents_stays_short() -> None:
    assert len(read_page(ROOT / "AGENTS.md").text.splitlines()) < 100


# What can be added or changed, and how many source files that takes at the most.
CHANGES = {
    "a built-in tool": 2,
    "a middleware": 1,
    "a command": 1,
    "a debugger language": 2,
    "an upstream transport": 2,
    "how an argument error is rendered": 1,
    "a setting": 1,
    "a lint rule": 1,
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_page_says_which_files_a_change_takes(change: str) -> None:
    [row] = [line for _, line in read_page(ROOT / "ARCHITECTURE.md").prose if line.startswith(f"| {change}")]
    files = [name for name in _CODE_SPAN.findall(row) if "/" in name]
    assert 1 <= len(files) <= CHANGES[change]
    assert [name for name in files if not (PACKAGE / name).is_file()] == []
