"""Tokens: how many a text costs a model, estimated without a vocabulary.

A tokenizer first cuts a text into pieces by simple rules and then looks each piece up in a vocabulary of megabytes.
The cutting is done here as o200k does it; instead of the vocabulary stand the mean tokens of a piece of its kind and
length. The tests hold the estimate against the real tokenizer.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from typing import cast

from trysquare.catalog.describe import compact_description
from trysquare.catalog.schema_parts import one_line_json
from trysquare.core.tool import Tool
from trysquare.core.types import JsonObject

_ACCENTED = "\u00c0-\u024f\u1e00-\u1eff"
# A look ahead that is bounded keeps the cost linear in texts that are one endless word.
_PIECE = re.compile(
    rf"(?P<accented>[^\r\n\w]?(?=[A-Za-z]{{0,40}}[{_ACCENTED}])[A-Za-z{_ACCENTED}]+)"
    r"|(?P<word>[^\r\nA-Za-z0-9\u0080-\U0010ffff]?(?:[A-Z]*[a-z]+(?:'(?:s|t|re|ve|m|ll|d)\b)?|[A-Z]+))"
    r"|(?P<number>[0-9]{1,3})"
    r"|(?P<other> ?[^\x00-\x7f\s]+)"
    r"|(?P<mark> ?[!-/:-@\[-`{-~]+[\r\n/]*)"
    r"|(?P<space>\s*[\r\n]+|\s+(?!\S)|\s+|[\x00-\x1f\x7f])"
)

# Mean tokens of words of 1, 2, 3 … letters, by what stands before the word and by its case.
_WORDS: dict[tuple[str, str], tuple[float, ...]] = {
    ("", "lower"): (1.0, 1.0, 1.19, 1.05, 1.08, 1.16, 1.21, 1.33, 1.42, 1.44, 1.5, 1.9),
    ("", "capital"): (1.0, 1.01, 1.08, 1.04, 1.07, 1.09, 1.12, 1.19, 1.3, 1.4, 1.6, 1.8),
    ("", "upper"): (1.0, 1.01, 1.21, 1.38, 1.65, 1.72, 1.9, 2.6, 2.8, 3.1, 3.6, 4.2),
    (" ", "lower"): (1.0, 1.0, 1.02, 1.02, 1.03, 1.04, 1.07, 1.11, 1.17, 1.18, 1.24, 1.36),
    (" ", "capital"): (1.0, 1.0, 1.12, 1.06, 1.08, 1.19, 1.21, 1.33, 1.4, 1.42, 1.55, 1.6),
    (" ", "upper"): (1.0, 1.03, 1.22, 1.2, 1.48, 1.58, 1.6, 1.85, 2.1, 2.2, 2.4, 2.8),
    ("mark", "lower"): (1.03, 1.19, 1.32, 1.32, 1.42, 1.44, 1.58, 1.75, 1.9, 2.15, 2.3, 2.5),
    ("mark", "capital"): (1.5, 1.58, 1.6, 1.58, 1.68, 1.8, 1.85, 1.99, 2.1, 2.15, 2.3, 2.6),
    ("mark", "upper"): (1.42, 1.36, 1.45, 1.45, 1.58, 1.6, 1.65, 2.03, 2.28, 2.5, 3.0, 3.4),
}
# The words of which every schema is made are in the vocabulary whole.
_SCHEMA_WORDS = frozenset(
    {"additional", "array", "boolean", "default", "description", "enum", "false", "format", "input", "integer", "items",
     "maximum", "minimum", "name", "null", "number", "object", "pattern", "Properties", "properties", "required",
     "schema", "string", "title", "true", "type"}
)  # fmt: skip
_LONGER = {"lower": 0.27, "capital": 0.27, "upper": 0.37}
_JSON_MARKS = (1.0, 1.0, 1.01, 1.4, 1.7, 2.5, 2.8, 3.0)
_OTHER_MARKS = (1.0, 1.04, 1.28, 1.5, 2.05, 2.6, 2.8, 3.6)
# Letters of Western Europe stand in more of the vocabulary's words than those of the other Latin alphabets.
_WESTERN_LETTER, _ACCENTED_LETTER = 0.28, 0.38
# In a text with accented words the plain ones are no English either, and cost more.
_FOREIGN_SHARE, _FOREIGN_COST = 0.04, 1.08

# Mean tokens of one character, by the code point where its script begins.
_SCRIPTS = (
    (0x0080, 0.9), (0x0370, 0.45), (0x0400, 0.31), (0x0530, 0.42), (0x0590, 0.43), (0x0600, 0.41), (0x0700, 1.2),
    (0x0900, 0.4), (0x0980, 0.45), (0x0B80, 0.34), (0x0E00, 0.4), (0x0E80, 1.0), (0x10A0, 0.4), (0x1100, 0.65),
    (0x1200, 1.2), (0x1780, 0.64), (0x1800, 1.2), (0x2000, 0.95), (0x2500, 0.5), (0x25A0, 1.0), (0x3040, 0.62),
    (0x3100, 1.0), (0x3400, 2.0), (0x4E00, 0.74), (0xA000, 1.5), (0xAC00, 0.62), (0xD800, 1.0), (0xF900, 1.2),
    (0x10000, 2.5), (0x1F000, 1.6), (0x1FB00, 2.5),
)  # fmt: skip
_STARTS = [start for start, _ in _SCRIPTS]


def count_tokens(text: str) -> int:
    """About how many o200k tokens a text has. Fast, deterministic, the same everywhere."""
    pieces = Counter((cast(str, found.lastgroup), found[0]) for found in _PIECE.finditer(text))
    costs, counts = dict[str, float].fromkeys(_COSTS, 0.0), dict[str, int].fromkeys(_COSTS, 0)
    for (kind, piece), times in pieces.items():
        costs[kind] += times * _COSTS[kind](piece)
        counts[kind] += times
    if counts["accented"] > _FOREIGN_SHARE * (counts["accented"] + counts["word"]):
        costs["word"] *= _FOREIGN_COST
    return round(sum(costs.values()))


def definition(tool: Tool) -> JsonObject:
    """A tool as a list shows it to a model."""
    return {"name": tool.name, "description": compact_description(tool), "input_schema": tool.input_schema}


def definition_tokens(tool: Tool) -> int:
    """About how many tokens a tool costs in each conversation in which it is listed."""
    return count_tokens(one_line_json(definition(tool)))


def _word_cost(piece: str) -> float:
    if piece in _SCHEMA_WORDS:
        return 1.0
    bare = piece if piece[0].isalpha() else piece[1:]
    before = "" if bare is piece else " " if piece[0] == " " else "mark"
    case = "lower" if bare.islower() else "upper" if bare.isupper() and len(bare) > 1 else "capital"
    rates = _WORDS[before, case]
    over = len(bare) - len(rates)
    return rates[len(bare) - 1] if over <= 0 else rates[-1] + over * _LONGER[case]


def _accented_cost(piece: str) -> float:
    letters = piece.strip()
    return max(1.0, len(letters) * (_WESTERN_LETTER if max(letters) < "\u0100" else _ACCENTED_LETTER))


def _other_cost(piece: str) -> float:
    return max(1.0, sum(_SCRIPTS[bisect_right(_STARTS, ord(char)) - 1][1] for char in piece.strip()))


def _mark_cost(piece: str) -> float:
    marks = piece.strip()
    if len(marks) > 2 and len(set(marks)) == 1:
        return 1 + len(marks) / 16
    rates = _OTHER_MARKS if set(marks) - set('{}[]":,') else _JSON_MARKS
    over = max(0, len(marks) - len(rates))
    return rates[min(len(marks), len(rates)) - 1] + over * 0.45


def _space_cost(piece: str) -> float:
    return 1 + len(piece) // 80


def _number_cost(piece: str) -> float:
    return 1.0


_COSTS = {
    "accented": _accented_cost,
    "word": _word_cost,
    "number": _number_cost,
    "other": _other_cost,
    "mark": _mark_cost,
    "space": _space_cost,
}
