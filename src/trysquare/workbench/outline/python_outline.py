"""The outline of Python sources, by Python's own parser."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.workbench.outline.symbols import Import, Outline, Symbol

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def python_outline(source: str, path: str) -> Outline:
    """What a Python file defines and imports. One that Python cannot read is refused with the line."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line})" if line else ""
        raise ToolError(
            f"`{path}` is not valid Python{where}: {getattr(error, 'msg', None) or error}.",
            code=ErrorCode.FILE_NOT_ALLOWED,
            instruction="Mend it, or read it with `file`.",
        ) from None
    imports = sorted(_imports(tree), key=lambda each: each.line)
    return Outline(symbols=tuple(_symbols(tree.body, 0)), imports=tuple(imports))


def _symbols(body: list[ast.stmt], depth: int) -> Iterator[Symbol]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield _symbol("class", node.name, node, depth)
            yield from _symbols(node.body, depth + 1)
        elif isinstance(node, _FUNCTIONS):
            yield _symbol("function", node.name, node, depth)
        elif depth == 0:
            yield from (_symbol("variable", name, node, depth) for name in _assigned(node))


def _symbol(kind: str, name: str, node: ast.stmt, depth: int) -> Symbol:
    return Symbol(kind=kind, name=name, line=node.lineno, end_line=node.end_lineno or node.lineno, depth=depth)


def _assigned(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _imports(tree: ast.Module) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield Import(line=node.lineno, text=ast.unparse(node))
