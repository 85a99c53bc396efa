"""Front matter: read without surprises, or refused with its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.files.front_matter import MAX_FRONT_MATTER, MAX_NESTING, FrontMatterError, split_front_matter


@pytest.mark.parametrize(
    ("text", "head", "body", "line"),
    [
        ("", {}, "", 1),
        ("# Title\n", {}, "# Title\n", 1),
        ("---\ntitle: x\n---\nbody\n", {"title": "x"}, "body\n", 4),
        ("---\ntitle: x\n---\n\nbody", {"title": "x"}, "body", 5),
        ("---\r\ntitle: x\r\n---\r\nbody\r\nmore", {"title": "x"}, "body\nmore", 4),
        ("\ufeff---\ntitle: x\n---\nbody", {"title": "x"}, "body", 4),
        ("---\n---\nbody", {}, "body", 3),
        ("---\n# a comment\n---\nbody", {}, "body", 4),
        ("---\ntitle: x\n---", {"title": "x"}, "", 3),
        ("---\ntitle: x\n--- \nbody", {"title": "x"}, "body", 4),
        ("---\nno end\nbody", {}, "---\nno end\nbody", 1),
        ("---", {}, "---", 1),
        ("----\na: b\n----\n", {}, "----\na: b\n----\n", 1),
        (" ---\na: b\n---\n", {}, " ---\na: b\n---\n", 1),
        ("---\n1: x\n---\n", {"1": "x"}, "", 4),
        ("---\na: b\n---\nx\n---\ny", {"a": "b"}, "x\n---\ny", 4),
    ],
)
def test_a_text_is_parted_into_head_and_body(text: str, head: dict[str, object], body: str, line: int):
    parted = split_front_matter(text)
    assert (parted.head, parted.body, parted.first_line) == (head, body, line)


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ("a: [1,", r"\(line 3\)"),
        ("a: b\nc: d: e", r"\(line 3\)"),
        ("\tb: c", r"\(line 2\)"),
        ("- a\n- b", "`key: value` lines"),
        ("just text", "`key: value` lines"),
        ("a: &x [1]\nb: c", r"\(line 2\): anchors and aliases are not allowed"),
        ("a: b\nc: *x", r"\(line 3\): anchors and aliases are not allowed"),
        ("a: &a [x]\nb: &b [*a,*a]\nc: &c [*b,*b]", "anchors"),
        ("a: !!python/object/apply:os.system ['true']", "tags such as"),
        ("a: !!int ____", "tags such as"),
        ("a: !!timestamp x", "tags such as"),
        ("a: " + "[" * 5_000, f"deeper than {MAX_NESTING} levels"),
        ("- " * 5_000 + "a", f"deeper than {MAX_NESTING} levels"),
        ("? " * 5_000, f"deeper than {MAX_NESTING} levels"),
        ("a: " + "{a: " * 2_000, f"deeper than {MAX_NESTING} levels"),
        ("a: 2024-99-99", "month must be in"),
        ("a: " + "9" * 5_000, "Invalid front matter"),
        ("a: \x00", "Invalid front matter"),
        ("a: \ud800", "Invalid front matter"),
        ("? [a]\n: b", "unhashable"),
        ("a: =", "Invalid front matter"),
        ("a: " + "x" * MAX_FRONT_MATTER, "longer than"),
    ],
)
def test_front_matter_that_cannot_be_used_is_refused(head: str, says: str):
    with pytest.raises(FrontMatterError, match=says):
        split_front_matter(f"---\n{head}\n---\nbody")


def test_brackets_stars_and_dashes_in_plain_values_are_fine():
    text = "---\ntags: [a, b]\nglob: '*.md'\nrange: 1 - 2 - 3\nwhat: R&D\nlist:\n" + "- x\n" * 100 + "---\n"
    assert split_front_matter(text).head["list"] == ["x"] * 100


@given(st.text(alphabet="ab:-[]{}#&*!?|>'\"%@`,\n \t0\u00e9", max_size=80))
def test_any_head_is_read_or_refused(head: str):
    try:
        parted = split_front_matter(f"---\n{head}\n---\nbody")
    except FrontMatterError:
        return
    assert all(isinstance(key, str) for key in parted.head)
