"""Syntax of the program's files: the statement of a line, what it reads and binds, and the blocks around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FunctionType
from typing import Any, cast

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)
_BLOCKS = (ast.If, ast.While, ast.For, ast.AsyncFor, ast.With, ast.AsyncWith, ast.Try, *_SCOPES)
_CHANGING = frozenset(
    (
        "append", "add", "extend", "insert", "update", "setdefault", "pop", "popitem", "remove", "discard", "clear",
        "sort", "reverse", "write", "put", "send", "appendleft", "extendleft",
    )
)  # fmt: skip
"""Methods that change the value that they are called on."""


class Statement:
    """A simple statement, or the head of a compound one."""

    def __init__(self, node: ast.stmt, scope: Scope, blocks: tuple[Statement, ...], first: int, last: int) -> None:
        self.node = node
        self.scope = scope
        self.blocks = blocks
        """The heads of the blocks around it within its function, outermost first."""
        self.line = node.lineno
        self.first = first
        self.last = last
        self.reads: set[str] = set()
        self.attributes: set[str] = set()
        """Names of the attributes that it reads."""
        self.calls: set[str] = set()
        self.binds: set[str] = set()
        self.binds_attributes: set[str] = set()
        for part in self.parts():
            self._note(part)

    def parts(self) -> Iterator[ast.AST]:
        """The nodes that the statement's own lines have: of a compound one those of its head."""
        waiting: list[ast.AST] = list(heads(self.node))
        while waiting:
            part = waiting.pop(0)
            yield part
            waiting.extend(ast.iter_child_nodes(part))

    def _note(self, part: ast.AST) -> None:
        if isinstance(part, ast.Name):
            (self.reads if isinstance(part.ctx, ast.Load) else self.binds).add(part.id)
        elif isinstance(part, ast.Attribute):
            if isinstance(part.ctx, ast.Load):
                self.attributes.add(part.attr)
            else:
                self.binds_attributes.add(part.attr)
                self._bind_root(part.value)
        elif isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
            self._bind_root(part.value)
        elif isinstance(part, ast.Call):
            if isinstance(part.func, ast.Attribute):
                self.calls.add(part.func.attr)
                if part.func.attr in _CHANGING:
                    self._bind_root(part.func.value)
            elif isinstance(part.func, ast.Name):
                self.calls.add(part.func.id)
        elif isinstance(part, ast.ExceptHandler) and part.name:
            self.binds.add(part.name)

    def _bind_root(self, value: ast.expr) -> None:
        """Note that a part of a value is written: `value[0] = 1`, `value.name = 1` and `value.append(1)`."""
        while isinstance(value, (ast.Subscript, ast.Call)):
            value = value.value if isinstance(value, ast.Subscript) else value.func
        if isinstance(value, ast.Name) and value.id not in ("self", "cls"):
            # What a method sets of its own object is followed by the attributes.
            self.binds.add(value.id)
        elif isinstance(value, ast.Attribute):
            self.binds_attributes.add(value.attr)
            self._bind_root(value.value)

    @property
    def is_definition(self) -> bool:
        return isinstance(self.node, _SCOPES)

    @property
    def is_leaving(self) -> bool:
        return isinstance(self.node, (ast.Return, ast.Raise, ast.Continue, ast.Break))


class Scope:
    """A module, class or function, with its statements in order."""

    def __init__(self, node: ast.AST, name: str, parent: Scope | None) -> None:
        self.node = node
        self.name = name
        """Qualified, as in `Class.method`."""
        self.parent = parent
        self.statements: list[Statement] = []
        arguments = node.args if isinstance(node, _FUNCTIONS) else None
        self.parameters = [] if arguments is None else [each.arg for each in all_arguments(arguments)]

    @property
    def is_function(self) -> bool:
        return isinstance(self.node, _FUNCTIONS)

    @property
    def first_line(self) -> int:
        """As code objects have it: decorators included."""
        return min(
            [getattr(self.node, "lineno", 1), *(each.lineno for each in getattr(self.node, "decorator_list", []))]
        )

    def inner_function(self) -> Scope | None:
        scope: Scope | None = self
        while scope is not None and not scope.is_function:
            scope = scope.parent
        return scope


