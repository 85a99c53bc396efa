"""Symbols and imports of a source file."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

from trysquare.core.errors import ErrorCode, ToolError

Language: TypeAlias = Literal["go", "python", "javascript", "typescript"]

_LANGUAGES: dict[Language, tuple[str, ...]] = {
    "go": (".go",),
    "python": (".py", ".pyi"),
    "javascript": (".js", ".jsx", ".mjs", ".cjs"),
    "typescript": (".ts", ".tsx", ".mts", ".cts"),
}
SUFFIXES: dict[str, Language] = {suffix: language for language, suffixes in _LANGUAGES.items() for suffix in suffixes}


@dataclass(frozen=True, kw_only=True, slots=True)
class Symbol:
    kind: str
    name: str
    line: int
    end_line: int
    depth: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Import:
    line: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Outline:
    symbols: tuple[Symbol, ...]
    imports: tuple[Import, ...]


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def python_outline(source: str, path: str) -> Outline:
    """Outline a Python file with `ast`; a syntax error is reported with its line."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line})" if line else ""
        raise ToolError(
            f"`{path}` is not valid Python{where}: {getattr(error, 'msg', None) or error}.",
            code=ErrorCode.FILE_NOT_ALLOWED,
            instruction="Fix it, or read it with `file`.",
        ) from None
    imports = [each for each in ast.walk(tree) if isinstance(each, (ast.Import, ast.ImportFrom))]
    return Outline(
        symbols=tuple(_symbols(tree.body, 0)),
        imports=tuple(
            Import(line=each.lineno, text=ast.unparse(each)) for each in sorted(imports, key=lambda each: each.lineno)
        ),
    )


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


_GRAMMARS: dict[Language, tuple[str, str]] = {
    "go": ("tree_sitter_go", "language"),
    "python": ("tree_sitter_python", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_tsx"),
}
_NODES = {
    "function": "function_definition function_declaration generator_function_declaration method_definition "
    "method_declaration",
    "class": "class_definition class_declaration abstract_class_declaration",
    "interface": "interface_declaration",
    "enum": "enum_declaration",
    "type": "type_alias_declaration type_spec type_alias",
    "variable": "var_spec const_spec variable_declarator assignment",
}
_KINDS = {node: kind for kind, nodes in _NODES.items() for node in nodes.split()}
_FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "generator_function"})
_IMPORTS = frozenset({"import_statement", "import_from_statement", "future_import_statement", "import_spec"})
_CLOSED = frozenset({"function", "variable"})
"""Kinds whose inner definitions are local."""
_MAX_TEXT = 200


@cache
def _parser(language: Language) -> Any:
    """Parser of a language; None if it is not installed."""
    module, function = _GRAMMARS[language]
    try:
        tree_sitter: Any = importlib.import_module("tree_sitter")
        grammar = importlib.import_module(module)
    except ImportError:
        return None
    return tree_sitter.Parser(tree_sitter.Language(getattr(grammar, function)()))


def has_parser(language: Language) -> bool:
    return _parser(language) is not None


def tree_outline(source: str, language: Language) -> Outline:
    """Outline with tree-sitter, which tolerates syntax errors."""
    root = _parser(language).parse(source.encode("utf-8", "replace")).root_node
    symbols: list[Symbol] = []
    imports: list[Import] = []
    # A stack instead of recursion: sources can be nested arbitrarily deep.
    waiting: list[tuple[Any, int, bool]] = [(root, 0, True)]
    while waiting:
        node, depth, open_to_symbols = waiting.pop()
        if node.type in _IMPORTS or _is_require(node):
            imports.append(Import(line=_line(node), text=_text(node)))
            continue
        found = list(_tree_symbols(node, depth)) if open_to_symbols else []
        symbols += found
        closed = bool(found) and found[0].kind in _CLOSED
        inner = depth + 1 if found else depth
        waiting += [(child, inner, open_to_symbols and not closed) for child in reversed(node.named_children)]
    return Outline(symbols=tuple(symbols), imports=tuple(imports))


def _tree_symbols(node: Any, depth: int) -> Iterator[Symbol]:
    kind = _KINDS.get(node.type)
    if kind is None or (kind == "variable" and depth > 0):
        return
    value = node.child_by_field_name("value") if kind == "variable" else None
    if value is not None and value.type in _FUNCTION_VALUES:
        kind = "function"
    outer = node.parent if node.parent is not None and node.parent.type == "decorated_definition" else node
    fields = node.children_by_field_name("left" if node.type == "assignment" else "name")
    names = [_text(field) for field in fields if field.type.endswith("identifier") or node.type != "assignment"]
    for name in names:
        yield Symbol(kind=kind, name=name, line=_line(node), end_line=outer.end_point[0] + 1, depth=depth)


def _is_require(node: Any) -> bool:
    function = node.child_by_field_name("function") if node.type == "call_expression" else None
    return function is not None and _text(function) == "require"


def _line(node: Any) -> int:
    return int(node.start_point[0]) + 1


def _text(node: Any) -> str:
    return bytes(node.text).decode("utf-8", "replace").replace("\n", " ")[:_MAX_TEXT]


def can_outline(language: Language) -> bool:
    return language == "python" or has_parser(language)


def outline_of(path: str, source: str) -> Outline:
    language = SUFFIXES.get("." + path.rpartition(".")[2].casefold())
    if language is None:
        raise ToolError(
            f"Unsupported language of `{path}`; supported are {', '.join(sorted(_LANGUAGES))}.",
            code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
            instruction="Read it with `file`, or search in it.",
        )
    if has_parser(language):
        return tree_outline(source, language)
    if language == "python":
        return python_outline(source, path)
    raise no_parser(language)


def no_parser(language: Language) -> ToolError:
    return ToolError(
        f"Cannot outline {language}: its grammar is not installed.",
        code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
        instruction="Use `search` with the action grep. The user can run: pip install 'trysquare[code]'.",
    )
