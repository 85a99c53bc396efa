"""The pages of lint rules: each rule has one, and both of its examples do what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from trysquare import Tools
from trysquare.catalog.lint.engine import RULES, lint

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "lint-rules.md"
_INTRODUCTION = PAGE.read_text(encoding="utf-8")
_BY_RULE = {
    path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "src/trysquare/reference/lint").glob("*.md")
}


def _blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def _found(example: str) -> set[str]:
    names: dict[str, Any] = {"__name__": "__page__"}
    for block in (*_blocks(_INTRODUCTION), example):
        # As a module of its own: this file's `from __future__` must not change the example.
        exec(compile(block, PAGE.name, "exec", dont_inherit=True), names)
    tools: Tools = names["tools"]
    return {finding.rule for finding in lint(tools.toolset(), names.get("options"))}


def test_every_rule_has_its_page_and_every_page_its_rule() -> None:
    assert sorted(_BY_RULE) == sorted(rule.name for rule in RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_page_has_the_severity_of_the_rule(rule: Any) -> None:
    assert f"\n\n{rule.severity.capitalize()}. " in _BY_RULE[rule.name]


@pytest.mark.parametrize("rule", sorted(_BY_RULE))
def test_the_bad_example_breaks_its_rule_and_no_other(rule: str) -> None:
    bad, _ = _blocks(_BY_RULE[rule])
    assert _found(bad) == {rule}


@pytest.mark.parametrize("rule", sorted(_BY_RULE))
def test_the_good_example_keeps_all_rules(rule: str) -> None:
    _, good = _blocks(_BY_RULE[rule])
    assert _found(good) == set()