class Module:
    """A parsed file."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.tree = ast.parse(text)
        self.lines = text.splitlines()
        self.by_line: dict[int, Statement] = {}
        self.scopes: list[Scope] = []
        self.imported: set[str] = set()
        self.functions: list[FunctionType] | None = None
        """The functions of the file in this process, once they were looked for."""
        self._add(self.tree.body, self._scope(self.tree, "", None), ())

    def scope_at(self, first_line: int) -> Scope | None:
        return next((each for each in self.scopes if each.is_function and each.first_line == first_line), None)

    def _scope(self, node: ast.AST, name: str, parent: Scope | None) -> Scope:
        scope = Scope(node, name, parent)
        self.scopes.append(scope)
        return scope

    def _add(self, body: list[ast.stmt], scope: Scope, blocks: tuple[Statement, ...]) -> None:
        for node in body:
            first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
            last = _end_of_head(node)
            statement = Statement(node, scope, blocks, first, last)
            scope.statements.append(statement)
            for line in range(first, last + 1):
                self.by_line[line] = statement
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self.imported.update((each.asname or each.name).partition(".")[0] for each in node.names)
            if isinstance(node, _SCOPES):
                inner = self._scope(node, f"{scope.name}.{node.name}".lstrip("."), scope)
                self._add(node.body, inner, () if isinstance(node, _FUNCTIONS) else (*blocks, statement))
            else:
                for inner_body in bodies(node):
                    self._add(inner_body, scope, (*blocks, statement))


def bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The bodies of a compound statement."""
    for name in ("body", "orelse", "finalbody"):
        found: Any = getattr(node, name, None)
        if isinstance(found, list):
            yield found
    for handler in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
        yield handler.body


def heads(node: ast.stmt) -> list[ast.AST]:
    """The parts of a statement that run with it, and not with the statements in it."""
    if not isinstance(node, _BLOCKS) and not hasattr(node, "cases"):
        return [node]
    if isinstance(node, _FUNCTIONS):
        defaults = [each for each in [*node.args.defaults, *node.args.kw_defaults] if each is not None]
        return [*node.decorator_list, *defaults]
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases]
    parts: list[ast.AST] = []
    for name in ("test", "target", "iter", "items", "subject"):
        found: Any = getattr(node, name, [])
        parts.extend(cast(list[ast.AST], found) if isinstance(found, list) else [found])
    for handler in getattr(node, "handlers", []):
        parts.extend([handler.type] if handler.type is not None else [])
    return parts


def all_arguments(arguments: ast.arguments) -> list[ast.arg]:
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [*named, *(each for each in (arguments.vararg, arguments.kwarg) if each is not None)]


def _end_of_head(node: ast.stmt) -> int:
    inner = [body[0] for body in bodies(node) if body]
    if not inner:
        return node.end_lineno or node.lineno
    starts = [min([each.lineno, *(part.lineno for part in getattr(each, "decorator_list", []))]) for each in inner]
    return max(node.lineno, min(starts) - 1)


class Program:
    """The parsed files of a program. A file that cannot be read or parsed has no statements."""

    def __init__(self) -> None:
        self._modules: dict[str, Module | None] = {}

    def module(self, file: str) -> Module | None:
        if file not in self._modules:
            try:
                with open(file, encoding="utf-8", errors="replace") as source:
                    self._modules[file] = Module(file, source.read())
            except (OSError, SyntaxError, ValueError, RecursionError):
                self._modules[file] = None
        return self._modules[file]

    def statement(self, file: str, line: int) -> Statement | None:
        module = self.module(file)
        return None if module is None else module.by_line.get(line)
