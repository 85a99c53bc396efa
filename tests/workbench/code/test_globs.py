"""Globs: the same answers as a plain reading of the rules, in a time that no pattern can stretch."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.core.errors import InvalidArguments
from trysquare.workbench.finding.globs import matches

NAMES = st.lists(st.text("ab.", min_size=1, max_size=3), min_size=1, max_size=4).map("/".join)
PATTERNS = st.lists(st.sampled_from(["a", "b", "*", "?", "**", "a*", "*.b", "."]), min_size=1, max_size=4).map("/".join)


def reference(path: str, pattern: str) -> bool:
    """The rules as one regular expression."""
    if "/" not in pattern:
        path = path.rpartition("/")[2]
        pattern = pattern.replace("**", "*")
    pieces = [
        "(?:[^/]+/)*" if piece == "**" else "".join(_part(letter) for letter in piece) + "/"
        for piece in pattern.split("/")
    ]
    return re.fullmatch("".join(pieces), path + "/") is not None


def _part(letter: str) -> str:
    return {"*": "[^/]*", "?": "[^/]"}.get(letter, re.escape(letter))


@given(NAMES, PATTERNS)
def test_a_path_fits_as_the_rules_say(path: str, pattern: str) -> None:
    assert matches(path, pattern) == reference(path, pattern)


def test_braces_stand_for_either() -> None:
    assert matches("src/a.tsx", "src/*.{js,ts{,x}}")
    assert not matches("src/a.py", "src/*.{js,ts}")


def test_a_pattern_that_stands_for_too_many_is_refused() -> None:
    with pytest.raises(InvalidArguments, match="more than 64 others"):
        matches("a", "{a,b}" * 12)


def test_no_pattern_takes_long() -> None:
    assert not matches("/".join(["a" * 100] * 30), "/".join(["**", "*a" * 30] * 30 + ["b"]))
