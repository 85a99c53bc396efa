"""CallGrammar: what an answer of tool calls is held to, in every dialect."""

from __future__ import annotations

from typing import Any

import pytest
from inline_snapshot import snapshot
from jsonschema import Draft202012Validator

from tests.grammar.engines_at_hand import byte_engine
from trysquare import ToolError
from trysquare.grammar import CallGrammar, Unsupported, read_gbnf
from trysquare.grammar.certify import TextMatcher, accepts
from trysquare.models import Constraint, ToolSpec

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TREE = {"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"in": {"$ref": "#/$defs/node"}},
        "additionalProperties": False}}}  # fmt: skip


def offer(name: str, schema: dict[str, Any]) -> ToolSpec:
    return ToolSpec(name=name, description="", schema=schema, flat=schema)


TOOLS = [offer("read", {**PATH, "additionalProperties": False}), offer("grow_tree", TREE), offer("grow_bush", TREE)]
FITTING = [
    '{"name":"read","args":{"path":"a.py"}}',
    '{"name":"grow_tree","args":{"in":{"in":{}}}}',
    '{"name":"grow_bush","args":{}}',
]
OTHERS = [
    '{"name":"read","args":{}}',
    '{"name":"rea","args":{"path":"a"}}',
    '{"name":"grow_tree","args":{"path":"a"}}',
    '{"args":{"path":"a"},"name":"read"}',
    '{"name": "read","args":{"path":"a"}}',
    '{"tool":"read","args":{"path":"a"}}',
    '{"name":"read","args":{"path":"a"}',
    "",
]


def everyone(grammar: CallGrammar, tokens: int | None = None) -> list[Any]:
    matcher = TextMatcher(read_gbnf(grammar.gbnf(tokens=tokens)))
    lark = grammar.lark(tokens=tokens)
    return [matcher.accepts, lambda text: accepts(byte_engine(), lark, text)]


@pytest.mark.parametrize("tokens", [None, 200])
def test_a_call_names_one_of_the_tools_and_has_its_arguments(tokens: int | None) -> None:
    for fits in everyone(CallGrammar(TOOLS), tokens):
        assert all(map(fits, FITTING))
        assert not any(map(fits, OTHERS))


@pytest.mark.parametrize("tokens", [None, 400])
def test_where_several_calls_may_come_they_are_an_array(tokens: int | None) -> None:
    for fits in everyone(CallGrammar(TOOLS, parallel=True, most_calls=3), tokens):
        assert fits(f"[{FITTING[0]}]")
        assert fits(f"[{','.join(FITTING)}]")
        assert not any(map(fits, [*FITTING, "[]", f"[{FITTING[0]},]", f"[{','.join(FITTING * 2)}]"]))


def test_the_schema_for_servers_says_the_same() -> None:
    schema = CallGrammar(TOOLS[:2], parallel=True).json_schema()
    assert schema == snapshot(
        {
            "type": "array",
            "items": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {
                            "name": {"const": "read"},
                            "args": {
                                "type": "object",
                                "properties": {"path": {"type": "string"}},
                                "required": ["path"],
                                "additionalProperties": False,
                            },
                        },
                        "required": ["name", "args"],
                        "additionalProperties": False,
                    },
                    {
                        "type": "object",
                        "properties": {"name": {"const": "grow_tree"}, "args": {"$ref": "#/$defs/node"}},
                        "required": ["name", "args"],
                        "additionalProperties": False,
                    },
                ]
            },
            "minItems": 1,
            "maxItems": 8,
            "$defs": {
                "node": {
                    "type": "object",
                    "properties": {"in": {"$ref": "#/$defs/node"}},
                    "required": [],
                    "additionalProperties": False,
                }
            },
        }
    )
    Draft202012Validator.check_schema(schema)


def test_a_refusal_names_the_tool_and_the_others_can_still_be_written() -> None:
    grammar = CallGrammar([*TOOLS, offer("odd", {"not": {}})])
    with pytest.raises(Unsupported, match=r"`not` at `/not` .*`odd`") as refusal:
        grammar.gbnf()
    assert refusal.value.fields == {"keyword": "not", "pointer": "/not", "tool": "odd"}
    assert grammar.calls.tree("read")


def test_nothing_is_read_before_a_dialect_is_asked_for() -> None:
    assert list(CallGrammar([offer("odd", {"not": {}})]).calls.tools) == ["odd"]


def test_an_answer_that_cannot_fit_into_its_tokens_is_refused() -> None:
    with pytest.raises(ToolError, match="The shortest response"):
        CallGrammar(TOOLS).lark(tokens=20)


def test_it_is_what_a_model_takes_as_a_constraint() -> None:
    constraint: Constraint = CallGrammar(TOOLS)
    assert constraint.walk().next(tokens_left=100) is not None
