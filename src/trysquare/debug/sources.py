"""Source files as lines and statements; locations relative to the workspace."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_MAX_BYTES = 2_000_000


def relative(location: str, root: str) -> str:
    """Return a location relative to the workspace, if it is inside."""
    return location.removeprefix(root.rstrip(os.sep) + os.sep) if root else location


class Sources:
    """Cache of source files. A file that cannot be read or parsed has no lines or no statements."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}
        self._trees: dict[str, ast.Module | None] = {}

    def put(self, file: str, text: str) -> None:
        """Add a text under a file name that does not exist, such as the program of `python -c`."""
        self._lines[file] = text.splitlines()

    def line(self, file: str, line: int) -> str:
        """Return a line without its indentation, or an empty string."""
        lines = self.lines(file)
        return lines[line - 1].strip() if 0 < line <= len(lines) else ""

    def lines(self, file: str) -> list[str]:
        if file not in self._lines:
            path = Path(file)
            try:
                text = path.read_text("utf-8", errors="replace") if path.stat().st_size <= _MAX_BYTES else ""
            except OSError:
                text = ""
            self._lines[file] = text.splitlines()
        return self._lines[file]

    def statement(self, file: str, line: int) -> ast.stmt | None:
        """Return the innermost statement that covers a line."""
        # Of several that begin at the same line the innermost, which the walk comes to last.
        return max(reversed(self._around(file, line)), key=lambda node: node.lineno, default=None)

    def function(self, file: str, first_line: int) -> Function | None:
        """Return the function that begins at a line, decorators included."""
        for node in self._statements(file):
            if isinstance(node, Function) and first_line == min(part.lineno for part in (node, *node.decorator_list)):
                return node
        return None

    def function_around(self, file: str, line: int) -> Function | None:
        """Return the innermost function that contains a line."""
        found = [node for node in self._around(file, line) if isinstance(node, Function)]
        return max(found, key=lambda node: node.lineno, default=None)

    def blocks_around(self, file: str, line: int) -> list[ast.stmt]:
        """Return the loops and conditions that contain a line, innermost first."""
        kinds = (ast.For, ast.While, ast.AsyncFor, ast.If)
        found = [node for node in self._around(file, line) if isinstance(node, kinds) and node.lineno < line]
        return sorted(found, key=lambda node: -node.lineno)

    def next_statement(self, file: str, line: int) -> int | None:
        """Return the first line from here on at which a statement begins; docstrings do not run."""
        found = {
            node.lineno
            for node in self._statements(file)
            if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        }
        return min((each for each in found if each >= line), default=None)

    def _around(self, file: str, line: int) -> list[ast.stmt]:
        return [node for node in self._statements(file) if node.lineno <= line <= (node.end_lineno or node.lineno)]

    def _statements(self, file: str) -> Iterator[ast.stmt]:
        if file not in self._trees:
            try:
                self._trees[file] = ast.parse("\n".join(self.lines(file)))
            except (SyntaxError, ValueError, RecursionError):
                self._trees[file] = None
        tree = self._trees[file]
        return (node for node in ast.walk(tree) if isinstance(node, ast.stmt)) if tree else iter(())
