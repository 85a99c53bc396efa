"""Expressions: any text is read to a value or to an error with a place."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.guide.reference_parser import Plain, read_plainly
from tests.support import size
from trysquare.guide.expression import (
    MAX_LENGTH,
    MAX_OPERANDS,
    Expression,
    ExpressionError,
    Named,
    Tagged,
    parse_expression,
    with_pattern,
)

PIECES = [
    "lang", "docs", "a", "-", "--", "&", "#", "/", "+", ",", " ", "\t", "\n", "python", "*", "?", "[a-z]", "[", "..",
    "../", ".md", "%2e", "\0", "é", "\u3000", "\u2028", "\x1c", "\ud800", "\U0001d6fc", "\u202e", "\ufeff", "\\",
    "\"", "'",
    "`",
    "{{", ":", ";", "~", "#draft", "lang/python", "lang/py*", "a & b", "- a", "-#x", "guidelines", "0", "\uff0c",
    "\u2215",
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(max_size=60)


@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        ("lang/python+rust,guide", "lang/python+rust, guide"),
        (" lang / python ", "lang/python"),
        ("lang/py*", "lang/py*"),
        ("lang/+", "lang"),
        ("lang/", "lang"),
        ("a,,b,", "a, b"),
        ("lang/../../*", "lang/../../*"),
        ("lang/python.mustache", "lang/python.mustache"),
        ("lang/backend/python", "lang/backend/python"),
        ("lang/ a + b ", "lang/a+b"),
        ("lang,-lang/draft*", "lang, -lang/draft*"),
        ("- #draft, lang", "-#draft, lang"),
        ("lang & #web", "lang & #web"),
        ("# two words ", "#two words"),
    ],
)
def test_a_text_is_read_as_its_parts(text: str, read_as: str):
    assert str(parse_expression(text)) == read_as


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        (",,", 0, "empty"),
        ("", 0, "empty"),
        (" \n ", 0, "empty"),
        ("/x", 0, "before `/` is missing"),
        ("lang, /x", 6, "before `/` is missing"),
        ("lang &", 6, "missing"),
        ("lang & & x", 6, "missing"),
        ("a,-", 3, "missing"),
        ("a, #", 4, "tag after `#` is missing"),
        ("-lang", 0, "only excludes"),
        ("a" * (MAX_LENGTH + 1), MAX_LENGTH, "longer than"),
        (",".join("a" for _ in range(MAX_OPERANDS + 1)), 0, "more than"),
        ("a/" + "+".join("b" for _ in range(MAX_OPERANDS + 1)), 0, "more than"),
    ],
)
def test_a_text_that_is_no_expression_is_refused_with_its_place(text: str, position: int, says: str):
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)
    assert caught.value.position == position
    assert says in caught.value.message
    assert f"at character {position + 1}" in caught.value.message


def test_a_pattern_as_second_argument_equals_one_in_the_expression():
    assert str(with_pattern(parse_expression("lang"), "python")) == str(parse_expression("lang/python"))
    assert str(with_pattern(parse_expression("a,b"), "x+y")) == "a/x+y, b/x+y"


def test_an_empty_pattern_changes_nothing():
    assert with_pattern(parse_expression("a/x,b"), " + ") == parse_expression("a/x,b")


def test_a_pattern_leaves_tags_as_they_are():
    assert str(with_pattern(parse_expression("a & #web"), "x")) == "a/x & #web"


def test_a_pattern_is_refused_where_a_part_has_its_own():
    with pytest.raises(ExpressionError, match="pattern") as caught:
        with_pattern(parse_expression("b,a/x"), "y")
    assert caught.value.position == 2
    assert "`a`" in (caught.value.instruction or "")


@pytest.mark.parametrize("pattern", ["a,b", "a&b"])
def test_a_pattern_cannot_smuggle_further_parts_in(pattern: str):
    with pytest.raises(ExpressionError, match="cannot hold") as caught:
        with_pattern(parse_expression("lang"), pattern)
    assert caught.value.position == 1


@pytest.mark.parametrize("text", ["lang/c??", "lang/a?b?c", "lang/plain"])
def test_one_document_can_always_be_asked_for(text: str):
    assert parse_expression(text).parts[0].operands[0] == Named(name="lang", patterns=(text.removeprefix("lang/"),))


@hypothesis_settings(max_examples=size(1_000, 20_000))
@given(texts)
@example("-")
@example("a&")
@example("#\u3000")
def test_the_parser_agrees_with_the_plain_reading(text: str):
    assert _plain(text) == read_plainly(text)


@hypothesis_settings(max_examples=size(1_000, 20_000))
@given(texts)
def test_an_expression_written_out_is_read_back_as_the_same(text: str):
    parsed = _parsed(text)
    if isinstance(parsed, Expression):
        assert _without_places(parse_expression(str(parsed))) == _without_places(parsed)


def test_no_text_made_of_the_grammar_crashes_the_parser():
    source = random.Random(20_260)
    seen = {"expression": 0, "error": 0}
    for _ in range(size(10_000, 100_000)):
        text = "".join(source.choices(PIECES, k=source.randint(0, 12)))
        outcome = _parsed(text)
        if isinstance(outcome, ExpressionError):
            assert 0 <= outcome.position <= len(text)
            seen["error"] += 1
        else:
            assert _plain(text) == read_plainly(text)
            assert all(0 <= operand.position < len(text) for part in outcome.parts for operand in part.operands)
            seen["expression"] += 1
    assert min(seen.values()) > 1_000


def _parsed(text: str) -> Expression | ExpressionError:
    try:
        return parse_expression(text)
    except ExpressionError as error:
        return error


def _plain(text: str) -> list[tuple[bool, list[Plain]]] | None:
    parsed = _parsed(text)
    if isinstance(parsed, ExpressionError):
        return None
    return _without_places(parsed)


def _without_places(expression: Expression) -> list[tuple[bool, list[Plain]]]:
    return [
        (
            part.exclude,
            [
                Plain("tag", each.tag) if isinstance(each, Tagged) else Plain("name", each.name, each.patterns)
                for each in part.operands
            ],
        )
        for part in expression.parts
    ]
