"""Callables of rules: whether a scanner that a rule names is there, found out without running any of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path


def callable_problem(dotted: str) -> str | None:
    """Why `package.module:attribute` cannot be used, or None where it can, as far as can be told by reading."""
    module, _, name = dotted.partition(":")
    found = _module(module)
    if found is None:
        return f"there is no module `{module}`"
    tree = _parsed(found)
    if tree is None:
        return None
    if isinstance(tree, str):
        return f"the module `{module}` cannot be read: {tree}"
    names = set(_names(tree.body))
    # A module that imports everything of another one, or answers for names itself, can have any name.
    return None if name in names or names & {"*", "__getattr__"} else f"the module `{module}` has no `{name}`"


def _module(dotted: str) -> ModuleSpec | None:
    pieces = dotted.split(".")
    if not all(piece.isidentifier() for piece in pieces):
        return None
    try:
        found: ModuleSpec | None = find_spec(pieces[0])
    except ValueError:
        return None  # a module that was made by hand, such as `__main__`, has no place to look in
    for count in range(2, len(pieces) + 1):
        if found is None or found.submodule_search_locations is None:
            return None
        found = PathFinder.find_spec(".".join(pieces[:count]), list(found.submodule_search_locations))
    return found


def _parsed(found: ModuleSpec) -> ast.Module | str | None:
    """The module's code; what is wrong with it; or None where it has no source to read."""
    if found.origin is None or not found.origin.endswith(".py"):
        return None
    try:
        return ast.parse(Path(found.origin).read_bytes())
    except OSError as error:
        return error.strerror or str(error)
    except (SyntaxError, ValueError, RecursionError) as error:
        return str(error)


def _names(body: list[ast.stmt]) -> Iterator[str]:
    """The names that a module binds, also within `if`, `try` and `with`."""
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (each.asname or each.name.partition(".")[0] for each in names)
            case ast.Assign() | ast.AnnAssign():
                yield from (each.id for each in ast.walk(statement) if isinstance(each, ast.Name))
            case ast.If(body=first, orelse=other):
                yield from _names([*first, *other])
            case ast.Try(body=first, orelse=other, finalbody=last, handlers=handlers):
                yield from _names([*first, *other, *last, *(each for one in handlers for each in one.body)])
            case ast.With(body=inner):
                yield from _names(inner)
            case _:
                continue
