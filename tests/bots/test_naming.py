"""Names: numbers in front order and are no part of the name; tools follow from names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.bots.definition.folder import Label, clean_name, is_name, read_label, tool_names

PIECES = st.lists(st.text("ab7", min_size=1, max_size=4), max_size=3)
WORDS = st.tuples(st.sampled_from("abz"), PIECES).map(lambda word: "_".join((word[0], *word[1])))


@given(st.integers(0, 10**9), WORDS)
def test_digits_before_an_underscore_are_a_number_and_the_rest_is_the_name(number: int, word: str) -> None:
    assert read_label(f"{number}_{word}") == Label(raw=f"{number}_{word}", name=word, number=number)


@given(WORDS)
def test_a_name_without_a_number_stays_whole(word: str) -> None:
    assert read_label(word) == Label(raw=word, name=word)


@given(st.integers(0, 999), WORDS)
def test_digits_that_belong_to_a_word_are_no_number(number: int, word: str) -> None:
    assert clean_name(f"{number}{word}") == f"{number}{word}"


@given(st.text(max_size=30))
def test_a_name_is_never_empty_unless_the_folder_is_and_only_a_number_is_taken_off(raw: str) -> None:
    label = read_label(raw)
    taken = raw[: len(raw) - len(label.name)]
    assert raw.endswith(label.name)
    assert bool(label.name) == bool(raw)
    assert taken == "" or (taken[-1] == "_" and taken[:-1].isdigit() and int(taken[:-1]) == label.number)


@given(st.lists(st.tuples(st.none() | st.integers(0, 99), WORDS), unique=True))
def test_the_order_is_by_number_then_name_and_what_has_no_number_comes_last(
    parts: list[tuple[int | None, str]],
) -> None:
    labels = [read_label(word if number is None else f"{number}_{word}") for number, word in parts]
    ordered = sorted(labels, key=lambda label: label.order)
    expected = sorted(parts, key=lambda part: (part[0] is None, part[0] or 0, part[1]))
    assert [(label.number, label.name) for label in ordered] == expected


@pytest.mark.parametrize(
    ("raw", "name"),
    [("1_shape", "shape"), ("2fa_login", "2fa_login"), ("10_2fa_login", "2fa_login"), ("1_", "1_"), ("1_2_x", "2_x")],
)
def test_a_prefix_is_cut_once_and_only_where_something_is_left(raw: str, name: str) -> None:
    assert clean_name(raw) == name


@pytest.mark.parametrize("name", ["shape", "2fa_login", "a_b2"])
def test_names_are_small_letters_digits_and_single_underscores(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize("name", ["", "Shape", "a__b", "_a", "a_", "a-b", "a b", "größe", "a\n"])
def test_other_names_are_refused(name: str) -> None:
    assert not is_name(name)


@given(st.lists(WORDS, unique=True, max_size=6), st.lists(WORDS, unique=True, max_size=6))
def test_there_are_three_tools_and_one_for_each_behavior_and_for_each_of_its_actions(
    behaviors: list[str], actions: list[str]
) -> None:
    names = list(tool_names("bot", dict.fromkeys(behaviors, actions)))
    assert len(names) == 3 + len(behaviors) + len(behaviors) * len(actions)


def test_tools_are_named_after_bot_behavior_and_action() -> None:
    assert [tool.name for tool in tool_names("story_bot", {"shape": ["gather_context"]})] == [
        "story_bot_tool",
        "story_bot_close_current_action",
        "story_bot_restart_server",
        "story_bot_shape_tool",
        "story_bot_shape_gather_context",
    ]
