"""Edits as pure functions: exactly what was asked for changes, and the rest stays byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trysquare import ErrorCode, ToolError
from trysquare.core.errors import InvalidArguments
from trysquare.workbench.edits import append_text, insert_lines, replace_lines, replace_once
from trysquare.workbench.text import Text, decoded

LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=8), min_size=1, max_size=8)
ENDS = st.sampled_from(["\n", "\r\n"])


def text_of(content: str) -> Text:
    return decoded(content.encode(), "a.py")


@given(LINES, ENDS, st.booleans(), st.data())
def test_other_lines_stay_as_they_are(lines: list[str], end: str, closed: bool, data: st.DataObject) -> None:
    content = end.join(lines) + (end if closed else "")
    text = text_of(content)
    kept = text.lines()
    assume(kept)
    first = data.draw(st.integers(1, len(kept)))
    last = data.draw(st.integers(first, len(kept)))
    for changed in (replace_lines(text, first, last, "new\nlines", "a"), replace_lines(text, first, last, "", "a")):
        assert changed.content.startswith("".join(kept[: first - 1]))
        assert changed.content.endswith("".join(kept[last:]))
    inserted = insert_lines(text, first, "new", "a")
    assert inserted.lines()[first:] == kept[first - 1 :]


@given(LINES, ENDS, st.data())
def test_what_is_inserted_and_deleted_again_leaves_no_trace(lines: list[str], end: str, data: st.DataObject) -> None:
    text = text_of(end.join(lines) + end)
    at = data.draw(st.integers(1, len(text.lines()) + 1))
    assert replace_lines(insert_lines(text, at, "new", "a"), at, at, "", "a").content == text.content


def test_a_text_is_found_in_a_file_with_other_line_ends_and_takes_them_on() -> None:
    assert replace_once(text_of("a\r\nb\r\nc\r\n"), "a\nb", "x\ny\nz", "f").content == "x\r\ny\r\nz\r\nc\r\n"


def test_a_text_that_is_not_there_is_refused_with_the_nearest_line() -> None:
    with pytest.raises(ToolError) as refused:
        replace_once(text_of("import os\nretries = 1\n"), "retries  = 1", "x", "f.py")
    assert refused.value.code == ErrorCode.FILE_CONFLICT
    assert "`f.py`" in refused.value.message
    assert refused.value.message.endswith("2: retries = 1")


def test_a_text_that_occurs_more_than_once_is_refused_with_its_lines() -> None:
    with pytest.raises(ToolError) as refused:
        replace_once(text_of("a\nb\na\n"), "a", "x", "f.py")
    assert (refused.value.code, refused.value.fields) == (ErrorCode.FILE_CONFLICT, {"lines": [1, 3]})


@pytest.mark.parametrize(("first", "last"), [(0, 1), (2, 1), (1, 4), (4, 4)])
def test_lines_that_are_not_there_are_refused(first: int, last: int) -> None:
    with pytest.raises(InvalidArguments, match="has 3 lines"):
        replace_lines(text_of("a\nb\nc\n"), first, last, "x", "f.py")


def test_the_last_line_without_an_end_stays_without_one() -> None:
    assert replace_lines(text_of("a\nb"), 2, 2, "c", "f").content == "a\nc"
    assert replace_lines(text_of("a\nb\n"), 2, 2, "c", "f").content == "a\nc\n"


def test_what_is_appended_begins_a_line_of_its_own() -> None:
    assert append_text(text_of("a"), "b\n").content == "a\nb\n"
    assert append_text(text_of("a\r\nb\r\n"), "c\n").content == "a\r\nb\r\nc\r\n"
