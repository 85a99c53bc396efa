"""The Lark grammars of the two stages of a call: which tool it names, then that tool's arguments."""

from __future__ import annotations

import json
from collections.abc import Iterable

from trysquare.core.types import JsonObject
from trysquare.grammar.call_set import AFTER_NAME, BEFORE_NAME, written
from trysquare.grammar.lark import lark_rules


def names_lark(names: Iterable[str], before: str) -> str:
    """Any of the names as a call begins with it, up to the opening brace of the arguments."""
    known = json.dumps({"enum": list(names)}, ensure_ascii=False)
    return f"start: {literal(before + BEFORE_NAME[:-1])} name {literal(AFTER_NAME[1:] + '{')}\nname: %json {known}\n"


def call_lark(name: str, schema: JsonObject, before: str, endings: Iterable[str]) -> str:
    """A whole call of one tool with what stands before and may follow it; a comma leads to the next call's name."""
    after = [literal("}" + _with_next(ending)) for ending in endings]
    start = f"start: {literal(before + BEFORE_NAME + written(name) + AFTER_NAME)} args ({' | '.join(after)})\n"
    return start + lark_rules(schema, root="args")


def _with_next(ending: str) -> str:
    # The next call's beginning is part of it, because tokenizers have tokens such as `},{"`.
    return ending + BEFORE_NAME if ending == "," else ending


def literal(text: str) -> str:
    """A text as Lark writes it."""
    return json.dumps(text, ensure_ascii=False)
