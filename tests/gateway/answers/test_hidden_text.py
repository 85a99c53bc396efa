"""Hidden text: what a person cannot see is found and taken out; how people write stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.gateway.answers.hidden_text import cleaned_json, cleaned_text, hidden_kinds, may_hide, shown

_HIDDEN = [
    ("a\x00b", "control"),
    ("a\x1b[31mb", "control"),
    ("a\x7fb", "control"),
    ("a\x85b", "control"),
    ("a\x08b", "control"),
    ("a\u200bb", "zero-width"),
    ("a\u200db", "zero-width"),
    ("a\u2060b", "zero-width"),
    ("a\ufeffb", "zero-width"),
    ("a\u00adb", "zero-width"),
    ("a\u202eb", "bidirectional"),
    ("a\u2066b", "bidirectional"),
    ("a\U000e0041\U000e0042b", "tag"),
    ("a\ufe01\ufe02b", "selector"),
    ("a\U000e0100b", "selector"),
    ("a\u3164b", "filler"),
]
_WRITING = [
    "plain text\twith\nlines\r\n",
    "café “quotes” dots… °C «»",
    "👨‍👩‍👧 ❤️ 1️⃣ 🏳️‍🌈",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "می‌خواهم",
    "क्‍ष",
    "עברית\u200f!",
    "C:\\bin \\u202e \\b",
    "日本語",
]


@pytest.mark.parametrize(("text", "kind"), _HIDDEN)
def test_hidden_characters_are_found_named_and_taken_out(text: str, kind: str) -> None:
    assert hidden_kinds(text) == (kind,)
    assert cleaned_text(text) == "ab"
    assert "U+" in shown(text)


@pytest.mark.parametrize("text", _WRITING)
def test_what_people_write_stays(text: str) -> None:
    assert cleaned_text(text) == text
    assert hidden_kinds(text) == ()
    assert shown(text) == text


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize(("text", "kind"), _HIDDEN)
def test_json_is_cleaned_without_being_read(text: str, kind: str, ascii_only: bool) -> None:
    data = json.dumps({"deep": [{text: text}], "other": 1}, ensure_ascii=ascii_only).encode()
    assert may_hide(data)
    cleaned, count = cleaned_json(data)
    assert json.loads(cleaned) == {"deep": [{"ab": "ab"}], "other": 1}
    assert count > 0
    assert not cleaned_json(cleaned)[1]


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("text", _WRITING)
def test_json_without_hidden_characters_is_the_same_object(text: str, ascii_only: bool) -> None:
    data = json.dumps({"text": text}, ensure_ascii=ascii_only).encode()
    cleaned, count = cleaned_json(data)
    assert cleaned is data
    assert count == 0


def test_a_bit_of_another_encoding_does_not_stop_the_cleaning() -> None:
    cleaned, count = cleaned_json(b'{"a":"\xff \\u202e"}')
    assert (json.loads(cleaned), count) == ({"a": "\ufffd "}, 1)


_values = st.recursive(
    st.none() | st.integers() | st.text(st.characters(codec="utf-8"), max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(_values, st.booleans())
def test_cleaning_the_bytes_is_cleaning_the_texts(value: Any, ascii_only: bool) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", errors="surrogatepass")
    assert json.loads(cleaned_json(data)[0]) == _cleaned(value)
    if not may_hide(data):
        assert value == _cleaned(value)


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return cleaned_text(value)
    if isinstance(value, list):
        return [_cleaned(part) for part in value]
    return {cleaned_text(key): _cleaned(part) for key, part in value.items()} if isinstance(value, dict) else value


@given(st.text())
def test_cleaned_text_has_nothing_left_to_clean(text: str) -> None:
    cleaned = cleaned_text(text)
    assert len(cleaned) <= len(text)
