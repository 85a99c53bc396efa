"""Edits of a text that leave the rest of it alone, and errors that name a line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trysquare.core.errors import TrysquareError


class TextError(TrysquareError):
    """A text cannot be read or edited; says where and why."""

    def __init__(self, text: str, position: int, problem: str) -> None:
        self.line = text.count("\n", 0, position) + 1
        self.column = position - (text.rfind("\n", 0, position) + 1) + 1
        self.problem = problem
        super().__init__(f"line {self.line}, column {self.column}: {problem}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """Put `text` in place of what stands between two positions."""

    start: int
    end: int
    text: str = ""


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text after edits that do not overlap."""
    parts: list[str] = []
    place = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        parts += (text[place : edit.start], edit.text)
        place = edit.end
    return "".join(parts) + text[place:]


def line_break(text: str) -> str:
    """How the lines of a text end."""
    return "\r\n" if "\r\n" in text else "\n"


def indent_at(text: str, position: int) -> str:
    """The white space at the start of the line that a position stands in."""
    start = text.rfind("\n", 0, position) + 1
    line = text[start:position].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]
