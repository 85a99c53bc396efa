"""Pages of a document: joined in order they are the whole, and each keeps to its size."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from trysquare.middleware.json_pages import Page, Path, paginate, pointer

SCALARS = st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=60)
DOCUMENTS = st.dictionaries(
    st.text(max_size=6),
    st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=6), inner, max_size=6),
        max_leaves=40,
    ),
    max_size=5,
)


def joined(pages: list[Page]) -> Any:
    """Put pages together by the rule that the module states."""
    whole: Any = pages[0].part
    for page in pages[1:]:
        assert page.continues is not None
        whole = _merged(whole, page.part, page.continues)
    return whole


def _merged(whole: Any, part: Any, continues: Path) -> Any:
    """`part` goes on where `whole` ended; `continues` is what of it was begun, seen from here."""
    if isinstance(whole, str):
        return whole + part
    if isinstance(whole, list):
        if not continues:
            return whole + part
        assert continues[0] == len(whole) - 1
        return [*whole[:-1], _merged(whole[-1], part[0], continues[1:]), *part[1:]]
    merged = dict(whole)
    for key, value in part.items():
        begun = bool(continues) and continues[0] == key
        assert begun == (key in whole)
        merged[key] = _merged(whole[key], value, continues[1:]) if begun else value
    return merged


@given(DOCUMENTS, st.integers(1, 200), st.integers(1, 400))
def test_pages_joined_in_order_are_the_document(document: Any, head: int, page: int) -> None:
    assert joined(paginate(document, head=head, page=page)) == document


@given(DOCUMENTS, st.integers(1, 200), st.integers(40, 400))
def test_pages_survive_being_kept_as_json(document: Any, head: int, page: int) -> None:
    pages = paginate(document, head=head, page=page)
    kept = json.loads(json.dumps([{"part": one.part, "continues": one.continues} for one in pages]))
    again = [Page(part=one["part"], continues=one["continues"] and tuple(one["continues"])) for one in kept]
    assert joined([*again[:1], *(Page(part=one.part, continues=one.continues or ()) for one in again[1:])]) == document


@given(st.text(max_size=3000), st.integers(1, 100), st.integers(1, 500))
def test_pages_of_a_text_are_exactly_the_text(text: str, head: int, page: int) -> None:
    pages = paginate({"value": text}, head=head, page=page)
    assert "".join(one.part["value"] for one in pages) == text
    assert all(len(one.part["value"]) <= max(head, page) for one in pages)


@given(st.lists(st.text(max_size=50), max_size=200))
def test_items_that_fit_a_page_are_never_cut(items: list[str]) -> None:
    pages = paginate({"value": items}, head=100, page=400)
    assert [item for one in pages for item in one.part.get("value", [])] == items


@given(DOCUMENTS, st.integers(80, 200))
def test_a_page_is_not_much_longer_than_it_may_be(document: Any, size: int) -> None:
    # Names and the containers around a part are not cut, so they come on top.
    for one in paginate(document, head=size, page=size):
        assert len(json.dumps(one.part, ensure_ascii=False)) <= 3 * size + 300


def test_small_entries_are_not_hidden_behind_a_large_one() -> None:
    pages = paginate({"value": {"stdout": "line\n" * 100, "exit_code": 0}}, head=60, page=300)
    assert pages[0].part == ({"value": {"exit_code": 0, "stdout": "line\n" * 9}})


def test_a_text_is_cut_after_a_line_where_one_ends_near() -> None:
    pages = paginate({"value": "one\ntwo\nthree\n"}, head=10, page=10)
    assert [one.part["value"] for one in pages] == ["one\ntwo\n", "three\n"]


def test_a_page_tells_what_it_goes_on_with() -> None:
    pages = paginate({"value": [{"text": "a" * 30}, {"text": "b" * 30}]}, head=20, page=45)
    assert [(one.part, one.continues and pointer(one.continues)) for one in pages] == snapshot(
        [
            ({"value": [{"text": "aaaaaaaaaaaaaaaaaaaa"}]}, None),
            ({"value": [{"text": "aaaaaaaaaa"}]}, "/value/0/text"),
            ({"value": [{"text": "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"}]}, "/value"),
        ]
    )


def test_a_pointer_escapes_what_would_be_misread() -> None:
    assert pointer(("a/b", 3, "c~d")) == "/a~1b/3/c~0d"
