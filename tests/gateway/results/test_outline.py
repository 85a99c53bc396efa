"""The outline of a JSON value: short whatever the value, and true of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.gateway.results.present import MAX_CHARACTERS, outline

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=50,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "bool"),
        (3, "int"),
        (0.5, "float"),
        ("x", "str"),
        ([], "[]"),
        ({}, "{}"),
        ([1, 2, 3], "[3 x int]"),
        ([1, "x", None], "[3 x int | str | null]"),
        ([1, "x", None, 0.5], "[4 x int | str | null | …]"),
        (
            {"total": 2, "rows": [{"id": 1, "tags": ["a"]}, {"id": 2, "tags": ["b"]}]},
            "{total: int, rows: [2 x {id: int, tags: [1 x str]}]}",
        ),
        ({"no name": 1}, "{'no name': int}"),
    ],
)
def test_the_outline_of_a_value(value: Any, expected: str) -> None:
    assert outline(value) == expected


def test_counts_of_a_value_that_was_cut_are_lower_bounds() -> None:
    assert outline({"rows": [1, 2]}, is_cut=True) == "{rows: [2+ x int], …}"
    assert outline([[1], [1, 2, 3]], is_cut=True) == "[2+ x [1 x int] | [3+ x int]]"


def test_many_names_are_counted() -> None:
    wide = {f"n{number}": 1 for number in range(30)}
    assert outline(wide).endswith("n23: int, … 6 more}")


@given(JSON)
def test_the_outline_of_any_value_is_short_and_one_line(value: Any) -> None:
    text = outline(value)
    assert 0 < len(text) <= MAX_CHARACTERS
    assert "\n" not in text


def test_a_value_too_wide_for_its_depth_is_outlined_less_deeply() -> None:
    value = {f"name_{number}": {f"inner_{other}": {"deep": [1]} for other in range(20)} for number in range(20)}
    text = outline(value)
    assert len(text) <= MAX_CHARACTERS
    assert text.startswith("{name_0: {…}, name_1: {…}")
