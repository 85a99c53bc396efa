"""Globs: the same results as a plain reading of the rules, in linear time for every pattern."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.core.errors import InvalidArguments
from trysquare.files.globs import compile_glob, file_matches, is_under, matches, path_matches

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
    assert file_matches(path, pattern) == reference(path, pattern)


def test_braces_stand_for_either() -> None:
    assert file_matches("src/a.tsx", "src/*.{js,ts{,x}}")
    assert not file_matches("src/a.py", "src/*.{js,ts}")


def test_a_pattern_with_too_many_alternatives_is_refused() -> None:
    with pytest.raises(InvalidArguments):
        file_matches("a", "{a,b}" * 12)


MIXED = st.text("ab/*?", min_size=1, max_size=8).filter(lambda text: "//" not in text and text.strip("/") == text)


@given(NAMES, MIXED)
def test_a_path_matches_from_its_start_with_stars_anywhere(path: str, pattern: str) -> None:
    assert path_matches(path, pattern) == (re.fullmatch(_plain(pattern), path) is not None)


def _plain(pattern: str) -> str:
    """The rules with backtracking: `**` as a segment is any number of segments, elsewhere it is any text."""
    whole = {
        r"/\*\*+\Z": "(?:/.*)?",
        r"(?:^|(?<=/))\*\*+/": "(?:[^/]+/)*",
        r"\*\*+": ".*",
        r"\*": "[^/]*",
        r"\?": "[^/]",
    }
    found = re.compile("|".join(f"({each})" for each in whole))
    texts = list(whole.values())
    if re.fullmatch(r"\*\*+", pattern):
        return ".*"
    return found.sub(lambda match: texts[(match.lastindex or 1) - 1], pattern.replace(".", r"\."))


@given(st.text("ab/", max_size=6), st.text("ab/*?", max_size=8))
def test_in_a_name_a_star_is_any_text(name: str, pattern: str) -> None:
    plain = re.sub(r"\*+", ".*", pattern).replace("?", ".")
    assert matches(name, pattern) == (re.fullmatch(plain, name) is not None)


@pytest.mark.parametrize(
    ("name", "pattern", "fits"),
    [
        ("b", "[abc]", True), ("d", "[a-c]", False), ("d", "[!a-c]", True), ("]", "[]]", True), ("a", "[z-a]", False),
        ("x", "[!z-a]", True), ("[", "[", True), ("a/b", "a[!x]b", False), ("a/b", "a[.-0]b", False),
        ("-", "[a-]", True),
    ],
)  # fmt: skip
def test_brackets_are_a_class_of_characters_within_a_segment(name: str, pattern: str, fits: bool) -> None:
    assert (compile_glob(pattern, extended=True).fullmatch(name) is not None) is fits


def test_in_a_policy_brackets_and_braces_are_literal() -> None:
    assert path_matches("app/[id]/page.tsx", "app/[id]/*")
    assert not path_matches("app/i/page.tsx", "app/[id]/*")
    assert matches("[ -f x ]", "[ -f * ]")
    assert not matches("a", "{a,b}")
    assert is_under("App/[ID]/secret.txt", ["app/[id]/"])


@pytest.mark.parametrize("pattern", ["docs/**", "docs/**/**", "./docs/", "Docs", "**/docs"])
def test_a_denied_directory_is_denied_with_all_below_it(pattern: str) -> None:
    assert is_under("docs", [pattern])
    assert is_under("docs/a/b.md", [pattern])
    assert not is_under("docs2/a", [pattern])


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("/".join(["a" * 100] * 30), "/".join(["**", "*a" * 30] * 30 + ["b"])),
        ("a" * 4000 + "c", "**a" * 40 + "b"),
        ("a/" * 2000 + "c", "**/a/" * 40 + "b"),
        ("a" * 4000 + "c", "**a*a*a**a*a" * 10 + "b"),
    ],
)
def test_no_pattern_takes_long(path: str, pattern: str) -> None:
    assert not file_matches(path, pattern)
    assert not path_matches(path, pattern)
    assert not matches(path, pattern)
