"""Collect the texts that users and models read: templates of errors, help, tool descriptions, logs and sentences.

Everything is found in the syntax tree of `src/trysquare`, so a moved or renamed module needs no change here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "trysquare"
GOLDEN = Path(__file__).parent / "golden.txt"
TITLE = "Texts of Trysquare, by module. Written by `python -m tests.texts.refresh`; read it as a document.\n"

HOLE = "{…}"
"""What stands for a value in a template."""
PLACES = frozenset(
    {"message", "instruction", "hint", "help", "description", "usage", "epilog", "title", "explanation", "text"}
    | {"use_when", "avoid_when", "limits", "fix", "reason", "failure", "warning", "problem", "advice"}
)
"""Keyword arguments that hold texts, wherever they are passed."""
LOG_METHODS = frozenset({"debug", "info", "warning", "error", "exception", "critical"})
PRINTERS = frozenset({"print", "write", "writeln"})
TOOL_MAKERS = frozenset({
    "tool", "workbench_tool", "debug_tool", "_builtin_tool", "_writing_tool", "declare", "prompt", "resource",
})  # fmt: skip

QUERIES = ("SELECT ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "ALTER ", "WITH ")
"""How SQL begins, which nobody reads."""

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, order=True)
class Text:
    """One text: which module has it, what it is for, and the template itself."""

    module: str
    kind: str
    template: str


@dataclass(frozen=True)
class ErrorClasses:
    """Error classes of the package by name, each with the code that it has unless another is passed."""

    codes: Mapping[str, str]

    def kind(self, call: ast.Call) -> str | None:
        """`NotFound TOOL_NOT_FOUND` for a call that makes an error, `None` for any other."""
        name = _called(call)
        if name not in self.codes and not name.endswith("Error"):
            return None
        passed = next((item.value for item in call.keywords if item.arg == "code"), None)
        code = passed.attr if isinstance(passed, ast.Attribute) and passed.attr.isupper() else self.codes.get(name, "")
        return f"{name} {code}".rstrip()


def collect() -> list[Text]:
    """Every text of the package, sorted by module and kind, each once."""
    trees = {_module(path): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
    errors = error_classes(trees.values())
    return sorted({text for module, tree in trees.items() for text in texts_of(module, tree, errors)})


def render(texts: Iterable[Text]) -> str:
    """The texts as a document: a heading for each module and for each kind, one indented paragraph for each text."""
    lines, module, kind = [TITLE], "", ""
    for text in texts:
        if text.module != module:
            module, kind = text.module, ""
            lines.append(f"\n# {module}\n")
        if text.kind != kind:
            kind = text.kind
            lines.append(f"\n{kind}\n")
        body = text.template.strip("\n").split("\n")
        lines.append("  - " + "\n    ".join(line.rstrip() for line in body).rstrip() + "\n")
    return "".join(lines)


def texts_of(module: str, tree: ast.Module, errors: ErrorClasses) -> Iterator[Text]:
    """The texts of one module: first those whose purpose the syntax shows, then every other sentence."""
    seen = _docstrings(tree)
    described = _tool_functions(tree)
    for node in ast.walk(tree):
        if isinstance(node, _Function) and node.name in described and (text := ast.get_docstring(node)):
            yield Text(module, "description", text)
        elif isinstance(node, ast.Assign) and _last_name(node.targets[0]).startswith("_ABOUT"):
            # The help of an option, too long for its line.
            yield Text(module, "help", f"help: {_template(node.value)}")
        elif isinstance(node, ast.Call):
            kind = errors.kind(node) or _kind_of_call(node)
            if templates := list(_templates(node, kind, seen)):
                yield Text(module, kind or "text", "\n".join(templates))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in seen:
            template = _template(node)
            if template and is_sentence(template):
                seen.update(id(part) for part in ast.walk(node))
                yield Text(module, "text", template)


def _templates(call: ast.Call, kind: str | None, seen: set[int]) -> Iterator[str]:
    """The texts of one call, so that the message and the instruction of an error stay together."""
    for place, argument in _text_arguments(call, kind):
        for node in _branches(argument):
            template = _template(node)
            if template and " " in template.strip() and id(node) not in seen:
                seen.update(id(part) for part in ast.walk(node) if not isinstance(part, ast.FormattedValue))
                yield template if place == "message" else f"{place}: {template}"


def error_classes(trees: Iterable[ast.Module]) -> ErrorClasses:
    """Classes that reach an exception through their bases, with the default codes that they inherit."""
    classes = {node.name: node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}

    def bases(name: str) -> list[str]:
        return [_last_name(base) for base in classes[name].bases] if name in classes else []

    def is_error(name: str, depth: int = 8) -> bool:
        if name.endswith(("Error", "Exception")):
            return True
        return depth > 0 and any(is_error(base, depth - 1) for base in bases(name))

    def code(name: str, depth: int = 8) -> str:
        own = (_default_code(statement) for statement in classes[name].body) if name in classes else iter(())
        found = next(filter(None, own), "")
        return found or next((c for base in bases(name) if depth and (c := code(base, depth - 1))), "")

    return ErrorClasses({name: code(name) for name in classes if is_error(name)})


def is_sentence(text: str) -> bool:
    """Whether a literal reads like prose: several words, a capital or a placeholder first, a full stop at the end."""
    start, stripped = text.lstrip()[:1], text.rstrip()
    if text.lstrip().startswith(QUERIES):
        return False
    return text.count(" ") >= 2 and (start.isupper() or start in "`{") and stripped.endswith((".", "?", ":", "!"))


def _module(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _docstrings(tree: ast.Module) -> set[int]:
    """Strings that stand as statements: for readers of the code."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value) | ast.Call(func=value):
            return _last_name(value)
        case _:
            return ""


