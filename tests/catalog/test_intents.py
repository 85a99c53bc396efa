"""Intents: what is to be done decides between tools that are about the same."""

from __future__ import annotations

import pytest

from tests.catalog.relevance import made
from trysquare.catalog.intents import Intent, agreement, intents_of_request, intents_of_tool
from trysquare.catalog.search import SearchIndex


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("scrap the appointment", "delete_event"),
        ("when is the appointment", "get_event"),
        ("postpone the appointment", "update_event"),
        ("arrange an appointment", "create_event"),
    ],
)
def test_the_tool_that_does_what_is_to_be_done_comes_first(query: str, first: str) -> None:
    names = ("create_event", "delete_event", "get_event", "update_event")
    index = SearchIndex([made(name, "An event of the calendar.") for name in names])
    assert index.search(query)[0].tool.name == first


def test_a_tool_that_removes_comes_last_where_nobody_asks_for_it() -> None:
    index = SearchIndex([made(name, "An event of the calendar.") for name in ("cancel_event", "make_event")])
    assert [match.tool.name for match in index.search("lunch")] == ["make_event", "cancel_event"]


def test_the_first_verb_of_a_name_tells_what_a_tool_does() -> None:
    assert intents_of_tool(["delete", "new", "messages"]) == {Intent.REMOVE}
    assert intents_of_tool(["geocode"]) == frozenset()


def test_a_request_without_any_known_verb_asks_for_nothing_in_particular() -> None:
    assert intents_of_request(["umbrella"]) == frozenset()
    assert agreement(frozenset(), frozenset({Intent.LOOK})) == 1.0


def test_the_other_tools_of_a_server_speak_for_a_tool() -> None:
    index = SearchIndex(
        [
            made("alpha__send", "Send a letter."),
            made("alpha__stamp", "Buy a stamp."),
            made("beta__send", "Send a letter."),
        ]
    )
    scores = {match.tool.name: match.score for match in index.search("send letter stamp")}
    assert scores["alpha__send"] > scores["beta__send"]
