"""GBNF: rules as llama.cpp reads them."""

from __future__ import annotations

from typing import cast

from trysquare.core.json import JsonObject
from trysquare.grammar.dialects.rules import grammar_of
from trysquare.grammar.schema.reader import read_schema
from trysquare.grammar.text import expressions as ex
from trysquare.grammar.text.regex import class_text, quantity

MOST_REPEATS = 1_000
"""llama.cpp makes a rule of every repetition and refuses more than two thousand; more are put together of blocks."""
BLOCK = 100
CHARACTER_RULE = "char"
ESCAPE_RULE = "escape"
JSON_CHARACTER = cast(ex.Choice, ex.written_characters(ex.EVERY_CHARACTER))
ESCAPES = JSON_CHARACTER.options[-2:]


def schema_to_gbnf(schema: JsonObject | bool) -> str:
    """The GBNF of the compact JSON texts that fit a schema."""
    return gbnf_text(grammar_of(read_schema(schema)))


def gbnf_text(grammar: ex.Grammar) -> str:
    """A grammar as a GBNF file; the rule `root` comes first."""
    lines = [f"{name} ::= {_written(rule)}\n" for name, rule in grammar.rules.items()]
    if any(_has_escape(rule) for rule in grammar.rules.values()):
        plain, *escapes = JSON_CHARACTER.options
        lines.append(f"{CHARACTER_RULE} ::= ({_written(plain)} | {ESCAPE_RULE})\n")
        lines.append(f"{ESCAPE_RULE} ::= ({' | '.join(map(_written, escapes))})\n")
    return "".join(lines)


def _has_escape(expression: ex.Expression) -> bool:
    escapes = isinstance(expression, ex.Choice) and expression.options[-2:] == ESCAPES
    return escapes or any(map(_has_escape, ex.children(expression)))


def _choice(options: tuple[ex.Expression, ...]) -> str:
    """Alternatives, always in parentheses, so that they can stand anywhere."""
    if options == JSON_CHARACTER.options:
        return CHARACTER_RULE
    if options[-2:] == ESCAPES:
        options = (*options[:-2], ex.Rule(ESCAPE_RULE))
    return f"({' | '.join(map(_written, options))})"


def _written(expression: ex.Expression) -> str:
    match expression:
        case ex.Text(text):
            return f'"{_quoted(text)}"'
        case ex.Chars(ranges):
            # Allowed code points, never excluded ones: llama.cpp reads bytes that are not UTF-8 as higher code points.
            return class_text(ranges, _in_class)
        case ex.Sequence(parts):
            return " ".join(map(_written, parts))
        case ex.Choice(options):
            return _choice(options)
        case ex.Repeat():
            return _repeat(expression)
        case ex.Rule(name):
            return name


def _repeat(expression: ex.Repeat) -> str:
    part, fewest, most = expression.part, expression.fewest, expression.most
    if max(fewest, most or 0) > MOST_REPEATS:
        return _written(_in_blocks(part, fewest, most))
    inner = _written(part)
    # GBNF repeats the one symbol before the sign: a text of several letters is one symbol, a sequence is not.
    single = not isinstance(part, ex.Sequence | ex.Repeat)
    return (inner if single else f"({inner})") + quantity(fewest, most)


def _in_blocks(part: ex.Expression, fewest: int, most: int | None) -> ex.Expression:
    """Many repetitions as blocks of a hundred and the rest."""
    blocks, left = divmod(fewest, BLOCK)
    before = ex.in_sequence(_blocks(part, blocks, blocks), ex.repeated(part, left, left))
    if most is None:
        return ex.in_sequence(before, ex.repeated(part))
    blocks, left = divmod(most - fewest, BLOCK)
    if not blocks:
        return ex.in_sequence(before, ex.repeated(part, 0, left))
    short = ex.in_sequence(_blocks(part, 0, blocks - 1), ex.repeated(part, 0, BLOCK - 1))
    full = ex.in_sequence(_blocks(part, blocks, blocks), ex.repeated(part, 0, left))
    return ex.in_sequence(before, ex.one_of([short, full]))


def _blocks(part: ex.Expression, fewest: int, most: int) -> ex.Expression:
    return ex.repeated(ex.repeated(part, BLOCK, BLOCK), fewest, most)


def _in_class(code: int) -> str:
    return f"\\{chr(code)}" if chr(code) in "[]\\" else f"\\x{code:02X}" if chr(code) in "-^" else _code(code)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return escaped if escaped.isascii() and escaped.isprintable() else "".join(_code(ord(char)) for char in escaped)


def _code(code: int) -> str:
    if 32 <= code <= 126:
        return chr(code)
    if code < 256:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
