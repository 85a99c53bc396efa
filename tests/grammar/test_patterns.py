"""Patterns: the regular expressions of schemas, read into what a string says."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.grammar.schema.reader import PATTERNS
from trysquare.grammar.text.regex import PatternRefused, read_pattern, says

KNOWN = [
    "^[a-z]+$", "a", "^a|b$", "^(ab|c){2,3}$", r"^\d{3}-\w*\s?$", "^[^a-c\\]]$", r"^.\.$", "^a*?b+?$", "^(?:x|y)z?$",
    r"^[\w.-]+@[\w-]+$", "^$", "", r"^\x41B$", "^(?P<n>a)b$".replace("P", ""), r"^[\b]?$", "^a{0}b$",
]  # fmt: skip
LETTERS = st.text(alphabet='abcxyz AB019_-.@]\n\t\\"', max_size=6)


@pytest.mark.parametrize("pattern", [pattern for pattern in KNOWN if "?<" not in pattern])
@given(text=LETTERS)
def test_a_text_fits_exactly_where_python_finds_the_pattern(pattern: str, text: str) -> None:
    # Python's `$` also stands before a last line break; ECMAScript's does not.
    found = re.search(pattern.replace("$", r"\Z"), text)
    assert says(read_pattern(pattern), text) is (found is not None)


def test_a_named_group_is_a_group() -> None:
    assert says(read_pattern("^(?<year>[0-9]{4})$"), "2024")


def test_a_point_stands_for_no_line_break_of_either_dialect() -> None:
    expression = read_pattern("^.$")
    assert says(expression, "é")
    assert not any(says(expression, text) for text in ("\n", "\r", "\u2028", "\u2029"))


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)", "(?!a)", "(?<=a)b", r"(a)\1", r"\bword\b", r"\W", r"\D", r"\p{L}", "a++", "(?i)a", "[[:alpha:]]", "(a",
        "a)", "[a", "[]", "[z-a]", "a{3,1}", "a{99999}", "*a", "(^a)", "a$b", "{2}", "\\", r"\u12", r"[\d-z]",
        r"\ud800",
    ],
)  # fmt: skip
def test_what_only_a_backtracking_engine_knows_or_nobody_is_refused(pattern: str) -> None:
    with pytest.raises(PatternRefused):
        read_pattern(pattern)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", "2024-02-29", "2023-02-29"),
        ("date", "2000-02-29", "1900-02-29"),
        ("date", "2024-12-31", "2024-04-31"),
        ("time", "23:59:59.5Z", "24:00:00Z"),
        ("date-time", "2024-01-31T00:00:00+01:00", "2024-01-31 00:00:00"),
        ("uuid", "9b2e0c1a-0000-4abc-8def-0123456789ab", "9b2e0c1a00004abc8def0123456789ab"),
        ("ipv4", "255.0.10.1", "256.0.0.1"),
        ("email", "first.last+tag@example.org", "first last@example.org"),
        ("hostname", "a-b.example", "-a.example"),
        ("uri", "https://example.org/a?b=c#d", "not a uri"),
        ("uri-reference", "../a%20b", "a b"),
    ],
)
def test_a_format_is_a_pattern(name: str, good: str, bad: str) -> None:
    expression = read_pattern(PATTERNS[name])
    assert says(expression, good)
    assert not says(expression, bad)
