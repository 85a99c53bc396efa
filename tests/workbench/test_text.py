"""Texts: what is read is written back byte for byte, and what is no text is refused."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare import ErrorCode, ToolError
from trysquare.workbench.text import Text, decoded


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_text_is_written_back_as_it_was(content: str) -> None:
    data = content.encode()
    assert decoded(data, "a").encoded("a") == data


@given(st.binary())
def test_bytes_are_either_refused_or_written_back_as_they_were(data: bytes) -> None:
    try:
        text = decoded(data, "a")
    except ToolError as error:
        code = error.code
    else:
        assert text.encoded("a") == data
        return
    assert code == ErrorCode.FILE_NOT_ALLOWED


@given(st.text())
def test_lines_together_are_the_text(content: str) -> None:
    lines = Text(content=content).lines()
    assert "".join(lines) == content
    assert all(lines)


@pytest.mark.parametrize(
    ("data", "encoding", "content"),
    [
        (codecs.BOM_UTF8 + "ä".encode(), "utf-8", "ä"),
        (codecs.BOM_UTF16_LE + "ä".encode("utf-16-le"), "utf-16-le", "ä"),
        (codecs.BOM_UTF16_BE + "ä".encode("utf-16-be"), "utf-16-be", "ä"),
        (codecs.BOM_UTF32_LE + "ä".encode("utf-32-le"), "utf-32-le", "ä"),
        ("naïve".encode("latin-1"), "latin-1", "naïve"),
    ],
)
def test_encodings_are_detected_by_their_marks_and_preserved(data: bytes, encoding: str, content: str) -> None:
    text = decoded(data, "a")
    assert (text.encoding, text.content) == (encoding, content)
    assert text.having(content + "!").encoded("a").startswith(data)


@pytest.mark.parametrize(
    ("content", "newline"),
    [("a\r\nb\r\nc\n", "\r\n"), ("a\nb\r\nc\n", "\n"), ("a\rb\r", "\r"), ("a", "\n"), ("", "\n")],
)
def test_the_line_end_is_the_one_that_most_lines_have(content: str, newline: str) -> None:
    text = decoded(content.encode(), "a")
    assert text.newline == newline
    assert text.adapted("x\ny\r\nz") == f"x{newline}y{newline}z"


def test_a_letter_that_the_encoding_does_not_have_is_refused() -> None:
    text = decoded("naïve".encode("latin-1"), "a.txt")
    with pytest.raises(ToolError, match=r"latin-1.*'\\u4e2d'") as refused:
        text.having("中").encoded("a.txt")
    assert refused.value.code == ErrorCode.FILE_NOT_ALLOWED
