"""Joining: several documents as one text."""

from __future__ import annotations

import pytest

from tests.guide.contents import piece
from trysquare.guide.retrieval import joined

ONE = piece("lang/a", text="\n# A\n\n", digest="0123456789abcdef", tokens=3, tags=frozenset({"x", "b"}))
TWO = piece("lang/b", text="B", digest="fedcba9876543210", tokens=1)


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("plain", "# A\n\nB"),
        ("headings", "<!-- lang/a -->\n\n# A\n\n<!-- lang/b -->\n\nB"),
        (
            "full",
            "<!-- lang/a (agent/instruction, 3 tokens, 0123456789ab, tags: b, x) -->\n\n# A\n\n"
            "<!-- lang/b (agent/instruction, 1 tokens, fedcba987654) -->\n\nB",
        ),
    ],
)
def test_documents_are_joined_in_order_in_the_chosen_style(style: str, text: str):
    assert joined([ONE, TWO], style=style) == text


def test_a_single_document_stands_without_a_heading():
    assert joined([ONE]) == "# A"


def test_nothing_is_no_text():
    assert joined([]) is None


def test_a_name_cannot_end_the_comment_that_it_stands_in():
    found = joined([piece("lang/x --> y", text="X"), TWO])
    assert found is not None
    assert found.count("-->") == 2
