"""GBNF reading: grammar files of others, read, checked and matched."""

from __future__ import annotations

import pytest

from trysquare import ErrorCode, ToolError
from trysquare.grammar import check_grammar, read_gbnf
from trysquare.grammar.certify import TextMatcher

CHESS = """
# Moves of a game, as a file of somebody else might have them.
root   ::= "1. " move " " move "\\n" ([1-9] [0-9]? ". " move " " move "\\n")+
move   ::= (pawn | nonpawn |
            castle) [+#]?   # check or mate
nonpawn ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
pawn   ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
castle ::= "O-O" "-O"?
"""


def test_a_file_with_comments_and_alternatives_over_lines_is_read() -> None:
    matcher = TextMatcher(read_gbnf(CHESS))
    assert matcher.accepts("1. e4 e5\n2. Nf3 O-O-O+\n")
    assert matcher.begins("1. e4 ")
    assert not matcher.accepts("1. e4 e5\n")
    assert matcher.stops_at("1. e4 z5") == 6
    assert check_grammar(read_gbnf(CHESS)) == ()


@pytest.mark.parametrize(
    ("rule", "fitting", "others"),
    [
        ('"a\\x62\\u0063\\U0001F600\\"\\\\"', ['abc😀"\\'], ["abc"]),
        ("[^a-c]", ["d", "é", "\n"], ["a", ""]),
        ("[a\\]-]", ["a", "]", "-"], ["\\"]),
        ("[-a]", ["-", "a"], ["b"]),
        ("[a-]", ["-", "a"], ["b"]),
        (".", ["x", "\n", "😀"], ["", "xy"]),
        ('"ab"*', ["", "ab", "abab"], ["aba"]),
        ('("a" | "b")+', ["abba"], [""]),
        ('"a"{2}', ["aa"], ["a", "aaa"]),
        ('"a"{2,}', ["aaa"], ["a"]),
        ('"a"{1,2}', ["a", "aa"], ["", "aaa"]),
        ('"a" | ', ["a", ""], ["b"]),
        ('("a"?)*', ["", "aaa"], ["b"]),
    ],
)
def test_every_sign_of_the_language_means_what_llama_cpp_makes_of_it(
    rule: str, fitting: list[str], others: list[str]
) -> None:
    matcher = TextMatcher(read_gbnf(f"root ::= {rule}\n"))
    assert all(map(matcher.accepts, fitting))
    assert not any(map(matcher.accepts, others))


def test_the_lost_parentheses_of_a_choice_let_half_a_call_through() -> None:
    lost = 'root ::= "{" "\\"action\\":" "\\"status\\"" | "\\"diff\\"" "}"'
    assert TextMatcher(read_gbnf(lost)).accepts('{"action":"status"')
    kept = 'root ::= "{" "\\"action\\":" ("\\"status\\"" | "\\"diff\\"") "}"'
    assert not TextMatcher(read_gbnf(kept)).accepts('{"action":"status"')


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('root ::= "a', "line 1, column 12"),
        ("root ::= [a", "line 1, column 12"),
        ('root ::= ("a"', "line 1, column 14"),
        ('root ::= "a")', "line 1, column 13"),
        ('root "a"', "line 1, column 6"),
        ('root ::= "a"\nroot ::= "b"', "line 2, column 1"),
        ('root ::= "\\q"', "line 1, column 13"),
        ('root ::= "\\u12"', "line 1, column 13"),
        ('root ::= "a"{2,1}', "line 1, column 13"),
        ('root ::= "a"{x}', "line 1, column 13"),
        ("snake_case ::= a", "line 1, column 6"),
        ("root ::= <think>", "line 1, column 10"),
        ("root ::= " + "(" * 300, "line 1, column 210"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_the_place(text: str, place: str) -> None:
    with pytest.raises(ToolError, match=place) as refusal:
        read_gbnf(text, source="a file")
    assert refusal.value.code is ErrorCode.GRAMMAR_UNSUPPORTED
    assert refusal.value.message.startswith("a file, ")


@pytest.mark.parametrize(
    ("text", "kind", "rule"),
    [
        ('start ::= "a"', "missing root", "root"),
        ("root ::= missing", "undefined", "root"),
        ('root ::= root "a" | "b"', "left recursion", "root"),
        ('root ::= a\na ::= "x"? b\nb ::= a "y" | "z"', "left recursion", "a"),
        ('root ::= "a" root', "never ends", "root"),
        ('root ::= "a"\nother ::= "b"', "unreachable", "other"),
    ],
)
def test_what_is_wrong_with_a_grammar_is_found(text: str, kind: str, rule: str) -> None:
    findings = check_grammar(read_gbnf(text))
    assert (kind, rule) in [(finding.kind, finding.rule) for finding in findings]


def test_a_grammar_that_cannot_be_used_is_not_matched() -> None:
    with pytest.raises(ToolError, match="`root` is left-recursive"):
        TextMatcher(read_gbnf('root ::= root "a" | "b"'))


def test_a_rule_that_contains_itself_behind_something_is_no_left_recursion() -> None:
    assert check_grammar(read_gbnf('root ::= "(" root ")" | "x"')) == ()
