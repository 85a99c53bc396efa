"""The nearest name: what was probably meant."""

from __future__ import annotations

import pytest

from trysquare.core.text import closest_names


@pytest.mark.parametrize(
    ("name", "found"),
    [("limt", ["limit"]), ("LIMIT", ["limit"]), ("max-size", ["max_size"]), ("siz", ["max_size"]), ("zzz", [])],
)
def test_the_nearest_name_is_found(name: str, found: list[str]) -> None:
    assert closest_names(name, ["limit", "max_size"]) == found
