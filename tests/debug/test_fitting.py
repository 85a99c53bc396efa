"""Answers brought down to a number of tokens."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trysquare.core.result import dump_json
from trysquare.core.tokens import count_tokens
from trysquare.debug.responses import fit_tokens

TEXTS = st.text(max_size=40)
VALUES = st.recursive(
    st.one_of(st.none(), st.integers(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=6), st.dictionaries(TEXTS, inner, max_size=6)),
)
DATA: st.SearchStrategy[dict[str, Any]] = st.dictionaries(TEXTS, VALUES, max_size=6)


def tokens(data: object) -> int:
    return count_tokens(dump_json(data))


@given(DATA, st.integers(20, 400))
def test_what_fits_is_left_alone_and_what_does_not_says_so(data: dict[str, Any], limit: int) -> None:
    made = fit_tokens(data, limit)
    if tokens(data) <= limit:
        assert made == data
    else:
        assert made["truncated"] is True
        assert tokens(made) <= tokens({**data, "truncated": True})


@given(st.integers(1_000, 200_000), st.sampled_from(["x", "word ", "\u00e9\u4e2d"]), st.integers(100, 800))
def test_a_huge_text_in_a_small_answer_is_brought_within_the_limit(times: int, piece: str, limit: int) -> None:
    made = fit_tokens({"summary": "It failed.", "values": {"text": piece * times, "count": 3}}, limit)
    assert tokens(made) <= limit + 10
    assert (made["summary"], made["values"]["count"]) == ("It failed.", 3)


def test_a_long_list_keeps_its_beginning() -> None:
    made = fit_tokens({"frames": [{"line": number} for number in range(5_000)]}, 200)
    assert [each["line"] for each in made["frames"]] == list(range(len(made["frames"])))
    assert 0 < len(made["frames"]) < 100
