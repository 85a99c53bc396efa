"""Contradictions: documents of one answer that cannot both be followed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.guide.contents import document
from trysquare.guide.contradictions import MAX_CONTRADICTIONS, Place, contradictions
from trysquare.guide.documents import DocumentId, read_document


def read(id: str, text: str):
    category, _, name = id.partition("/")
    return read_document(DocumentId(category=category, name=name), text)


def test_documents_of_one_topic_and_another_stance_disagree_with_both_places():
    one = read("a/one", "---\ntitle: One\ntopic: Indentation\nstance: tabs\n---\ntext")
    other = read("a/other", "---\ntopic: indentation\nstance: spaces\n---\ntext")
    (found,) = contradictions([one, other])
    assert (found.subject, found.rule) == ("indentation", "topic")
    assert found.places == (
        Place(document="a/one", line=3, text="topic: Indentation, stance: tabs"),
        Place(document="a/other", line=2, text="topic: indentation, stance: spaces"),
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"topic": "indent", "stance": "tabs"}, {"topic": "indent", "stance": "Tabs!"}),
        ({"topic": "indent", "stance": "tabs"}, {"topic": "quotes", "stance": "double"}),
        ({"topic": "indent"}, {"topic": "indent", "stance": "tabs"}),
        ({"stance": "tabs"}, {"stance": "spaces"}),
    ],
)
def test_documents_that_agree_or_do_not_say_are_left_alone(one: dict[str, str], other: dict[str, str]):
    assert contradictions([document("a/1", **one), document("a/2", **other)]) == []


@pytest.mark.parametrize(
    ("one", "other", "subject"),
    [
        ("Always use tabs.", "Never use tabs!", "use tabs"),
        ("- Use tabs", "* Do not use tabs", "use tabs"),
        ("Use `tabs`", "Avoid tabs", "use tabs"),
        ("You must write tests.", "1. don't write tests", "write tests"),
        ("We should log in UTC", "Agents should not log in UTC", "log in utc"),
        ("Prefer tabs", "No tabs", "use tabs"),
        ("Prefer to squash commits", "Don\u2019t ever squash commits", "squash commits"),
        ("**Always** use tabs", "__Never__ use **tabs**", "use tabs"),
        ("Please use tabs", "Avoid using tabs", "use tabs"),
    ],
)
def test_opposite_directions_are_found_in_the_text(one: str, other: str, subject: str):
    (found,) = contradictions([document("a/1", f"# Title\n\n{one}"), document("a/2", other)])
    assert (found.subject, found.rule) == (subject, "direction")
    assert [(place.document, place.line, place.text) for place in found.places] == [("a/1", 3, one), ("a/2", 1, other)]


def test_lines_are_those_of_the_file_and_not_of_what_follows_the_front_matter():
    one = read("a/1", "---\ntitle: x\n---\n\n# T\nAlways use tabs\n")
    other = read("a/2", "---\r\ntitle: x\r\n---\r\nNever use tabs\r\n")
    (found,) = contradictions([one, other])
    assert [place.line for place in found.places] == [6, 4]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Always use tabs", "Never use spaces"),
        ("Always test", "Never test"),
        ("He never use tabs", "Always use tabs"),
        ("Always use tabs", "```\nNever use tabs\n```"),
        ("Always use tabs", "~~~ text\n```\nNever use tabs\n~~~"),
        ("Always use tabs", "````\n```\nNever use tabs\n````"),
        ("Always use tabs", "```\nNever use tabs"),
        ("Nonever use tabs", "Always use tabs"),
    ],
)
def test_other_subjects_and_code_are_left_alone(one: str, other: str):
    assert contradictions([document("a/1", one), document("a/2", other)]) == []


def test_after_a_closed_fence_directions_count_again():
    assert contradictions([document("a/1", "```\nx\n```\nUse tabs"), document("a/2", "Never use tabs")])


def test_one_document_does_not_contradict_itself():
    assert contradictions([document("a/1", "Always use tabs\nNever use tabs")]) == []


def test_many_contradictions_are_cut_short():
    topics = [document(f"a/{n}", topic="t", stance=str(n)) for n in range(3_000)]
    lines = [document(f"b/{n}", "Use tabs" if n % 2 else "Never use tabs") for n in range(3_000)]
    assert len(contradictions(topics)) == len(contradictions(lines)) == MAX_CONTRADICTIONS
    assert contradictions([document(f"a/{n}", topic="t", stance="same") for n in range(3_000)]) == []


@given(st.lists(st.text(alphabet="aeNnoverus tb`~\n-*.!'\u2019", max_size=60), max_size=4))
def test_any_text_can_be_looked_through(texts: list[str]):
    found = contradictions([document(f"a/{n}", text) for n, text in enumerate(texts)])
    for each in found:
        assert each.places[0].document != each.places[1].document
        assert all(place.line >= 1 for place in each.places)
