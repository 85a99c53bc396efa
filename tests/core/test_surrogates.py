"""Half characters are replaced, and nothing else is touched."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trysquare.core.text import encodable, encodable_value, is_encodable

half = st.integers(0xD800, 0xDFFF).map(chr)
values = st.recursive(
    st.none() | st.integers() | st.text() | half,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | half, inner, max_size=3),
    max_leaves=8,
)


@given(st.text())
def test_whole_text_stays_as_it_is(text: str) -> None:
    assert is_encodable(text)
    assert encodable(text) == text


@given(st.lists(st.text(max_size=3) | half))
def test_text_with_halves_can_be_encoded_afterwards(parts: list[str]) -> None:
    assert is_encodable(encodable("".join(parts)))


def test_two_halves_that_belong_together_become_their_character() -> None:
    assert encodable("\ud83d\ude00") == "😀"
    assert encodable("a\ud83db") == "a�b"


@given(values)
def test_a_value_can_be_encoded_afterwards_in_keys_as_well(value: Any) -> None:
    json.dumps(encodable_value(value), ensure_ascii=False).encode()
