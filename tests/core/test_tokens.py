"""Tokens: the estimate is held against the real tokenizer, kind by kind."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.relevance import TOOLS
from tests.core.token_texts import TEXTS
from tests.support import node_command
from trysquare.catalog.descriptions import definition, definition_tokens
from trysquare.core.result import dump_json
from trysquare.core.tokens import count_tokens

_SCRIPT = Path(__file__).with_name("o200k.cjs")


_DEFINITIONS = [dump_json(definition(tool)) for tool in TOOLS]
_FILES = [
    path.read_text(encoding="utf-8")
    for path in sorted((Path(__file__).parents[2] / "src" / "trysquare" / "catalog").rglob("*.py"))
]

# The tokenizer takes a second to load, so one worker runs it once for all texts.
pytestmark = pytest.mark.xdist_group("o200k")


@cache
def real_counts() -> dict[str, int]:
    """How many tokens the npm package counts in each text."""
    node, library = node_command("gpt-tokenizer/cjs/encoding/o200k_base.js")
    texts = [*_DEFINITIONS, *_FILES, *TEXTS.values()]
    done = subprocess.run(
        [node, str(_SCRIPT), library], input=json.dumps(texts), capture_output=True, encoding="utf-8", check=True
    )
    return dict(zip(texts, json.loads(done.stdout), strict=True))


def _ratio(texts: list[str]) -> float:
    return sum(map(count_tokens, texts)) / sum(real_counts()[text] for text in texts)


@pytest.mark.node
def test_tool_definitions_are_counted_within_a_tenth_in_total() -> None:
    assert _ratio(_DEFINITIONS) == pytest.approx(1.0, abs=0.1)


@pytest.mark.node
def test_each_tool_definition_is_counted_within_a_fifth() -> None:
    wrong = {text: _ratio([text]) for text in _DEFINITIONS if abs(_ratio([text]) - 1) > 0.2}
    assert wrong == {}


@pytest.mark.node
@pytest.mark.parametrize("kind", sorted(TEXTS))
def test_each_kind_of_text_is_counted_within_a_fifth(kind: str) -> None:
    assert _ratio([TEXTS[kind]]) == pytest.approx(1.0, abs=0.2)


@pytest.mark.node
def test_source_files_are_counted_within_a_tenth() -> None:
    assert _ratio(_FILES) == pytest.approx(1.0, abs=0.1)


def test_nothing_costs_nothing() -> None:
    assert count_tokens("") == 0


def test_a_word_is_a_token() -> None:
    assert count_tokens("hello") == 1
    assert count_tokens("hello world") == 2


def test_the_cost_of_a_tool_is_that_of_its_definition() -> None:
    assert definition_tokens(TOOLS[0]) == count_tokens(dump_json(definition(TOOLS[0])))


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_has_a_count_and_more_text_no_smaller_one(one: str, other: str) -> None:
    assert 0 <= count_tokens(one) <= len(one) * 3 + 1
    # The cut between two texts may join two pieces into one, and rounding moves by one.
    assert count_tokens(f"{one}\n{other}") >= count_tokens(one) * 0.8 - 2


@pytest.mark.parametrize("piece", ["a", "aA", "é", "{", " ", "\n", "字", "1", "_a", "=", "\x00", "\ud800"])
def test_endless_runs_are_counted_in_one_pass(piece: str) -> None:
    assert count_tokens(piece * 50_000) > 0
