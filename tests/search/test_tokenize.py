"""Words and spelling: how texts become terms, and misspelt terms known ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.core.text import edit_distance
from trysquare.search.tokenize import Spelling, meaning, split_words, stem, terms


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("read_file", ["read", "file"]),
        ("read-file.now", ["read", "file", "now"]),
        ("readFileNow", ["read", "file", "now"]),
        ("HTTPServer2Go", ["http", "server", "2", "go"]),
        ("Café-Besuch", ["cafe", "besuch"]),
        ("", []),
    ],
)
def test_names_come_apart_at_marks_and_capitals(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@pytest.mark.parametrize(
    "forms",
    [
        ("delete", "deletes", "deleted", "deleting"),
        ("stop", "stops", "stopped", "stopping"),
        ("query", "queries"),
        ("box", "boxes"),
        ("file", "files"),
        ("deploy", "deployment", "deployments", "deploying"),
        ("class", "classes"),
    ],
)
def test_the_forms_of_a_word_meet(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


def test_words_that_say_nothing_are_no_terms() -> None:
    assert terms("please use this tool to find the file") == ["find", "fil"]


def test_words_that_mean_the_same_have_one_meaning() -> None:
    assert meaning(stem("fetch")) == meaning(stem("get"))
    assert meaning("trumpet") == "trumpet"


@given(st.text(max_size=40))
def test_any_text_has_terms_in_lower_case(text: str) -> None:
    assert all(term and term == term.lower() for term in terms(text))


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [("weather", "weather", 0), ("wether", "weather", 1), ("waether", "weather", 1), ("bat", "weather", 3)],
)
def test_slips_are_letters_left_out_added_changed_or_swapped(one: str, other: str, distance: int) -> None:
    assert edit_distance(one, other, 2) == distance


@given(st.text("abc", max_size=8), st.text("abc", max_size=8))
def test_slips_are_the_same_both_ways(one: str, other: str) -> None:
    assert edit_distance(one, other, 3) == edit_distance(other, one, 3)
    assert (edit_distance(one, other, 3) == 0) == (one == other)


def test_the_nearest_known_word_is_guessed() -> None:
    spelling = Spelling()
    for word in ("weather", "leather", "feather", "calendar"):
        spelling.add(word)
    assert spelling.guesses("wether")[0] == ("weather", 0.75)
    assert [term for term, _ in spelling.guesses("calender")] == ["calendar"]
    assert spelling.guesses("wea") == []


def test_a_forgotten_word_is_no_longer_guessed() -> None:
    spelling = Spelling()
    spelling.add("weather")
    spelling.remove("weather")
    assert spelling.guesses("wether") == []


def test_a_short_word_with_another_letter_is_another_word() -> None:
    spelling = Spelling()
    spelling.add("cost")
    spelling.add("search")
    assert spelling.guesses("coast") == []
    assert [term for term, _ in spelling.guesses("serch")] == ["search"]
