"""Simple paths lead where the library's JSONPaths lead."""

from __future__ import annotations

from typing import Any

import jsonpath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.gateway.results.query import follow, is_singular, simple_path

NAMES = st.sampled_from(["a", "b", "rows", "x_1", "no name"])
JSON = st.recursive(
    st.none() | st.integers(0, 9) | st.sampled_from(["", "text"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)
STEPS = st.one_of(
    NAMES.filter(str.isidentifier).map(lambda name: f".{name}"),
    NAMES.map(lambda name: f"['{name}']"),
    NAMES.map(lambda name: f'["{name}"]'),
    st.integers(-5, 5).map(lambda position: f"[{position}]"),
    st.sampled_from([".*", "[*]"]),
)


@given(JSON, st.lists(STEPS, max_size=4))
def test_a_simple_path_leads_where_the_library_leads(value: Any, steps: list[str]) -> None:
    path = "$" + "".join(steps)
    simple, other = simple_path(path), jsonpath.compile(path)
    assert simple is not None
    assert list(follow(simple, value)) == [match.obj for match in other.finditer(value)]
    assert isinstance(other, jsonpath.JSONPath)
    assert is_singular(simple) == other.singular_query()


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a",
        "$..a",
        "$[?@.a]",
        "$[1:2]",
        "$[a]",
        "$.a.",
        "$[1,2]",
        "$['a\\'']",
        "$ .a",
        "$[-0]",
        "$[01]",
        "$.ä",
        "$.1",
    ],
)
def test_every_other_path_is_left_to_the_library(path: str) -> None:
    assert simple_path(path) is None
