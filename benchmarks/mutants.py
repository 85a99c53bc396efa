"""Mutants by seed: one small change of one line of a program, as a programmer might have made it wrong."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SWAPS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Div,),
    ast.Mod: (ast.Mult,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutant:
    """A changed line: the number is the same in the original and in the changed file."""

    file: Path
    line: int
    operator: str
    old: str
    new: str
    function: str


def mutants_of(file: Path) -> list[Mutant]:
    """All changes of one line of a file that give another valid program."""
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    tree = ast.parse(text)
    found: dict[tuple[int, str], Mutant] = {}
    for operator, node, new, function in _changes(tree):
        if node.lineno != node.end_lineno:
            continue
        row = lines[node.lineno - 1].encode()
        changed = row[: node.col_offset] + new.encode() + row[node.end_col_offset :]
        line = changed.decode()
        if line.split() == lines[node.lineno - 1].split() or "\n" in new:
            continue
        first, last = _outermost(tree, node.lineno)
        try:
            # The statement of the module around it is all that can become invalid.
            ast.parse("".join([*lines[first - 1 : node.lineno - 1], line, *lines[node.lineno : last]]))
        except SyntaxError:
            continue
        mutant = Mutant(
            file=file, line=node.lineno, operator=operator, old=lines[node.lineno - 1], new=line, function=function
        )
        found.setdefault((node.lineno, line), mutant)
    return list(found.values())


def _outermost(tree: ast.Module, line: int) -> tuple[int, int]:
    """The first and the last line of the module's statement around a line."""
    found = next(each for each in tree.body if line <= (each.end_lineno or each.lineno))
    return min(
        [found.lineno, *(each.lineno for each in getattr(found, "decorator_list", []))]
    ), found.end_lineno or line


def choose(files: list[Path], seed: str, count: int) -> list[Mutant]:
    """Some mutants by seed, with the operators in equal shares as far as there are that many."""
    chance = random.Random(seed)
    by_operator: dict[str, list[Mutant]] = {}
    for file in sorted(files):
        for mutant in mutants_of(file):
            by_operator.setdefault(mutant.operator, []).append(mutant)
    for group in by_operator.values():
        chance.shuffle(group)
    names = sorted(by_operator)
    chosen: list[Mutant] = []
    while len(chosen) < count and any(by_operator.values()):
        chance.shuffle(names)
        chosen.extend(by_operator[name].pop() for name in names if by_operator[name])
    return chosen[:count]


def write(mutant: Mutant) -> None:
    lines = mutant.file.read_text(encoding="utf-8").splitlines(keepends=True)
    lines[mutant.line - 1] = mutant.new
    mutant.file.write_text("".join(lines), encoding="utf-8")


def _changes(tree: ast.Module) -> Iterator[tuple[str, Any, str, str]]:
    """Operator, the node to replace, the new text, and the function around it."""
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, function = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}".lstrip(".")
        children = [each for each in ast.iter_child_nodes(node) if not _is_left_out(each)]
        waiting.extend((child, function) for child in children)
        for operator, new in _of(node):
            yield operator, node, new, function
        if isinstance(node, ast.If | ast.While):
            yield "branches", node.test, f"not ({ast.unparse(node.test)})", function


def _is_left_out(node: ast.AST) -> bool:
    """Whether a node is a docstring, an import or a formatted text."""
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_docstring or isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr)


def _of(node: Any) -> Iterator[tuple[str, str]]:
    """The operators that fit a node, each with the new text."""
    match node:
        case ast.Compare() | ast.BinOp() | ast.AugAssign() | ast.BoolOp():
            yield from _of_operator(node)
        case ast.UnaryOp(op=ast.Not()):
            yield "boolean", f"({ast.unparse(node.operand)})"
        case ast.Constant():
            yield from _of_constant(node)
        case ast.Return(value=ast.expr()):
            yield "return", "return None"
        case ast.Call():
            yield from _of_call(node)
        case ast.Subscript(ctx=ast.Load()):
            yield from _of_subscript(node)
        case ast.IfExp():
            yield "branches", f"({_with(node, body=node.orelse, orelse=node.body)})"
        case _:
            pass
    if isinstance(node, ast.Expr | ast.Assign | ast.AugAssign | ast.Raise | ast.Continue | ast.Break):
        yield "removed", "pass"


def _of_operator(node: Any) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Compare):
        for other in _SWAPS.get(type(node.ops[0]), ()):
            yield "comparison", _with(node, ops=[other(), *node.ops[1:]])
        return
    name = "boolean" if isinstance(node, ast.BoolOp) else "arithmetic"
    for other in _SWAPS.get(type(node.op), ()):
        yield name, _with(node, op=other())


def _of_call(node: ast.Call) -> Iterator[tuple[str, str]]:
    if len(node.args) > 1 and not any(isinstance(each, ast.Starred) for each in node.args):
        yield "argument", _with(node, args=[node.args[1], node.args[0], *node.args[2:]])
        yield "argument", _with(node, args=node.args[:-1])
    if node.keywords:
        yield "argument", _with(node, keywords=node.keywords[:-1])


def _of_constant(node: ast.Constant) -> Iterator[tuple[str, str]]:
    value = node.value
    if isinstance(value, int | float):
        yield "constant", repr(not value if isinstance(value, bool) else value + 1)
    elif isinstance(value, str) and value:
        yield "constant", repr(value + "_")


def _of_subscript(node: ast.Subscript) -> Iterator[tuple[str, str]]:
    if isinstance(node.slice, ast.Slice):
        for field in ("lower", "upper"):
            bound = getattr(node.slice, field)
            if bound is not None:
                moved = ast.BinOp(left=bound, op=ast.Add(), right=ast.Constant(value=1))
                slices = copy.copy(node.slice)
                setattr(slices, field, moved)
                yield "slice", _with(node, slice=slices)
    elif isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
        yield "slice", _with(node, slice=ast.Constant(value=node.slice.value + 1))


def _with(node: Any, **fields: Any) -> str:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    text = ast.unparse(ast.fix_missing_locations(changed))
    return text if isinstance(node, ast.stmt) else f"({text})" if isinstance(node, ast.BoolOp | ast.BinOp) else text
