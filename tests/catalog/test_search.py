"""Search: which tools are the nearest, and in which order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.relevance import MISSPELT, QUERIES, TOOLS, made
from tests.support import size
from trysquare import Tool
from trysquare.catalog import ToolIndex


def _names(index: ToolIndex, query: str, limit: int = 5) -> list[str]:
    return [match.tool.name for match in index.search(query, limit=limit)]


def _sharing_terms(index: ToolIndex, query: str) -> list[str]:
    """The nearest tools without those that only fill up the answer."""
    return [match.tool.name for match in index.search(query) if match.score]


@pytest.fixture(scope="module")
def index() -> ToolIndex:
    return ToolIndex(TOOLS)


@pytest.mark.parametrize("wanted", TOOLS, ids=lambda tool: tool.name)
def test_an_exact_name_comes_first_however_it_is_written(index: ToolIndex, wanted: Tool) -> None:
    for written in (wanted.name, wanted.name.upper(), *(wanted.name.replace("_", part) for part in ("-", " ", ""))):
        assert _names(index, written)[0] == wanted.name


def test_most_queries_find_their_tool_first_and_nearly_all_among_three(index: ToolIndex) -> None:
    first = sum(_names(index, query)[:1] == [wanted] for query, wanted in QUERIES)
    among_three = sum(wanted in _names(index, query)[:3] for query, wanted in QUERIES)
    assert first / len(QUERIES) >= 0.8
    assert among_three / len(QUERIES) >= 0.95


@pytest.mark.parametrize("parted", ["", "_", "-", " ", ". "])
def test_words_are_found_however_they_are_parted(index: ToolIndex, parted: str) -> None:
    for words, wanted in (
        ("flags list", "list_flags"),
        ("files list folder", "list_folder"),
        ("commits to the remote push", "git_push"),
        ("break point", "debug_breakpoint"),
        ("screen shot", "take_screenshot"),
    ):
        assert wanted in _names(index, words.replace(" ", parted), 3)


def test_singular_and_plural_are_the_same() -> None:
    index = ToolIndex(made(name, "") for name in ("list_users", "list_pods", "list_boxes", "list_queries"))
    for name in ("users", "pods", "boxes", "queries"):
        one = {"boxes": "box", "queries": "query"}.get(name, name[:-1])
        assert _sharing_terms(index, f"show {one}") == _sharing_terms(index, f"show {name}") == [f"list_{name}"]


def test_misspelt_queries_find_their_tool_among_three(index: ToolIndex) -> None:
    missed = [(query, wanted) for query, wanted in MISSPELT if wanted not in _names(index, query)[:3]]
    assert missed == []


@pytest.mark.parametrize("query", ["quantum entanglement", "zzzz", "", "   ", "the of and", "?!", "🤷", "\ud800"])
def test_there_is_always_an_answer_while_there_are_tools(index: ToolIndex, query: str) -> None:
    assert len(_names(index, query)) == 5
    assert _names(ToolIndex(TOOLS[:2]), query) == sorted(tool.name for tool in TOOLS[:2])
    assert _names(ToolIndex(), query) == []


def test_trigger_words_and_parameters_are_searched() -> None:
    index = ToolIndex(
        [
            made("run_tests", "Check the project.", trigger_words=("pytest",)),
            made("send", "Deliver something.", "recipient: Who gets it"),
        ]
    )
    assert _sharing_terms(index, "pytest") == ["run_tests"]
    assert _sharing_terms(index, "recipient") == ["send"]


def test_a_single_tool_is_found_by_one_word_among_others() -> None:
    assert _names(ToolIndex([made("get_weather", "Get the weather in a city.")]), "weather right now") == [
        "get_weather"
    ]


def test_accents_do_not_matter() -> None:
    assert _names(ToolIndex([made("book_cafe", "Book a table in a café.")]), "CAFÉ") == ["book_cafe"]


def test_other_scripts_are_searched() -> None:
    index = ToolIndex([made("weather", "Показать погоду в городе."), made("money", "Перевести деньги.")])
    assert _sharing_terms(index, "погоду") == ["weather"]


def test_tools_that_score_the_same_are_ordered_by_name() -> None:
    same = [made(name, "Count sheep.") for name in ("b_one", "a_one", "c_one")]
    assert _names(ToolIndex(same), "count sheep") == ["a_one", "b_one", "c_one"]
    assert _names(ToolIndex(reversed(same)), "count sheep") == ["a_one", "b_one", "c_one"]


def test_what_is_not_allowed_takes_no_place(index: ToolIndex) -> None:
    without_git = index.search("show changed files", limit=2, allowed=lambda tool: tool.metadata.category != "git")
    assert len(without_git) == 2
    assert not any(match.tool.name.startswith("git") for match in without_git)


def test_a_limit_of_nothing_returns_nothing(index: ToolIndex) -> None:
    assert index.search("read file", limit=0) == []
    assert index.search("read file", limit=-1) == []


def test_a_changed_tool_is_found_by_its_new_text_and_no_longer_by_the_old() -> None:
    index = ToolIndex([made("lamp", "Switch the lamp."), made("door", "Open the door.")])
    index.update([made("lamp", "Play the trumpet."), made("door", "Open the door.")])
    assert _sharing_terms(index, "trumpet") == ["lamp"]
    assert _sharing_terms(index, "switch") == []


def test_similar_tools_are_near_and_different_ones_far() -> None:
    index = ToolIndex(
        [
            made("get_weather", "Get the weather of a city."),
            made("fetch_weather", "Fetch the weather of a city."),
            made("send_email", "Send a message."),
        ]
    )
    assert index.similarity("get_weather", "fetch_weather") > 0.95
    assert index.similarity("get_weather", "send_email") == 0.0
    assert index.similarity("get_weather", "get_weather") == pytest.approx(1.0)
    assert index.neighbours("send_email") == set()


_subsets = st.lists(st.sampled_from(TOOLS), unique_by=lambda tool: tool.name, max_size=12)


@given(st.lists(_subsets, min_size=1, max_size=4), st.sampled_from([query for query, _ in QUERIES]))
def test_an_updated_index_answers_like_a_fresh_one(stages: list[list[Tool]], query: str) -> None:
    updated = ToolIndex()
    for stage in stages:
        updated.update(stage)
    fresh = ToolIndex(stages[-1])
    assert len(updated) == len(fresh)
    assert _scores(updated, query) == pytest.approx(_scores(fresh, query))


def _scores(index: ToolIndex, query: str) -> dict[str, float]:
    return {match.tool.name: match.score for match in index.search(query, limit=50)}


@given(st.text(max_size=60), st.integers(min_value=0, max_value=8))
def test_any_text_is_answered_within_the_limit_and_in_order(query: str, limit: int) -> None:
    matches = _INDEX.search(query, limit=limit)
    assert len(matches) <= limit
    assert matches == sorted(matches, key=lambda match: (-match.score, match.tool.name))


_INDEX = ToolIndex(TOOLS)


def test_a_thousand_tools_give_the_same_answer_every_time() -> None:
    copies = size(1_000, 5_000) // len(TOOLS) + 1
    many = [replace(tool, name=f"{tool.name}_{copy}") for copy in range(copies) for tool in TOOLS]
    index = ToolIndex(many)
    again = ToolIndex(reversed(many))
    for query, _ in QUERIES[:10]:
        assert _names(index, query) == _names(again, query)
