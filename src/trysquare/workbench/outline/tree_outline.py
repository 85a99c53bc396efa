"""The outline of sources by tree-sitter, where the language's grammar is installed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache
from typing import Any

from trysquare.workbench.outline.symbols import Import, Language, Outline, Symbol

_GRAMMARS: dict[Language, tuple[str, str]] = {
    "go": ("tree_sitter_go", "language"),
    "python": ("tree_sitter_python", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_tsx"),
}
_KINDS = {
    "function_definition": "function",
    "class_definition": "class",
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "class_declaration": "class",
    "abstract_class_declaration": "class",
    "method_definition": "function",
    "method_declaration": "function",
    "interface_declaration": "interface",
    "type_alias_declaration": "type",
    "enum_declaration": "enum",
    "type_spec": "type",
    "type_alias": "type",
    "var_spec": "variable",
    "const_spec": "variable",
    "variable_declarator": "variable",
    "assignment": "variable",
}
_FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "generator_function"})
_IMPORTS = frozenset({"import_statement", "import_from_statement", "future_import_statement", "import_spec"})
_CLOSED = frozenset({"function", "variable"})
"""Kinds whose inside is nobody else's business."""
_LONGEST = 200


@cache
def _parser(language: Language) -> Any:
    """The parser of a language, or None where it is not installed."""
    module, function = _GRAMMARS[language]
    try:
        tree_sitter: Any = importlib.import_module("tree_sitter")
        grammar = importlib.import_module(module)
    except ImportError:
        return None
    return tree_sitter.Parser(tree_sitter.Language(getattr(grammar, function)()))


def has_parser(language: Language) -> bool:
    """Whether a language's grammar is installed."""
    return _parser(language) is not None


def tree_outline(source: str, language: Language) -> Outline:
    """What a file defines and imports, even where a part of it cannot be parsed."""
    root = _parser(language).parse(source.encode("utf-8", "replace")).root_node
    symbols: list[Symbol] = []
    imports: list[Import] = []
    # A list in the place of recursion: sources can be nested as deeply as their author likes.
    waiting: list[tuple[Any, int, bool]] = [(root, 0, True)]
    while waiting:
        node, depth, open_to_symbols = waiting.pop()
        if node.type in _IMPORTS or _is_require(node):
            imports.append(Import(line=_line(node), text=_text(node)))
            continue
        found = list(_symbols(node, depth)) if open_to_symbols else []
        symbols += found
        closed = bool(found) and found[0].kind in _CLOSED
        inner = depth + 1 if found else depth
        waiting += [(child, inner, open_to_symbols and not closed) for child in reversed(node.named_children)]
    return Outline(symbols=tuple(symbols), imports=tuple(imports))


def _symbols(node: Any, depth: int) -> Iterator[Symbol]:
    kind = _KINDS.get(node.type)
    if kind is None or (kind == "variable" and depth > 0):
        return
    if kind == "variable" and _is_function(node):
        kind = "function"
    outer = _with_decorators(node)
    for name in _names(node):
        yield Symbol(kind=kind, name=name, line=_line(node), end_line=outer.end_point[0] + 1, depth=depth)


def _names(node: Any) -> list[str]:
    fields = node.children_by_field_name("left" if node.type == "assignment" else "name")
    return [_text(field) for field in fields if field.type.endswith("identifier") or node.type != "assignment"]


def _is_function(node: Any) -> bool:
    value = node.child_by_field_name("value")
    return value is not None and value.type in _FUNCTION_VALUES


def _with_decorators(node: Any) -> Any:
    return node.parent if node.parent is not None and node.parent.type == "decorated_definition" else node


def _is_require(node: Any) -> bool:
    if node.type != "call_expression":
        return False
    function = node.child_by_field_name("function")
    return function is not None and _text(function) == "require"


def _line(node: Any) -> int:
    return int(node.start_point[0]) + 1


def _text(node: Any) -> str:
    return bytes(node.text).decode("utf-8", "replace").replace("\n", " ")[:_LONGEST]
