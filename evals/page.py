"""The page: tables in the terminal, and between the markers of a page in the docs."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.tables import Table

_PACKAGES = ("trysquare", "xllamacpp", "llguidance", "pydantic-ai-slim", "bfcl-eval")


def print_tables(tables: Sequence[Table]) -> None:
    """Every table in the terminal."""
    for table in tables:
        print(f"\n{table.title}")
        rows = [table.head, *table.rows]
        widths = [max(len(row[column]) for row in rows) for column in range(len(table.head))]
        for row in rows:
            print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def write_tables(page: Path, part: str, command: str, tables: Sequence[Table]) -> None:
    """Put the tables into one part of the page, between `<!-- PART: start -->` and `<!-- PART: end -->`."""
    start, end = f"<!-- {part}: start -->", f"<!-- {part}: end -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(start)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"{page} has no place for {part}: it needs a line `{start}` and after it a line `{end}`.")
    parts = [made_by(command), *map(_markdown, tables)]
    page.write_text(before + start + "\n\n" + "\n\n".join(parts) + "\n\n" + end + after, encoding="utf-8")


def made_by(command: str) -> str:
    """With what the figures were made."""
    known = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    machine = f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}, Python {platform.python_version()}"
    return f"Made by `{command}`: {machine}; {known}."


def _markdown(table: Table) -> str:
    rows = [table.head, ["---"] * len(table.head), *table.rows]
    return "\n".join([f"### {table.title}", "", *("| " + " | ".join(row) + " |" for row in rows)])
