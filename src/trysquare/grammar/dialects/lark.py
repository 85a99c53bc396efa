"""Lark: rules as llguidance reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trysquare.core.json import JsonObject
from trysquare.grammar.dialects.bounds import bounded
from trysquare.grammar.dialects.rules import ShapeWriter
from trysquare.grammar.schema.reader import read_schema
from trysquare.grammar.schema.shapes import Shape, ShapeTree
from trysquare.grammar.schema.writer import is_plain, schema_of
from trysquare.grammar.text.expressions import Choice, Expression, Grammar, Repeat, Rule, Sequence, Text, json_text
from trysquare.grammar.text.regex import quantity, regex_text, rust_point

COMPACT = {"whitespace_flexible": False}
JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^{}\[\],:"]+')
"""llguidance reads the longest terminal and does not go back, so no text may begin with another one."""


def schema_to_lark(schema: JsonObject | bool) -> str:
    """A whole Lark file for the compact JSON texts that fit a schema."""
    return f"%llguidance {{}}\n{lark_rules(schema, root='start')}"


def lark_rules(schema: JsonObject | bool, *, root: str) -> str:
    """Lark rules for the values of a schema, under a name; all other names start with it."""
    tree = read_schema(schema)
    return shape_rules(tree.root, tree.named, root=root)


def shape_rules(shape: Shape, named: Mapping[str, Shape], *, root: str, space: int | None = None) -> str:
    """The same for a shape. With `space`, no text is longer than so many bytes, so that it fits into as many tokens."""
    tree = ShapeTree(root=shape, named=named)
    if space is None and is_plain(tree):
        return f"{root}: %json {json_text({**schema_of(tree), 'x-guidance': COMPACT})}\n"
    grammar = own_grammar(tree, root=root)
    return lark_text(grammar if space is None else bounded(grammar, space))


def own_grammar(tree: ShapeTree, *, root: str) -> Grammar:
    """Rules of our own for a tree, without llguidance's reading of JSON Schema."""
    writer = ShapeWriter(tree.named, prefix=f"{root}-")
    return writer.grammar(writer.text_of(tree.root, "args"), name=root)


def lark_text(grammar: Grammar) -> str:
    """Rules as Lark. Single values are terminals, so that one text is never cut into pieces in two ways."""
    return "".join(
        f"{_name(name, grammar)}: {_terminal(rule) if name in grammar.leaves else _written(rule, grammar)}\n"
        for name, rule in grammar.rules.items()
    )


def _name(name: str, grammar: Grammar) -> str:
    plain = name.replace("-", "_")
    return plain.upper() if name in grammar.leaves else plain


def _terminal(expression: Expression) -> str:
    if isinstance(expression, Choice) and all(isinstance(option, Text) for option in expression.options):
        return " | ".join(json_text(option.text) for option in expression.options if isinstance(option, Text))
    return f"/{regex_text(expression, point=rust_point)}/"


def _written(expression: Expression, grammar: Grammar) -> str:
    match expression:
        case Text(text):
            return " ".join(map(json_text, JSON_TOKEN.findall(text))) or '""'
        case Sequence(parts):
            return " ".join(_written(part, grammar) for part in parts)
        case Choice(options):
            return f"({' | '.join(_written(option, grammar) for option in options)})"
        case Repeat(part, fewest, most):
            return f"({_written(part, grammar)}){quantity(fewest, most)}"
        case Rule(name):
            return _name(name, grammar)
        case _:
            return _terminal(expression)
