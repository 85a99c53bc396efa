"""Expressions of a caller's: read as trees, within bounds, and refused where no value could make them harmless.

It runs in the interpreter of the program: standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import ast
from typing import Any

from trysquare.debug.recorder.functions import FUNCTIONS, METHODS

LONGEST = 2000
_DEEPEST = 60
_parsed: dict[str, ast.expr] = {}
REFUSED: dict[Any, str] = {
    ast.NamedExpr: "`:=`", ast.Lambda: "`lambda`", ast.Await: "`await`", ast.Yield: "`yield`",
    ast.YieldFrom: "`yield from`", ast.Starred: "`*`",
}  # fmt: skip
"""Parts of expressions that run or write something, whatever the values are."""


def parsed(expression: str) -> ast.expr:
    """An expression as a tree, checked for its size. SyntaxError where it is none."""
    known = _parsed.get(expression)
    if known is None:
        if len(expression) > LONGEST:
            raise SyntaxError(f"an expression has at most {LONGEST} characters")
        try:
            known = ast.parse(expression.strip(), mode="eval").body
        except (ValueError, MemoryError, RecursionError) as error:
            raise SyntaxError(f"it cannot be read: {error}") from None
        _require_flat(known)
        if len(_parsed) > 500:
            _parsed.clear()
        _parsed[expression] = known
    return known


def _require_flat(tree: ast.AST) -> None:
    level, depth = [tree], 0
    while level:
        depth += 1
        if depth > _DEEPEST:
            raise SyntaxError("it is nested too deeply")
        level = [inner for node in level for inner in ast.iter_child_nodes(node)]


def refusal_of(expression: str) -> str:
    """Why an expression cannot be one that only reads, whatever the values are; empty where it may be."""
    for node in ast.walk(parsed(expression)):
        if type(node) in REFUSED or (type(node) is ast.Call and _is_unknown(node.func)):
            return REFUSED.get(type(node), "it calls a function, and only a few of Python's own are known to be safe")
        loops = node.generators if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)) else []
        if any(type(part) not in (ast.Name, ast.Tuple, ast.Store) for each in loops for part in ast.walk(each.target)):
            return "a comprehension would write there"
    return ""


def _is_unknown(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return not any(function.attr in names for names in METHODS.values())
    return not isinstance(function, ast.Name) or function.id not in FUNCTIONS
