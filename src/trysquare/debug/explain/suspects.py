"""Suspects: the values of a failing line that the exception may be about."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_QUOTED = re.compile(r"'([A-Za-z_][\w.]*)'")
_MISSING_NAME = re.compile(r"(?:name|variable) '(\w+)'")
_CHECK = re.compile(r"(?:assert|fail)(?:_?[A-Za-z]\w*)?")
"""Methods of a test case that fail: `self.assertEqual`, `self.fail`."""
_EVIDENCE = 2
"""Score from which on a value is a suspect; being empty, or merely on the line, is not enough."""
_EMPTY = ("None", "[]", "{}", "''", "nan", "0", "set()", "()")
_LONGEST = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspect:
    """An expression of the failing line, and the text of its value."""

    expression: str
    value: str


@dataclass(frozen=True, kw_only=True, slots=True)
class FailingLine:
    """The statement that failed, and the values of its frame."""

    statement: ast.AST | None
    values: Mapping[str, str]
    """Names, and attributes such as `self.total`, with the texts of their values."""
    types: Mapping[str, str]


def values_of(node: ast.AST | None, line: FailingLine) -> list[Suspect]:
    """The recorded values that a part of the line names; functions, classes and modules are left out."""
    names = [name for name in dict.fromkeys(expressions(node)) if name in line.values]
    found = [Suspect(expression=name, value=line.values[name]) for name in names]
    return [each for each in found if not each.value.startswith(("<function", "<class", "<module"))]


def suspects(line: FailingLine, error_type: str, message: str) -> list[Suspect]:
    """The values with the most evidence in the exception's message; several if they have the same."""
    scored = [(_score(each, line, error_type, message), each) for each in values_of(line.statement, line)]
    best = max((score for score, _ in scored), default=0)
    return [suspect for score, suspect in scored if score == best and score >= _EVIDENCE]


def missing_name(error_type: str, message: str) -> str | None:
    """The undefined name of a NameError."""
    if error_type in ("NameError", "UnboundLocalError") and (found := _MISSING_NAME.search(message)):
        return found.group(1)
    return None


def expressions(node: ast.AST | None) -> Iterator[str]:
    """The names, attributes and subscripts that a statement reads, outermost first."""
    if node is None:
        return
    for part in ast.walk(_evaluated(node)):
        if isinstance(part, ast.Attribute | ast.Subscript) and not isinstance(part.ctx, ast.Store):
            text = ast.unparse(part)
            if len(text) <= _LONGEST:
                yield text
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            yield part.id


def name_called(call: ast.AST) -> str:
    """The last part of the name that a call is made by; empty for anything else."""
    if not isinstance(call, ast.Call):
        return ""
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)


def calls_in(statement: ast.AST | None) -> Sequence[str]:
    """The functions that a statement calls, by the last part of their names."""
    parts = () if statement is None else ast.walk(_evaluated(statement))
    return tuple(dict.fromkeys(name_called(part) for part in parts if isinstance(part, ast.Call)))


def is_assertion(statement: ast.AST | None) -> bool:
    """Whether a statement only checks something: an `assert`, or a check of a test case."""
    return isinstance(statement, ast.Assert) or (isinstance(statement, ast.Expr) and bool(_check(statement.value)))


def compared_in(statement: ast.AST | None) -> list[ast.expr]:
    """The operands of an assertion: the sides of its comparison, or the whole condition."""
    waiting: list[ast.expr] = []
    if isinstance(statement, ast.Assert):
        waiting = [statement.test]
    elif isinstance(statement, ast.Expr) and (check := _check(statement.value)) is not None:
        waiting = check.args[:2]
    found: list[ast.expr] = []
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, ast.Compare):
            waiting[:0] = [part.left, *part.comparators]
        elif isinstance(part, ast.BoolOp):
            waiting[:0] = part.values
        elif isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
            waiting.insert(0, part.operand)
        else:
            found.append(part)
    return found


def _evaluated(node: ast.AST) -> ast.AST:
    """The part of a statement that its own line runs: the head of a loop or condition."""
    if isinstance(node, ast.If | ast.While):
        return node.test
    if isinstance(node, ast.For | ast.AsyncFor):
        return node.iter
    if isinstance(node, ast.With | ast.AsyncWith):
        return ast.Tuple(elts=[_checked(item.context_expr) for item in node.items], ctx=ast.Load())
    return _checked(node.value) if isinstance(node, ast.Expr) else node


def _checked(node: ast.expr) -> ast.expr:
    """The arguments of a test case's check in place of the check: the test case itself is never what is wrong."""
    if (call := _check(node)) is None:
        return node
    return ast.Tuple(elts=[*call.args, *(keyword.value for keyword in call.keywords)], ctx=ast.Load())


def _check(node: ast.expr) -> ast.Call | None:
    """The call of a check of a test case, if a node is one."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name)) if _CHECK.fullmatch(name):
            return node
        case _:
            return None


def _score(suspect: Suspect, line: FailingLine, error_type: str, message: str) -> int:
    value, kind = suspect.value, line.types.get(suspect.expression, "\0")
    rules = (
        8 * (value == "None" and "NoneType" in message),
        6 * _is_divisor(suspect, line.statement, error_type),
        6 * _is_key(suspect, line.statement, error_type, message),
        5 * _lacks_key(suspect, line.statement, error_type, message),
        4 * (kind in _QUOTED.findall(message)),
        3 * (len(value) > 2 and value in message),
        # Of a number and a text that cannot be combined, the text was not converted.
        2 * ("operand type" in message and kind in ("str", "NoneType", "bytes")),
        1 * (value in _EMPTY),
    )
    return sum(rules)


def _is_divisor(suspect: Suspect, statement: ast.AST | None, error_type: str) -> bool:
    if error_type != "ZeroDivisionError" or statement is None:
        return False
    divisions = (part for part in ast.walk(statement) if isinstance(part, ast.BinOp | ast.AugAssign))
    divisors = (
        part.right if isinstance(part, ast.BinOp) else part.value
        for part in divisions
        if isinstance(part.op, ast.Div | ast.FloorDiv | ast.Mod)
    )
    return any(suspect.expression in expressions(divisor) for divisor in divisors)


def _is_key(suspect: Suspect, statement: ast.AST | None, error_type: str, message: str) -> bool:
    if error_type not in ("KeyError", "IndexError"):
        return False
    is_in_key = any(suspect.expression in expressions(part.slice) for part in _subscripts(statement))
    return is_in_key and (error_type == "IndexError" or suspect.value == message)


def _lacks_key(suspect: Suspect, statement: ast.AST | None, error_type: str, message: str) -> bool:
    """Whether a literal key of this value is the missing one."""
    return error_type == "KeyError" and any(
        ast.unparse(part.slice) == message and ast.unparse(part.value) == suspect.expression
        for part in _subscripts(statement)
    )


def _subscripts(statement: ast.AST | None) -> list[ast.Subscript]:
    return [part for part in ast.walk(statement) if isinstance(part, ast.Subscript)] if statement else []
