"""Parts of an answer: found without reading it, whatever a server sends."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from trysquare.gateway.results.parts import beginning_of, pieces_of, split, string_of, texts_of


def tokens(text: str) -> list[memoryview]:
    """A text as JSON strings: with every character beyond ASCII escaped, and as it is."""
    return [memoryview(json.dumps(text, ensure_ascii=ascii).encode()) for ascii in (True, False)]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(2, 60))
def test_the_beginning_of_a_string_is_a_beginning(text: str, size: int) -> None:
    for token in tokens(text):
        beginning, is_cut = beginning_of(token, size)
        assert text.startswith(beginning)
        assert is_cut == (beginning != text)
        # No more is lost than the one character that the cut went through.
        assert not is_cut or len(json.dumps(beginning + text[len(beginning)])) > size


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 60))
def test_the_pieces_of_a_string_are_the_string(text: str, size: int) -> None:
    for token in tokens(text):
        assert "".join(pieces_of(token, size)) == text


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_string_says_what_was_written(text: str) -> None:
    assert [string_of(token) for token in tokens(text)] == [text, text]


def test_a_string_with_half_a_character_or_broken_bytes_still_says_something() -> None:
    assert string_of(memoryview(b'"a\\ud800b"')) == "a?b"
    assert string_of(memoryview(b'"a\xffb"')) == "a\N{REPLACEMENT CHARACTER}b"
    assert beginning_of(memoryview(b'"' + b"\xff" * 50 + b'"'), 20)[1] is True


def test_an_answer_in_its_parts() -> None:
    body = json.dumps(
        {
            "content": [
                {"type": "text", "text": "hello"},
                {"type": "image", "data": "QUJD", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "a://b", "blob": "QQ==", "mimeType": "x/y"}},
                {"type": "resource", "resource": {"uri": "a://b", "text": "inside"}},
                {"type": "resource_link", "uri": "a://c", "name": "c"},
            ],
            "structuredContent": {"a": 1},
        }
    ).encode()
    parts = split(body)
    assert [part.kind for part in parts.blocks] == ["text", "image", "resource", "resource", "resource_link"]
    assert [string_of(part.data) for part in parts.blocks] == ["", "QUJD", "QQ==", "", ""]
    assert [part.mime_type for part in parts.blocks] == [None, "image/png", "x/y", None, None]
    assert [string_of(token) for token in texts_of(parts)] == ["hello", "inside"]
    assert json.loads(bytes(parts.structured)) == {"a": 1}


NAMES = st.sampled_from(["content", "type", "text", "data", "resource", "structuredContent", "mimeType", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner),
    max_leaves=30,
)


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_a_server_sends_has_parts(body: bytes) -> None:
    parts = split(body)
    assert 0 <= parts.readable_size <= len(body)
    assert all(isinstance(string_of(token), str) for token in texts_of(parts))
