"""The results as tables: figures side by side, ratios of ours to theirs, and whether each target is met."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.peers.known import versions
from benchmarks.sections import SECTIONS, Results
from benchmarks.servers import Plan
from benchmarks.tables import Table

_BLOCK = re.compile(r"<!-- figures of ([a-z -]+): start -->\n.*?<!-- figures of \1: end -->", re.DOTALL)
"""The place of a page for the figures of some sections."""


def print_report(results: Results, sections: Sequence[str]) -> None:
    """Everything in the terminal."""
    for table in tables(results, sections):
        print(f"\n{table.title}")
        rows = [table.head, *table.rows]
        widths = [max(len(row[column]) for row in rows) for column in range(len(table.head))]
        for row in rows:
            print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def write_pages(pages: Iterable[Path], results: Results, plan: Plan, sections: Sequence[str]) -> list[Path]:
    """Write the figures into every place of the pages whose sections were all measured, and return these pages."""
    written: list[Path] = []
    for page in pages:
        before = page.read_text(encoding="utf-8")
        after = _BLOCK.sub(lambda block: _filled(block, results, plan, sections), before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            written.append(page)
    return written


def _filled(block: re.Match[str], results: Results, plan: Plan, sections: Sequence[str]) -> str:
    shown = block[1].split()
    if not set(shown) <= set(sections):
        return block[0]
    found = [_markdown(table) for table in tables(results, shown, targets_first=True)]
    if not found:
        # What it measures is not installed here.
        return block[0]
    body = "\n\n".join([_made_by(plan, shown), *found])
    return f"<!-- figures of {block[1]}: start -->\n\n{body}\n\n<!-- figures of {block[1]}: end -->"


def _made_by(plan: Plan, sections: Sequence[str]) -> str:
    known = ", ".join(f"{name} {number}" for name, number in versions().items())
    is_once = all(SECTIONS[name].once for name in sections)
    options = [] if is_once else [f"--rounds {plan.rounds} --seconds {plan.seconds:g}"]
    command = " ".join(["python -m benchmarks", *sections, *options, "--write"])
    machine = f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}, Python {platform.python_version()}"
    return (
        f"Made by `{command}`: {'each once' if is_once else f'best of {plan.rounds} interleaved rounds'}, "
        f"{machine}; {known}."
    )


def _markdown(table: Table) -> str:
    lines = [f"### {table.title}", "", _line(table.head), _line(["---"] * len(table.head)), *map(_line, table.rows)]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def tables(results: Results, sections: Sequence[str], *, targets_first: bool = False) -> Iterator[Table]:
    """The targets of some sections and what was found, and a table for each thing that was measured."""
    rows = [target.row() for name in sections for target in SECTIONS[name].targets(results)]
    targets = [Table(title="Targets", head=["what", "target", "found", ""], rows=rows)] if rows else []
    figures = [table for name in sections for table in SECTIONS[name].tables(results)]
    yield from [*targets, *figures] if targets_first else [*figures, *targets]
