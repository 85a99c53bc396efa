"""Guarding: whether an expression only reads, told before it is evaluated in somebody's program."""

from __future__ import annotations

import ast
import re
from enum import StrEnum

from trysquare.core.errors import ErrorCode, ToolError


class Effect(StrEnum):
    """What evaluating an expression may do."""

    READS = "reads"
    CALLS = "calls"
    WRITES = "writes"


PURE_BUILTINS = frozenset(
    [
        "abs",
        "all",
        "any",
        "bin",
        "bool",
        "bytes",
        "callable",
        "chr",
        "complex",
        "dict",
        "divmod",
        "enumerate",
        "float",
        "frozenset",
        "hasattr",
        "hex",
        "id",
        "int",
        "isinstance",
        "issubclass",
        "len",
        "list",
        "max",
        "min",
        "oct",
        "ord",
        "pow",
        "range",
        "repr",
        "reversed",
        "round",
        "set",
        "slice",
        "sorted",
        "str",
        "sum",
        "tuple",
        "type",
        "zip",
    ]
)
"""Functions of Python that change nothing themselves. What they call of a value's own class is that class's reading."""
_WRITES = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
_STRINGS = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`")
_ASSIGNMENT = re.compile(r"\+\+|--|(?<![=!<>])=(?![=~])|<<=|>>=|\bdelete\b|\bnew\b")
_CALL = re.compile(r"(\b[A-Za-z_][\w.:!?]*)\s*\(|\)\s*\(|\]\s*\(")
_PURE_ELSEWHERE = frozenset({"len", "cap", "sizeof", "alignof", "typeof", "defined?", "String", "Number", "Boolean"})
_KEYWORDS = frozenset({"if", "and", "or", "not", "in", "is", "return", "instanceof"})


def effect_of(expression: str, language: str) -> Effect:
    """What evaluating an expression may do. What cannot be told is taken for the worst."""
    return _effect_in_python(expression) if language == "python" else _effect_elsewhere(expression)


def require_reading(expression: str, language: str, *, allowed: bool) -> None:
    """Refuse an expression that does more than read, unless the session allows it."""
    if allowed:
        return
    effect = effect_of(expression, language)
    if effect is Effect.READS:
        return
    shown = expression if len(expression) <= 80 else expression[:79] + "…"
    what = "calls a function" if effect is Effect.CALLS else "changes something"
    raise ToolError(
        f"`{shown}` {what}, and this session only reads.",
        code=ErrorCode.EXECUTION_NOT_ALLOWED,
        instruction=(
            "Read names, attributes, items and operators instead; or start the session with allow_side_effects, "
            "if the person agrees that the program may be changed."
        ),
    )


def log_expressions(message: str) -> list[str]:
    """The expressions in a log message, each in braces."""
    return re.findall(r"(?<!\{)\{([^{}]+)\}(?!\})", message)


def _effect_in_python(expression: str) -> Effect:
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError):
        # No expression: a statement, or nothing that Python can read.
        return Effect.WRITES
    effect = Effect.READS
    for node in ast.walk(tree):
        if isinstance(node, _WRITES):
            return Effect.WRITES
        if isinstance(node, ast.Call) and not _is_pure(node.func):
            effect = Effect.CALLS
        if isinstance(node, ast.Attribute) and node.attr.startswith("__") and node.attr not in _HARMLESS:
            effect = Effect.CALLS
    return effect


_HARMLESS = frozenset({"__class__", "__dict__", "__name__", "__qualname__", "__module__", "__doc__", "__len__"})


def _is_pure(function: ast.expr) -> bool:
    return isinstance(function, ast.Name) and function.id in PURE_BUILTINS


def _effect_elsewhere(expression: str) -> Effect:
    """By the signs that most languages share: an assignment, a step up or down, a call."""
    text = _STRINGS.sub('""', expression)
    if _ASSIGNMENT.search(text) or ";" in text or "{" in text:
        return Effect.WRITES
    for found in _CALL.finditer(text):
        name = (found.group(1) or "").strip()
        if name not in _PURE_ELSEWHERE and name not in _KEYWORDS:
            return Effect.CALLS
    return Effect.READS
