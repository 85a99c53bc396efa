"""Sources: lines and statements of Python files, read once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

_LARGEST = 2_000_000


class Sources:
    """The files that an explanation looks into. What cannot be read or parsed has no statements, and is no error."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}
        self._trees: dict[str, ast.Module | None] = {}

    def put(self, file: str, text: str) -> None:
        """Take a text for a file that there is not, such as a program of `python -c`."""
        self._lines[file] = text.splitlines()

    def line(self, file: str, line: int) -> str:
        """A line without its indentation, or nothing."""
        lines = self._read(file)
        return lines[line - 1].strip() if 0 < line <= len(lines) else ""

    def lines(self, file: str) -> list[str]:
        """All lines of a file, as they are."""
        return self._read(file)

    def statement(self, file: str, line: int) -> ast.stmt | None:
        """The innermost statement that covers a line."""
        best: ast.stmt | None = None
        for node in self._statements(file):
            if node.lineno <= line <= (node.end_lineno or node.lineno) and (best is None or node.lineno >= best.lineno):
                best = node
        return best

    def function(self, file: str, first_line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The function that begins at a line, decorators included."""
        for node in self._statements(file):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                begins = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                if begins == first_line:
                    return node
        return None

    def heads_around(self, file: str, line: int) -> list[ast.stmt]:
        """The loops and conditions that a line lies in, innermost first."""
        found = [
            node
            for node in self._statements(file)
            if isinstance(node, ast.For | ast.While | ast.AsyncFor | ast.If)
            and node.lineno < line <= (node.end_lineno or node.lineno)
        ]
        return sorted(found, key=lambda node: -node.lineno)

    def function_around(self, file: str, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The innermost function that a line lies in."""
        found = [
            node
            for node in self._statements(file)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.lineno <= line <= (node.end_lineno or node.lineno)
        ]
        return max(found, key=lambda node: node.lineno, default=None)

    def next_statement(self, file: str, line: int) -> int | None:
        """The first line from here on at which a statement begins."""
        found = {node.lineno for node in self._statements(file) if not _is_text(node)}
        return min((each for each in found if each >= line), default=None)

    def _statements(self, file: str) -> Iterator[ast.stmt]:
        if file not in self._trees:
            self._trees[file] = _parsed("\n".join(self._read(file)))
        tree = self._trees[file]
        return (node for node in ast.walk(tree) if isinstance(node, ast.stmt)) if tree else iter(())

    def _read(self, file: str) -> list[str]:
        if file not in self._lines:
            self._lines[file] = _lines_of(Path(file))
        return self._lines[file]


def _is_text(node: ast.stmt) -> bool:
    """Whether a statement is only a text, such as a docstring: nothing runs there."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _lines_of(path: Path) -> list[str]:
    try:
        if path.stat().st_size > _LARGEST:
            return []
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
