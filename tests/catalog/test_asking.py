"""Asking: what a request is about, and what is said only beside it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.relevance import made
from tests.gateway.requests.reading import read_requests
from trysquare.catalog.asking import Asked, asked
from trysquare.catalog.everyday import said_as, said_nearly, sayings
from trysquare.catalog.search import SearchIndex
from trysquare.catalog.words import split_words, stem


def _of(query: str, word: str) -> Asked:
    return next(one for one in asked(query) if word in one.own)


def _found(query: str) -> list[str]:
    index = SearchIndex(
        [
            made("get_forecast", "Get the weather forecast of a city."),
            made("create_refund", "Refund a payment."),
            made("list_events", "List the events of a calendar."),
            made("read_file", "Read a file."),
            made("send_message", "Send a message."),
        ]
    )
    return [match.tool.name for match in index.search(query)]


@pytest.mark.parametrize(
    ("query", "tool"),
    [
        ("do I need an umbrella", "get_forecast"),
        ("shall I take an umbrela with me", "get_forecast"),
        ("she wants her money back", "create_refund"),
        ("what do I have on tomorrow", "list_events"),
        ("show me notes.txt", "read_file"),
        ("let Anna know that it is done", "send_message"),
        ("drop him a line", "send_message"),
    ],
)
def test_what_people_say_leads_to_the_tool_that_says_it_otherwise(query: str, tool: str) -> None:
    assert _found(query)[:1] == [tool]


@pytest.mark.parametrize("query", ["play some jazz", "order a pizza for tomorrow", "water the plants"])
def test_a_request_that_no_tool_is_about_finds_nothing(query: str) -> None:
    assert _found(query) == []


def test_names_times_and_small_talk_count_little() -> None:
    query = "please send Anna three parcels on Monday"
    assert _of(query, "anna").unknown_weight < 0.2
    assert _of(query, "monday").is_slight
    assert _of(query, "thre").is_slight
    assert _of(query, "parcel").unknown_weight > 0.5
    assert _of(query, "parcel").elsewhere_weight > 1


def test_what_follows_a_preposition_counts_less_than_what_is_asked_for() -> None:
    query = "repair the bicycle in the garage"
    assert _of(query, "garag").weight < _of(query, "bicycl").weight


def test_a_word_with_a_hyphen_is_known_as_one() -> None:
    assert _of("when is the stand-up", "standup").stands_for


def test_a_saying_keeps_its_own_words() -> None:
    [one] = asked("money back")
    assert one.own == (stem("money"), stem("back"))
    assert one.stands_for[0].about == (stem("refund"),)


def test_a_misspelt_word_means_what_the_right_one_means() -> None:
    assert said_nearly("umbrela") == said_as(("umbrella",))
    assert said_nearly("zzzzzz") == ()


def test_no_saying_was_taken_from_the_requests_that_are_only_measured() -> None:
    sides: dict[bool, set[tuple[str, ...]]] = {True: set(), False: set()}
    for request in read_requests():
        stems = [stem(word) for word in split_words(request.text)]
        for length in range(2, 6):
            sides[request.is_held_out] |= {tuple(stems[at : at + length]) for at in range(len(stems) - length + 1)}
    only_measured = sides[True] - sides[False]
    assert [said for said in sayings() if len(said) > 1 and said in only_measured] == []


@given(st.text(max_size=80))
def test_any_text_is_taken_apart(query: str) -> None:
    found = asked(query)
    assert len({one.term for one in found}) == len(found)
    assert all(one.weight > 0 and one.unknown_weight > 0 for one in found)


@pytest.mark.parametrize(
    ("parted", "whole"),
    [
        ("call the big party off", "call off the big party"),
        ("let my old neighbours know", "let know my old neighbours"),
    ],
)
def test_a_saying_is_known_with_words_in_between(parted: str, whole: str) -> None:
    assert {one.term for one in asked(parted)} == {one.term for one in asked(whole)}
    assert any(one.is_saying for one in asked(parted))


def test_a_saying_with_too_many_words_in_between_is_none() -> None:
    assert not any(one.is_saying for one in asked("call aunt Marianne about seven green elephants off"))


def test_a_saying_is_known_in_its_short_form() -> None:
    assert asked("what's on the agenda") == asked("what is on the agenda")


def test_what_shall_be_told_counts_little() -> None:
    query = "tell the crew that the elephant escaped"
    assert _of(query, "elephant").is_slight
    assert not _of("find the elephant", "elephant").is_slight
    assert not _of("who said that the elephant escaped", "elephant").is_slight


def test_what_is_quoted_counts_little() -> None:
    assert _of('search for "elephant" there', "elephant").is_slight
    assert not _of('"elephant"', "elephant").is_slight


def test_a_day_and_an_hour_make_an_appointment() -> None:
    assert _found("zorbing on Tuesday at three") == ["list_events"]
    assert _found("zorbing at three") == []


@pytest.mark.parametrize(
    ("query", "word", "is_firm"),
    [
        ("water the tulips", "tulips", True),
        ("cancel the yoga class", "yoga", False),
        ("find the mail about the guitar", "guitar", False),
        ("the guitar should cost forty euros", "guitar", False),
        ("tell the crew the printer is broken", "printer", False),
    ],
)
def test_only_the_thing_itself_tells_firmly_that_a_request_is_about_something_else(
    query: str, word: str, is_firm: bool
) -> None:
    assert _of(query, stem(word)).is_firm_elsewhere == is_firm


def test_a_deed_that_no_tool_does_is_known_by_its_place() -> None:
    assert _of("frobnicate the file", "frobnicat").is_deed
    assert not _of("delete the file", "delet").is_deed
    assert not _of("frobnicate", "frobnicat").is_deed
    assert _found("translate the message") == _found("frobnicate the garden") == []


def test_what_is_beside_a_thing_that_a_tool_is_about_counts_little() -> None:
    assert _found("send a message about the chess club")[:1] == ["send_message"]
    assert _found("play chess with me") == []


def test_a_building_is_no_build() -> None:
    assert stem("building") != stem("build")
    assert stem("buildings") != stem("builds")
    assert stem("trained") == stem("train") != stem("training")
