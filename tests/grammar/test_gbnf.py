"""GBNF: schemas as llama.cpp reads them."""

from __future__ import annotations

import re

import pytest
from inline_snapshot import snapshot

from tests.grammar.generated import cases
from trysquare.grammar import Unsupported, check_grammar, gbnf_text, read_gbnf, schema_to_gbnf
from trysquare.grammar.certify import TextMatcher
from trysquare.grammar.text.expressions import Chars, Grammar, Repeat, Text, chars

GIT = {
    "type": "object",
    "properties": {
        "action": {"enum": ["status", "diff", "commit"]},
        "message": {"type": "string", "maxLength": 72},
        "files": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "depth": {"type": "integer", "minimum": -7, "maximum": 120},
    },
    "required": ["action"],
    "additionalProperties": False,
}


def test_alternatives_stand_in_parentheses_and_properties_in_the_order_of_the_schema() -> None:
    assert schema_to_gbnf(GIT) == snapshot(
        """\
root ::= args
args ::= "{\\"action\\":" action (",\\"message\\":" message)? (",\\"files\\":" files)? (",\\"depth\\":" depth)? "}"
action ::= ("\\"status\\"" | "\\"diff\\"" | "\\"commit\\"")
message ::= "\\"" char{0,72} "\\""
files ::= "[" string ("," string)* "]"
string ::= "\\"" char* "\\""
depth ::= ("-" [0-7] | [0-9] | [1-9] [0-9] | "1" ([0-1] [0-9] | "20"))
char ::= ([ -!#-\\[\\]-~\\x80-\\uD7FF\\uE000-\\U0010FFFF] | escape)
escape ::= ("\\\\" ["\\\\bfnrt] | "\\\\u00" ([0-1] [0-9A-Fa-f] | "7" [Ff]))
"""
    )


def test_commas_stand_only_between_optional_properties_that_are_there() -> None:
    schema = {"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}, "additionalProperties": False}
    assert schema_to_gbnf(schema) == snapshot(
        """\
root ::= args
args ::= "{" ("\\"a\\":1" args-rest | "\\"b\\":2" | "") "}"
args-rest ::= ",\\"b\\":2"?
"""
    )
    matcher = TextMatcher(read_gbnf(schema_to_gbnf(schema)))
    assert all(map(matcher.accepts, ["{}", '{"a":1}', '{"b":2}', '{"a":1,"b":2}']))
    assert not any(map(matcher.accepts, ['{,"b":2}', '{"a":1,}', '{"a":1"b":2}', '{"b":2,"a":1}', '{"a":1', "{} "]))


def test_a_schema_that_contains_itself_is_a_rule_that_does() -> None:
    schema = {"$ref": "#/$defs/node", "$defs": {"node": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/list"}]},
              "list": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}  # fmt: skip
    matcher = TextMatcher(read_gbnf(schema_to_gbnf(schema)))
    deep = "[" * 3_000 + "null" + "]" * 3_000
    assert matcher.accepts(deep)
    assert not matcher.accepts(deep[:-1])


@pytest.mark.parametrize("count", [999, 1_000, 1_001, 1_100, 2_345])
def test_more_repetitions_than_llama_cpp_takes_are_put_together_of_blocks(count: int) -> None:
    gbnf = schema_to_gbnf({"type": "string", "minLength": count - 5, "maxLength": count})
    assert max(int(number) for number in re.findall(r"\{(?:\d+,)?(\d+)", gbnf)) <= 1_000
    matcher = TextMatcher(read_gbnf(gbnf))
    fitting = [length for length in range(count - 8, count + 4) if matcher.accepts(f'"{"x" * length}"')]
    assert fitting == list(range(count - 5, count + 1))


def test_a_printed_grammar_is_read_back_as_it_was() -> None:
    odd = chars([(0, 31), (34, 34), (45, 45), (91, 94), (0x1F600, 0x10FFFF)])
    grammar = Grammar(rules={"root": Repeat(odd, 2, None), "x": Text('a"\\\n\u2028😀[]-^')})
    assert read_gbnf(gbnf_text(grammar)).rules == grammar.rules
    assert isinstance(odd, Chars)


def test_generated_grammars_have_legal_names_and_nothing_wrong_and_are_always_the_same() -> None:
    for case in cases(seed=8, count=40):
        try:
            gbnf = schema_to_gbnf(case.schema)
        except Unsupported:
            continue
        assert gbnf == schema_to_gbnf(case.schema)
        grammar = read_gbnf(gbnf)
        assert all(re.fullmatch(r"[a-z][a-z0-9-]*", name) for name in grammar.rules)
        assert check_grammar(grammar) == ()