def _called(call: ast.Call) -> str:
    return _last_name(call.func)


def _default_code(statement: ast.stmt) -> str:
    match statement:
        case (
            ast.Assign(targets=[ast.Name(id="default_code")], value=ast.Attribute(attr=code))
            | ast.AnnAssign(target=ast.Name(id="default_code"), value=ast.Attribute(attr=code))
        ):
            return code
        case _:
            return ""


def _tool_functions(tree: ast.Module) -> set[str]:
    """Functions whose docstring becomes a description: decorated as a tool or a prompt, or passed to what makes one."""
    decorated = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, _Function) and any(_last_name(each) in TOOL_MAKERS for each in node.decorator_list)
    }
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) in TOOL_MAKERS)
    return decorated | {_last_name(call.args[0]) for call in calls if call.args}


def _kind_of_call(call: ast.Call) -> str | None:
    match call.func:
        case ast.Attribute(value=owner, attr=name) if name in LOG_METHODS and "log" in _last_name(owner).lower():
            return "log"
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in PRINTERS:
            return "output"
        case (
            ast.Attribute(attr="add_argument" | "add_parser" | "add_argument_group")
            | ast.Name(id="ArgumentParser" | "option")
        ):
            return "help"
        case _:
            return None


def _text_arguments(call: ast.Call, kind: str | None) -> Iterator[tuple[str, ast.expr]]:
    """Arguments of a call that hold texts. The first of an error, a log record or a printer has no keyword."""
    if kind not in (None, "help") and call.args:
        first = call.args[0]
        if kind != "output" or is_sentence(_template(first) or ""):
            yield "message", first
    for keyword in call.keywords:
        if keyword.arg in PLACES:
            yield keyword.arg, keyword.value


def _branches(node: ast.expr) -> Iterator[ast.expr]:
    """The alternatives of a conditional text."""
    match node:
        case ast.IfExp(body=body, orelse=orelse):
            yield from _branches(body)
            yield from _branches(orelse)
        case ast.BoolOp(values=values):
            for value in values:
                yield from _branches(value)
        case _:
            yield node


def _template(node: ast.AST) -> str | None:
    """The text of a literal, with a hole for each value; `None` where there is no literal."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_template(value) or HOLE for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = _template(left), _template(right)
            return None if parts == (None, None) else "".join(part or HOLE for part in parts)
        case ast.BinOp(left=left, op=ast.Mod()):
            return _template(left)
        case ast.Call(func=ast.Attribute(value=ast.Constant() as receiver, attr="format")):
            return _template(receiver)
        case _:
            return None
