"""Symbols: what a source file defines and imports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["go", "python", "javascript", "typescript"]

SUFFIXES: dict[str, Language] = {
    ".go": "go",
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "typescript",
    ".tsx": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Symbol:
    """Something that a file defines: from which line to which, and inside of what."""

    kind: str
    name: str
    line: int
    end_line: int
    depth: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Import:
    """One import, as it is written."""

    line: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Outline:
    """What a file defines and imports, in the order of its lines."""

    symbols: tuple[Symbol, ...]
    imports: tuple[Import, ...]


def language_of(path: str) -> Language | None:
    """The language of a file, by its name."""
    return SUFFIXES.get("." + path.rpartition(".")[2].casefold())
