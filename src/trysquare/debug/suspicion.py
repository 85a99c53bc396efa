"""Suspicion: which value of a failing line is to blame, told from the exception's kind and words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

_QUOTED = re.compile(r"'([A-Za-z_][\w.]*)'")
_MISSING_NAME = re.compile(r"(?:name|variable) '(\w+)'")
_CHECK = re.compile(r"(?:assert|fail)(?:_?[A-Za-z]\w*)?")
"""The methods of a test case that fail where something is not as it should be: `self.assertEqual`, `self.fail`."""


_EVIDENCE = 2
"""A value that is only empty, or only stands on the line, is not spoken of."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspect:
    """An expression of the failing line, and the text of its value."""

    expression: str
    value: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """A line that failed: its statement, and what was known in its frame."""

    statement: ast.AST | None
    values: Mapping[str, str]
    """Names, and attributes such as `self.total`, with the texts of their values."""
    types: Mapping[str, str]


def named_values(scene: Scene) -> list[Suspect]:
    """The values that a line names, as they were known in its frame."""
    named = list(dict.fromkeys(expressions(scene.statement)))
    known = [Suspect(expression=name, value=scene.values[name]) for name in named if name in scene.values]
    return [each for each in known if not each.value.startswith(("<function", "<class", "<module"))]


def suspects(scene: Scene, error_type: str, message: str) -> list[Suspect]:
    """The values that the exception's own words speak of; several where they speak of them alike."""
    scored = [(_blame(each, scene, error_type, message), each) for each in named_values(scene)]
    best = max((score for score, _ in scored), default=0)
    return [suspect for score, suspect in scored if score == best and score >= _EVIDENCE]


def missing_name(error_type: str, message: str) -> str | None:
    """The name that does not exist, where that is what went wrong."""
    if error_type in ("NameError", "UnboundLocalError") and (found := _MISSING_NAME.search(message)):
        return found.group(1)
    return None


def expressions(node: ast.AST | None) -> Iterator[str]:
    """The names, attributes of names and subscripts of names that a statement reads, outermost first."""
    if node is None:
        return
    for part in ast.walk(_evaluated(node)):
        if isinstance(part, ast.Attribute | ast.Subscript) and not isinstance(part.ctx, ast.Store):
            text = ast.unparse(part)
            if len(text) <= 60:
                yield text
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            yield part.id


def _evaluated(node: ast.AST) -> ast.AST:
    """The part of a statement that its own line runs: of a loop or condition only its head."""
    if isinstance(node, ast.If | ast.While):
        return node.test
    if isinstance(node, ast.For | ast.AsyncFor):
        return node.iter
    if isinstance(node, ast.With | ast.AsyncWith):
        return ast.Tuple(elts=[_checked(item.context_expr) for item in node.items], ctx=ast.Load())
    return _checked(node.value) if isinstance(node, ast.Expr) else node


def _checked(node: ast.expr) -> ast.expr:
    """What a test case's own check is given, in place of the check: the test case itself is never what is wrong."""
    if not _is_check(node):
        return node
    call = cast(ast.Call, node)
    return ast.Tuple(elts=[*call.args, *(keyword.value for keyword in call.keywords)], ctx=ast.Load())


def _is_check(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    is_of_test = isinstance(node.func.value, ast.Name) and node.func.value.id in ("self", "cls")
    return is_of_test and _CHECK.fullmatch(node.func.attr) is not None


def is_assertion(statement: ast.AST | None) -> bool:
    """Whether a statement only looks whether something holds: an `assert`, or a check of a test case."""
    return isinstance(statement, ast.Assert) or (isinstance(statement, ast.Expr) and _is_check(statement.value))


def _blame(suspect: Suspect, scene: Scene, error_type: str, message: str) -> int:
    rules = (
        8 * _is_none_to_blame(suspect, message),
        6 * _is_divisor(suspect, scene.statement, error_type),
        6 * _is_key(suspect, scene.statement, error_type, message),
        5 * _lacks_key(suspect, scene.statement, error_type, message),
        4 * _has_named_type(suspect, scene.types, message),
        3 * _is_quoted(suspect, message),
        2 * _is_odd_operand(suspect, scene.types, message),
        1 * (suspect.value in ("None", "[]", "{}", "''", "nan", "0", "set()", "()")),
    )
    return sum(rules)


def _is_none_to_blame(suspect: Suspect, message: str) -> bool:
    return suspect.value == "None" and "NoneType" in message


def _is_divisor(suspect: Suspect, statement: ast.AST | None, error_type: str) -> bool:
    if error_type != "ZeroDivisionError" or statement is None:
        return False
    divisions = (part for part in ast.walk(statement) if isinstance(part, ast.BinOp | ast.AugAssign))
    rights = (
        part.right if isinstance(part, ast.BinOp) else part.value
        for part in divisions
        if isinstance(part.op, ast.Div | ast.FloorDiv | ast.Mod)
    )
    return any(suspect.expression in expressions(right) for right in rights)


def _is_key(suspect: Suspect, statement: ast.AST | None, error_type: str, message: str) -> bool:
    if error_type not in ("KeyError", "IndexError") or statement is None:
        return False
    keys = [part.slice for part in ast.walk(statement) if isinstance(part, ast.Subscript)]
    is_in_key = any(suspect.expression in expressions(key) for key in keys)
    return is_in_key and (error_type == "IndexError" or suspect.value == message)


def _lacks_key(suspect: Suspect, statement: ast.AST | None, error_type: str, message: str) -> bool:
    """Whether a key that is written out was asked of this value, and is the one that is missing."""
    if error_type != "KeyError" or statement is None:
        return False
    asked = (part for part in ast.walk(statement) if isinstance(part, ast.Subscript))
    return any(ast.unparse(part.slice) == message and ast.unparse(part.value) == suspect.expression for part in asked)


def _has_named_type(suspect: Suspect, types: Mapping[str, str], message: str) -> bool:
    return types.get(suspect.expression, "\0") in _QUOTED.findall(message)


def _is_odd_operand(suspect: Suspect, types: Mapping[str, str], message: str) -> bool:
    """Of a number and a text that do not go together, the text is the one that was forgotten to convert."""
    return "operand type" in message and types.get(suspect.expression) in ("str", "NoneType", "bytes")


def _is_quoted(suspect: Suspect, message: str) -> bool:
    return len(suspect.value) > 2 and suspect.value in message


def sides(statement: ast.AST | None) -> list[ast.expr]:
    """What an assertion looks at: the sides of its comparison, or the whole of what has to be true."""
    if isinstance(statement, ast.Assert):
        looked_at: list[ast.expr] = [statement.test]
    elif isinstance(statement, ast.Expr) and _is_check(statement.value):
        looked_at = list(cast(ast.Call, statement.value).args[:2])
    else:
        return []
    found: list[ast.expr] = []
    while looked_at:
        part = looked_at.pop(0)
        if isinstance(part, ast.Compare):
            looked_at[:0] = [part.left, *part.comparators]
        elif isinstance(part, ast.BoolOp):
            looked_at[:0] = part.values
        elif isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
            looked_at.insert(0, part.operand)
        else:
            found.append(part)
    return found


def calls_in(statement: ast.AST | None) -> Sequence[str]:
    """The functions that a statement calls, by the last part of their names."""
    if statement is None:
        return ()
    found = [part.func for part in ast.walk(_evaluated(statement)) if isinstance(part, ast.Call)]
    names = [part.attr if isinstance(part, ast.Attribute) else ast.unparse(part) for part in found]
    return tuple(dict.fromkeys(names))
