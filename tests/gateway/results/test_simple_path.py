"""Simple paths are followed in this process; every other one may take long, and goes to a worker."""

from __future__ import annotations

import pytest

from trysquare.gateway.results.query import is_simple


@pytest.mark.parametrize(
    "path", ["$", "$.a", "$.x_1.rows", "$['no name']", '$["a"]', "$[0]", "$[-5]", "$.rows[*].id", "$.*[12]"]
)
def test_a_simple_path_visits_each_part_once(path: str) -> None:
    assert is_simple(path)


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
def test_every_other_path_is_left_to_the_worker(path: str) -> None:
    assert not is_simple(path)
