"""The results as tables: figures side by side, ratios to ours, and whether each target is met."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.agent_loop import loop_tables, loop_targets
from benchmarks.bots import bot_tables, bot_targets
from benchmarks.debug import debug_tables, debug_targets
from benchmarks.discovery import discovery_tables
from benchmarks.gateway import gateway_tables, gateway_targets
from benchmarks.grammar import grammar_tables, grammar_targets
from benchmarks.guide import guide_tables, guide_targets
from benchmarks.local_calls import local_tables, local_targets
from benchmarks.peers.known import FASTMCP, LOWLEVEL, MCPSERVER, PEERS, TITLES, TRYSQUARE, versions
from benchmarks.sections import Cell, Plan, Results
from benchmarks.tables import Table, Target
from benchmarks.torture import torture_tables, torture_targets

START, END = "<!-- figures: start -->", "<!-- figures: end -->"
ONCE = {"discovery", "torture"}
"""Sections whose figures do not get better by being measured again."""
HEADINGS = {
    "cold": "Cold start over stdio, from the start of the process to the whole list of tools",
    "call": "Calls over stdio, 2025-11-25 (handshake)",
    "call-modern": "Calls over stdio, 2026-07-28",
    "memory": "Calls in memory, no transport, client and server in one process",
    "http": "Calls over HTTP, 2026-07-28, kept-alive connections",
    "growth": "Our own calls over stdio, by number of tools",
}


def print_report(results: Results) -> None:
    """Everything in the terminal."""
    for table in [*tables(results), targets_table(results)]:
        print(f"\n{table.title}")
        rows = [table.head, *table.rows]
        widths = [max(len(row[column]) for row in rows) for column in range(len(table.head))]
        for row in rows:
            print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def write_page(page: Path, results: Results, plan: Plan, sections: Sequence[str] = ()) -> None:
    """Put the figures between the markers of the page: a single section between its own, where there are some."""
    text = page.read_text(encoding="utf-8")
    start, end = _markers(text, sections)
    before, _, rest = text.partition(start)
    _, _, after = rest.partition(end)
    parts = [_made_by(plan, sections), *map(_markdown, [targets_table(results), *tables(results)])]
    page.write_text(before + start + "\n\n" + "\n\n".join(parts) + "\n\n" + end + after, encoding="utf-8")


def _markers(text: str, sections: Sequence[str]) -> tuple[str, str]:
    own = START.replace("figures", f"figures of {' '.join(sections)}")
    return (own, own.replace("start", "end")) if own in text else (START, END)


def _made_by(plan: Plan, sections: Sequence[str]) -> str:
    known = ", ".join(f"{name} {number}" for name, number in versions().items())
    is_once = bool(sections) and ONCE.issuperset(sections)
    options = [] if is_once else [f"--rounds {plan.rounds} --seconds {plan.seconds:g}"]
    command = " ".join(["python -m benchmarks", *sections, *options])
    return (
        f"Made by {'' if sections else '`make bench` ('}`{command}`{'' if sections else ')'}: "
        f"{'each once' if is_once else f'best of {plan.rounds} interleaved rounds'}, {os.cpu_count()} cores, "
        f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}; {known}."
    )


def _markdown(table: Table) -> str:
    lines = [f"### {table.title}", "", _line(table.head), _line(["---"] * len(table.head)), *map(_line, table.rows)]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def tables(results: Results) -> Iterator[Table]:
    """A table for each section that was measured."""
    if results.cold:
        yield _cold_table(results)
    for section in ("call", "call-modern", "memory", "http"):
        for tools in sorted({cell.tools for cell in results.cpu if cell.section == section}):
            yield _load_table(results, section, tools)
    if grown := {cell.tools: cpu for cell, cpu in results.cpu.items() if cell.section == "growth"}:
        rows = [[f"{tools} tools", f"{cpu:.0f} us", _ratio(cpu, grown[min(grown)])] for tools, cpu in grown.items()]
        yield Table(title=HEADINGS["growth"], head=["tools", "CPU a call", f"to {min(grown)}"], rows=rows)
    yield from guide_tables(results.guide)
    yield from bot_tables(results.bots)
    yield from discovery_tables(results.discovery)
    yield from gateway_tables(results.gateway)
    yield from torture_tables(results.torture)
    yield from debug_tables(results.debug)
    yield from local_tables(results.local)
    yield from grammar_tables(results.grammar)
    yield from loop_tables(results.loop)


def _cold_table(results: Results) -> Table:
    sizes = sorted({cell.tools for cell in results.cold})
    rows: list[list[str]] = []
    for peer in _peers(results.cold):
        row = [TITLES[peer]]
        for tools in sizes:
            own = results.cold[Cell(section="cold", peer=TRYSQUARE, tools=tools)]
            found = results.cold[Cell(section="cold", peer=peer, tools=tools)]
            row.append(f"{found.cpu:.0f} / {found.wall:.0f} ms ({_ratio(found.cpu, own.cpu)})")
        rows.append(row)
    head = ["server", *(f"{tools} tools: CPU / wall (CPU to ours)" for tools in sizes)]
    return Table(title=HEADINGS["cold"], head=head, rows=rows)


def _load_table(results: Results, section: str, tools: int) -> Table:
    def cell(peer: str, callers: int) -> Cell:
        return Cell(section=section, peer=peer, tools=tools, callers=callers)

    sizes = sorted({known.callers for known in results.cpu if known.section == section and known.tools == tools})
    rows: list[list[str]] = []
    for peer in _peers(results.cpu, lambda known: known.section == section):
        row = [TITLES[peer]]
        for callers in sizes:
            own, found = results.cpu[cell(TRYSQUARE, callers)], results.cpu[cell(peer, callers)]
            row.append(f"{found:.0f} us, {results.rate[cell(peer, callers)]:.0f}/s ({_ratio(found, own)})")
        rows.append(row)
    head = ["server", *(f"{callers} callers: CPU a call, calls a second (CPU to ours)" for callers in sizes)]
    return Table(title=f"{HEADINGS[section]}, {tools} tools", head=head, rows=rows)


def _peers(cells: Mapping[Cell, object], keep: Callable[[Cell], bool] = lambda _: True) -> list[str]:
    there = {cell.peer for cell in cells if keep(cell)}
    return [peer for peer in PEERS if peer in there]


def _ratio(found: float, own: float) -> str:
    return f"{found / own:.2f}x" if own else "-"


def targets_table(results: Results) -> Table:
    """The promises and what came of them."""
    rows = [target.row() for target in targets(results)]
    return Table(title="Targets", head=["what", "target", "found", ""], rows=rows)


def targets(results: Results) -> Iterator[Target]:
    """Every promise that this run can say something about."""
    yield from _call_targets(results)
    yield from _cold_targets(results)
    many = Cell(section="http", peer=TRYSQUARE, tools=1000, callers=1)
    for callers in (1, 16, 64):
        own = results.rate.get(Cell(section="http", peer=TRYSQUARE, tools=many.tools, callers=callers))
        theirs = results.rate.get(Cell(section="http", peer=FASTMCP, tools=many.tools, callers=callers))
        if own and theirs:
            promise = f"calls a second over HTTP, 1000 tools, {callers} callers, to FastMCP's as shipped"
            yield Target(promise=promise, found=own / theirs, limit=10, at_least=True)
    grown = {cell.tools: cpu for cell, cpu in results.cpu.items() if cell.section == "growth"}
    if 1 in grown and 1000 in grown:
        yield Target(promise="CPU a call over stdio, 1000 tools to 1 tool", found=grown[1000] / grown[1], limit=1.1)
    yield from guide_targets(results.guide)
    yield from bot_targets(results.bots)
    yield from gateway_targets(results.gateway)
    yield from torture_targets(results.torture)
    yield from debug_targets(results.debug)
    yield from local_targets(results.local)
    yield from grammar_targets(results.grammar)
    yield from loop_targets(results.loop)


def _call_targets(results: Results) -> Iterator[Target]:
    for peer, limit in ((LOWLEVEL, 1.25), (FASTMCP, 0.7)):
        for cell, own in results.cpu.items():
            theirs = results.cpu.get(Cell(section="call", peer=peer, tools=cell.tools, callers=cell.callers))
            if cell.section == "call" and cell.peer == TRYSQUARE and theirs:
                promise = f"CPU a call over stdio, {cell.callers} callers, to {TITLES[peer]}"
                yield Target(promise=promise, found=own / theirs, limit=limit)


def _cold_targets(results: Results) -> Iterator[Target]:
    own = results.cold.get(Cell(section="cold", peer=TRYSQUARE, tools=1000))
    for peer, limit in ((MCPSERVER, 0.5), (FASTMCP, 0.35)):
        theirs = results.cold.get(Cell(section="cold", peer=peer, tools=1000))
        if own and theirs:
            promise = f"cold start with 1000 tools, CPU, to {TITLES[peer]}"
            yield Target(promise=promise, found=own.cpu / theirs.cpu, limit=limit)
