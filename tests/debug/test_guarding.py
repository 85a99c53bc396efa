"""What is refused before a program sees it: expressions that could run code, false hit conditions, broken messages."""

from __future__ import annotations

import pytest

from trysquare import ErrorCode, ToolError
from trysquare.core.errors import InvalidArguments
from trysquare.core.redaction import mask_shown, names_secret
from trysquare.debug.cdp.breakpoints import condition_of
from trysquare.debug.debugger import BreakpointSpec
from trysquare.debug.expressions import parse_log_message, path_of
from trysquare.debug.guard import require_hit_condition, require_log_message, require_reading


@pytest.mark.parametrize(
    "expression",
    ["a", "self.items[3].tags", "a + b * 2", "len(items) > 3 and not done", "[x for x in rows if x.ok]", "{'k': v}",
     "x if y else z", "row.__class__.__name__", "conf.get('port')", "f'{a:>3}'", "max(1, 2)"],
)  # fmt: skip
def test_what_only_reads_is_let_through_in_python(expression: str) -> None:
    require_reading(expression, "python", allowed=False)


@pytest.mark.parametrize(
    "expression",
    ["f()", "items.pop()", "os.system('x')", "open('f')", "eval('1')", "__import__('os')", "(lambda: 1)()",
     "getattr(x, 'y')", "[f(x) for x in rows]", "(a := 1)", "[0 for conf['port'] in [9]]", "[0 for a.b in [1]]",
     "await x", "(yield)", "lambda: 1", "vars()", "print(1)"],
)  # fmt: skip
def test_what_calls_or_writes_is_refused_in_python_and_says_what_to_do(expression: str) -> None:
    with pytest.raises(ToolError) as refused:
        require_reading(expression, "python", allowed=False)
    assert refused.value.code is ErrorCode.EXECUTION_NOT_ALLOWED
    assert "allow_side_effects" in (refused.value.instruction or "")


@pytest.mark.parametrize("expression", ["a = 1", "del a", "import os", "", "a +", "x; y", "-" * 3000 + "x", "((" * 90])
def test_what_is_not_an_expression_is_refused_even_where_side_effects_are_allowed(expression: str) -> None:
    with pytest.raises(InvalidArguments):
        require_reading(expression, "python", allowed=True)


def test_a_session_that_allows_side_effects_takes_every_expression() -> None:
    require_reading("items.clear()", "python", allowed=True)
    require_reading("items.clear()", "ruby", allowed=True)


@pytest.mark.parametrize(
    ("expression", "language", "file"),
    [("i == 3", "go", ""), ("len(xs) > 2", "go", ""), ("a.b[i].c != 'x'", "java", ""), ("p->x > 3", "c", "/a/x.c"),
     ("i === 3 && !done", "javascript", ""), ("n >= 2", "c", "/a/x.rs"), ("sizeof(x) == 4", "c", "x.c")],
)  # fmt: skip
def test_what_can_run_nothing_in_its_language_is_plain(expression: str, language: str, file: str) -> None:
    require_reading(expression, language, allowed=False, file=file)


@pytest.mark.parametrize(
    ("expression", "language", "file"),
    [("call f(1)", "go", ""), ("dlv config x", "go", ""), ("f(x)", "go", ""), ("(f)(x)", "c", "x.c"),
     ("(int)puts/**/(\"x\")", "c", "x.c"), ("a == b", "c", "x.cpp"), ("a == b", "c", ""), ("x.y()", "java", ""),
     ("new T", "java", ""), ("`${items.push(1)}`", "javascript", ""), ("console.log`x`", "javascript", ""),
     ("a.b === 1", "javascript", ""), ("i == 3", "javascript", ""), ("items.clear", "ruby", ""), ("i == 3", "ruby", ""),
     ("`touch x`", "ruby", ""), ("i = 3", "go", ""), ("i++", "c", "x.c"), ("x; y", "c", "x.c"), ("", "go", "")],
)  # fmt: skip
def test_what_might_run_something_in_its_language_needs_leave(expression: str, language: str, file: str) -> None:
    with pytest.raises(ToolError) as refused:
        require_reading(expression, language, allowed=False, file=file)
    assert refused.value.code is ErrorCode.EXECUTION_NOT_ALLOWED


@pytest.mark.parametrize("text", ["5", ">=3", "%2", " == 4 ", "<10", None])
def test_hit_conditions_are_numbers_with_a_sign(text: str | None) -> None:
    require_hit_condition(text)


@pytest.mark.parametrize(
    "text", ["abc", "3.5", "touch('x')", "", "> touch()", "1 or touch()", "%", "5\nx", "\uff15", "-1"]
)
def test_anything_else_is_not_a_hit_condition(text: str) -> None:
    with pytest.raises(InvalidArguments):
        require_hit_condition(text)


def test_the_expressions_of_a_log_message_are_those_in_braces_whatever_they_hold() -> None:
    found = parse_log_message("i is {i} of {len(rows)}, {{not this}}, {d['a}']} {{'k': 1}['k']} { {1: 2}[1] }")
    assert [text for is_expression, text in found if is_expression] == ["i", "len(rows)", "d['a}']", "{1: 2}[1]"]
    with pytest.raises(ToolError):
        require_log_message("v {touch('c6{}')}", "python", allowed=False)
    for broken in ("{i", "{}", "{i ==}"):
        with pytest.raises(InvalidArguments):
            require_log_message(broken, "python", allowed=True)


def test_doubled_braces_are_refused_where_the_debugger_parses_the_message_itself() -> None:
    require_log_message("{{touch()}}", "python", allowed=False)
    require_log_message("{{touch()}}", "c", allowed=True)
    for language in ("c", "go", "ruby", "java"):
        with pytest.raises(ToolError) as refused:
            require_log_message("{{touch()}}", language, allowed=False)
        assert refused.value.code is ErrorCode.EXECUTION_NOT_ALLOWED


def test_a_log_message_of_javascript_prints_doubled_braces_as_text() -> None:
    spec = BreakpointSpec(file="/a.js", line=1, log_message="{{touch()}} of {i}")
    assert condition_of(spec, 1) == '(console.log("{touch()} of", i), false)'


def test_a_plain_path_is_told_from_every_other_expression() -> None:
    assert path_of("a.b[0]->c['k']") == ["a", "b", "0", "c", "k"]
    for other in ("a()", "a b", "a.b + 1", "[0]", ".a", "a[i]", "", "`ls`", "a;b", "a[0", "a..b"):
        assert path_of(other) is None, other


@pytest.mark.parametrize(
    "name", ["password", "dbPassword", "API_KEY", "auth_token", "access_tokens", "client-secret", "cookie"]
)
def test_names_of_secrets(name: str) -> None:
    assert names_secret(name)


@pytest.mark.parametrize(
    "name",
    ["tokens", "cookie_count", "max_tokens", "token_type", "tokenizer", "secretary", "token_count", "keys", "n_tokens"],
)
def test_names_that_only_sound_like_a_secret(name: str) -> None:
    assert not names_secret(name)


def test_texts_of_values_lose_the_secrets_in_them() -> None:
    shown = mask_shown("""{user: "ann", password: "a\\"b", 'api_key' => 'k', token="unfinished""")
    assert shown == """{user: "ann", password: ***, 'api_key' => ***, token=***"""
