"""What commands print: tables, JSON, and colours where a terminal shows them."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from trysquare.cli.streams import control
from trysquare.core.untrusted import escaped_json, one_line

LONGEST_CELL = 20_000
STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


def print_json(value: Any) -> None:
    """A value as readable JSON on stdout."""
    print(as_json(value))


def as_json(value: Any) -> str:
    """A value as readable JSON, in which what cannot be seen is written as JSON's own escape."""
    return escaped_json(json.dumps(value, ensure_ascii=False, indent=2))


def colours(stream: TextIO) -> bool:
    """Whether colours belong on a stream: a terminal, unless the user set NO_COLOR."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def styled(text: str, style: str, *, stream: TextIO | None = None) -> str:
    """The text in a style, where the stream shows styles."""
    shown_on = stream or sys.stdout
    if not colours(shown_on):
        return text
    begin, end = control(f"\x1b[{STYLES[style]}m", shown_on), control("\x1b[0m", shown_on)
    return f"{begin}{text}{end}"


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows in columns as wide as they need; on a terminal the last column is cut at its edge, elsewhere it is whole."""
    table = [headings, *([one_line(cell, LONGEST_CELL) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(headings) - 1)]
    room = max(20, _width() - sum(width + 2 for width in widths)) if sys.stdout.isatty() else None
    for number, row in enumerate(table):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        line = "  ".join([*cells, _cut(row[-1], room)]).rstrip()
        print(styled(line, "bold") if number == 0 else line)


def _width() -> int:
    return shutil.get_terminal_size((120, 24)).columns


def _cut(text: str, room: int | None) -> str:
    return text if room is None or len(text) <= room else text[: room - 1] + "…"


def count(number: int, word: str) -> str:
    """A number and what it counts, in the singular for one."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
