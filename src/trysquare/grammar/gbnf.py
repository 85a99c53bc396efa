"""GBNF: rules as llama.cpp reads them."""

from __future__ import annotations

from typing import cast

from trysquare.core.types import JsonObject
from trysquare.grammar.expressions import (
    Chars,
    Choice,
    Expression,
    Grammar,
    Ranges,
    Repeat,
    Rule,
    Sequence,
    Text,
    children,
    in_sequence,
    one_of,
    repeated,
)
from trysquare.grammar.json_text import EVERY_CHARACTER, written_characters
from trysquare.grammar.regex_text import quantity
from trysquare.grammar.schema_reading import read_schema
from trysquare.grammar.shape_text import grammar_of

MOST_REPEATS = 1_000
"""llama.cpp makes a rule of every repetition and refuses more than two thousand; more are put together of blocks."""
BLOCK = 100
CHARACTER_RULE = "char"
ESCAPE_RULE = "escape"
JSON_CHARACTER = cast(Choice, written_characters(EVERY_CHARACTER))
ESCAPES = JSON_CHARACTER.options[-2:]


def schema_to_gbnf(schema: JsonObject | bool) -> str:
    """The GBNF of the compact JSON texts that fit a schema."""
    return gbnf_text(grammar_of(read_schema(schema)))


def gbnf_text(grammar: Grammar) -> str:
    """A grammar as a GBNF file; the rule `root` comes first."""
    lines = [f"{name} ::= {_written(rule)}\n" for name, rule in grammar.rules.items()]
    if any(_has_escape(rule) for rule in grammar.rules.values()):
        plain, *escapes = JSON_CHARACTER.options
        lines.append(f"{CHARACTER_RULE} ::= ({_written(plain)} | {ESCAPE_RULE})\n")
        lines.append(f"{ESCAPE_RULE} ::= ({' | '.join(map(_written, escapes))})\n")
    return "".join(lines)


def _has_escape(expression: Expression) -> bool:
    escapes = isinstance(expression, Choice) and expression.options[-2:] == ESCAPES
    return escapes or any(map(_has_escape, children(expression)))


def _choice(options: tuple[Expression, ...]) -> str:
    """Alternatives, always in parentheses, so that they can stand anywhere."""
    if options == JSON_CHARACTER.options:
        return CHARACTER_RULE
    if options[-2:] == ESCAPES:
        return f"({' | '.join([*map(_written, options[:-2]), ESCAPE_RULE])})"
    return f"({' | '.join(map(_written, options))})"


def _written(expression: Expression) -> str:
    match expression:
        case Text(text):
            return f'"{_quoted(text)}"'
        case Chars(ranges):
            return _class(ranges)
        case Sequence(parts):
            return " ".join(map(_written, parts))
        case Choice(options):
            return _choice(options)
        case Repeat():
            return _repeat(expression)
        case Rule(name):
            return name


def _repeat(expression: Repeat) -> str:
    part, fewest, most = expression.part, expression.fewest, expression.most
    if max(fewest, most or 0) > MOST_REPEATS:
        return _written(_in_blocks(part, fewest, most))
    inner = _written(part)
    # GBNF repeats the one symbol before the sign: a text of several letters is one symbol, a sequence is not.
    single = not isinstance(part, Sequence | Repeat)
    return (inner if single else f"({inner})") + quantity(fewest, most)


def _in_blocks(part: Expression, fewest: int, most: int | None) -> Expression:
    """Many repetitions as blocks of a hundred and the rest."""
    blocks, left = divmod(fewest, BLOCK)
    before = in_sequence(_blocks(part, blocks, blocks), repeated(part, left, left))
    if most is None:
        return in_sequence(before, repeated(part))
    blocks, left = divmod(most - fewest, BLOCK)
    if not blocks:
        return in_sequence(before, repeated(part, 0, left))
    short = in_sequence(_blocks(part, 0, blocks - 1), repeated(part, 0, BLOCK - 1))
    full = in_sequence(_blocks(part, blocks, blocks), repeated(part, 0, left))
    return in_sequence(before, one_of([short, full]))


def _blocks(part: Expression, fewest: int, most: int) -> Expression:
    return repeated(repeated(part, BLOCK, BLOCK), fewest, most)


def _class(ranges: Ranges) -> str:
    # What is allowed is named, never what is not: llama.cpp reads bytes that are no UTF-8 as higher code points.
    return f"[{''.join(map(_range, ranges))}]"


def _range(ends: tuple[int, int]) -> str:
    low, high = ends
    return _in_class(low) if low == high else f"{_in_class(low)}-{_in_class(high)}"


def _in_class(code: int) -> str:
    return (
        f"\\{chr(code)}" if chr(code) in "[]\\" else "\\x2D" if code == 45 else "\\x5E" if code == 94 else _code(code)
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return escaped if escaped.isascii() and escaped.isprintable() else "".join(_code(ord(char)) for char in escaped)


def _code(code: int) -> str:
    if 32 <= code <= 126:
        return chr(code)
    if code < 256:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
