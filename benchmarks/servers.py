"""The sections `cold`, `call`, `call-modern`, `http`, `http-sessions` and `growth`: the same tools on every server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.http_client import http_server
from benchmarks.measures import Cold, Load
from benchmarks.peers.known import (
    BARE,
    BASELINE,
    FASTMCP,
    LOWLEVEL,
    MCPSERVER,
    PEERS,
    TITLES,
    TRYSQUARE,
    TYPESCRIPT,
)
from benchmarks.stdio_client import cold_start, stdio_server
from benchmarks.tables import Table, Target
from benchmarks.workload import HANDSHAKE, MODERN

COLD, CALL, CALL_MODERN, HTTP, HTTP_SESSIONS, GROWTH = (
    "cold", "call", "call-modern", "http", "http-sessions", "growth",
)  # fmt: skip
HEADINGS = {
    COLD: "Cold start over stdio, from the start of the process to the whole list of tools",
    CALL: "Calls over stdio, 2025-11-25 (handshake)",
    CALL_MODERN: "Calls over stdio, 2026-07-28",
    HTTP: "Calls over HTTP, 2026-07-28 (stateless), kept-alive connections",
    HTTP_SESSIONS: "Calls over HTTP, 2025-11-25, each connection with a session of its own",
    GROWTH: "Our own calls over stdio, by number of tools",
}
CPU_LIMITS: Mapping[tuple[str, str], Mapping[int, float] | float] = {
    (CALL, TYPESCRIPT): {1: 0.6, 16: 1.0, 64: 1.5},
    (CALL, LOWLEVEL): 0.3,
    (CALL, FASTMCP): 0.3,
    (HTTP, LOWLEVEL): 0.3,
    (HTTP_SESSIONS, LOWLEVEL): 0.3,
}
"""Most CPU a call that we promise, as a share of a peer's, by the number of callers where it matters."""
COLD_LIMITS: Mapping[tuple[str, int], float] = {
    (TYPESCRIPT, 75): 1.0,
    (MCPSERVER, 1000): 0.5,
    (FASTMCP, 1000): 0.35,
}
FLAT = 1.1
"""Most that a call with 1,000 tools may cost, as a share of one with a single tool."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How much is measured."""

    rounds: int = 5
    seconds: float = 1.5
    tools: tuple[int, ...] = (1, 75, 1000)
    call_tools: int = 75
    callers: tuple[int, ...] = (1, 16, 64)

    @classmethod
    def quick(cls) -> Plan:
        """The smallest run that goes everywhere."""
        return cls(rounds=1, seconds=0.05, tools=(1, 20), call_tools=20, callers=(1, 4))


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One thing that is measured of one server."""

    section: str
    peer: str
    tools: int
    callers: int = 0


@dataclass(slots=True)
class ServerResults:
    """The best of all rounds, each figure by itself."""

    cold: dict[Cell, Cold] = field(default_factory=dict[Cell, Cold])
    cpu: dict[Cell, float] = field(default_factory=dict[Cell, float])
    """Microseconds of CPU a call."""
    rate: dict[Cell, float] = field(default_factory=dict[Cell, float])
    """Calls a second."""

    def add_cold(self, cell: Cell, found: Cold) -> None:
        """Keep the better of what is known and what was found."""
        known = self.cold.get(cell, found)
        self.cold[cell] = Cold(cpu=min(known.cpu, found.cpu), wall=min(known.wall, found.wall))

    def add_load(self, cell: Cell, found: Load) -> None:
        """Keep the better of what is known and what was found."""
        self.cpu[cell] = min(self.cpu.get(cell, found.cpu_per_call), found.cpu_per_call)
        self.rate[cell] = max(self.rate.get(cell, 0.0), found.rate)


def measure_cold(plan: Plan, peers: Sequence[str], results: ServerResults, project: Path) -> None:
    """Start every server once with each number of tools."""
    for tools in plan.tools:
        for peer in peers:
            results.add_cold(Cell(section=COLD, peer=peer, tools=tools), cold_start(peer, tools, project))


def measure_stdio(section: str, plan: Plan, peers: Sequence[str], results: ServerResults, project: Path) -> None:
    """All servers by turns, load by load: a shared machine is as fast for each of them as for the next."""
    era, tools = MODERN if section == CALL_MODERN else HANDSHAKE, plan.call_tools
    with ExitStack() as stack:
        clients = {peer: stack.enter_context(stdio_server(peer, tools, era, project)) for peer in peers}
        for callers in plan.callers:
            for peer, client in clients.items():
                load = client.load(tools, callers, plan.seconds)
                results.add_load(Cell(section=section, peer=peer, tools=tools, callers=callers), load)


def measure_http(section: str, plan: Plan, peers: Sequence[str], results: ServerResults, project: Path) -> None:
    """The same over HTTP, with each number of tools, and beside an application that does nothing."""
    era = MODERN if section == HTTP else HANDSHAKE
    for tools in plan.tools:
        with ExitStack() as stack:
            servers = {peer: stack.enter_context(http_server(peer, tools, era, project)) for peer in (*peers, BARE)}
            for callers in plan.callers:
                for peer, server in servers.items():
                    load = server.load(callers, plan.seconds)
                    results.add_load(Cell(section=section, peer=peer, tools=tools, callers=callers), load)


def measure_growth(plan: Plan, results: ServerResults, project: Path) -> None:
    """Our own calls with few and with many tools: a call must not cost more because there are many."""
    for tools in plan.tools:
        with stdio_server(TRYSQUARE, tools, HANDSHAKE, project) as client:
            load = client.load(tools, 1, plan.seconds)
        results.add_load(Cell(section=GROWTH, peer=TRYSQUARE, tools=tools, callers=1), load)


def cold_tables(results: ServerResults) -> Iterator[Table]:
    """The figures of the section `cold`."""
    if not results.cold:
        return
    sizes = sorted({cell.tools for cell in results.cold})
    rows: list[list[str]] = []
    for peer in _peers(results.cold):
        row = [TITLES[peer]]
        for tools in sizes:
            own = results.cold.get(Cell(section=COLD, peer=TRYSQUARE, tools=tools))
            found = results.cold[Cell(section=COLD, peer=peer, tools=tools)]
            ratio = None if own is None or peer == TRYSQUARE else own.cpu / found.cpu
            row.append(f"{found.cpu:.0f} / {found.wall:.0f} ms{_beside(ratio, COLD_LIMITS.get((peer, tools)))}")
        rows.append(row)
    head = ["server", *(f"{tools} tools: CPU / wall (Trysquare's CPU to it)" for tools in sizes)]
    yield Table(title=HEADINGS[COLD], head=head, rows=rows)


def load_tables(section: str, results: ServerResults) -> Iterator[Table]:
    """The figures of a section of calls, a table for each number of tools."""
    for tools in sorted({cell.tools for cell in results.cpu if cell.section == section}):
        yield _load_table(results, section, tools)


def _load_table(results: ServerResults, section: str, tools: int) -> Table:
    def cell(peer: str, callers: int) -> Cell:
        return Cell(section=section, peer=peer, tools=tools, callers=callers)

    sizes = sorted({known.callers for known in results.cpu if known.section == section and known.tools == tools})
    rows: list[list[str]] = []
    for peer in _peers(results.cpu, lambda known: known.section == section and known.tools == tools):
        row = [TITLES[peer]]
        for callers in sizes:
            own, found = results.cpu.get(cell(TRYSQUARE, callers)), results.cpu[cell(peer, callers)]
            ratio = None if own is None or peer == TRYSQUARE else own / found
            beside = _beside(ratio, _cpu_limit(section, peer, callers))
            row.append(f"{_microseconds(found)}, {results.rate[cell(peer, callers)]:.0f}/s{beside}")
        rows.append(row)
    head = ["server", *(f"{callers} callers: CPU a call, calls a second (Trysquare's CPU to it)" for callers in sizes)]
    return Table(title=f"{HEADINGS[section]}, {tools} tools", head=head, rows=rows)


def growth_tables(results: ServerResults) -> Iterator[Table]:
    """The figures of the section `growth`."""
    if grown := _grown(results):
        least = grown[min(grown)]
        rows = [[f"{tools} tools", _microseconds(cpu), f"{cpu / least:.2f}"] for tools, cpu in grown.items()]
        yield Table(title=HEADINGS[GROWTH], head=["tools", "CPU a call", f"to {min(grown)}"], rows=rows)


def _beside(ratio: float | None, limit: float | None) -> str:
    if ratio is None:
        return ""
    return f" ({ratio:.2f})" if limit is None else f" ({ratio:.2f}, target {limit:g})"


def _microseconds(cpu: float) -> str:
    return f"{cpu:.1f} us" if cpu < 100 else f"{cpu:.0f} us"


def _peers(cells: Mapping[Cell, object], keep: Callable[[Cell], bool] = lambda _: True) -> list[str]:
    there = {cell.peer for cell in cells if keep(cell)}
    return [peer for peer in (*PEERS, BARE, BASELINE) if peer in there]


def _cpu_limit(section: str, peer: str, callers: int) -> float | None:
    limit = CPU_LIMITS.get((section, peer))
    return limit.get(callers) if isinstance(limit, Mapping) else limit


def _grown(results: ServerResults) -> dict[int, float]:
    return {cell.tools: cpu for cell, cpu in results.cpu.items() if cell.section == GROWTH}


def cold_targets(results: ServerResults) -> Iterator[Target]:
    """What we promise of a cold start."""
    for (peer, tools), limit in COLD_LIMITS.items():
        own = results.cold.get(Cell(section=COLD, peer=TRYSQUARE, tools=tools))
        theirs = results.cold.get(Cell(section=COLD, peer=peer, tools=tools))
        if own and theirs:
            promise = f"cold start with {tools} tools, CPU, to {TITLES[peer]}"
            yield Target(promise=promise, found=own.cpu / theirs.cpu, limit=limit)


def load_targets(section: str, results: ServerResults) -> Iterator[Target]:
    """What we promise of the CPU of a call in this section."""
    over = "stdio" if section.startswith(CALL) else "HTTP"
    version = MODERN if section in (CALL_MODERN, HTTP) else HANDSHAKE
    for cell, theirs in results.cpu.items():
        limit = _cpu_limit(section, cell.peer, cell.callers)
        own = results.cpu.get(Cell(section=section, peer=TRYSQUARE, tools=cell.tools, callers=cell.callers))
        if cell.section == section and limit is not None and own is not None:
            what = f"CPU a call over {over}, {version}, {cell.tools} tools, {cell.callers} callers"
            yield Target(promise=f"{what}, to {TITLES[cell.peer]}", found=own / theirs, limit=limit)
    if section in (HTTP, HTTP_SESSIONS):
        yield from _flat_targets(section, results)
    if section == HTTP:
        yield from _rate_targets(results)


def _flat_targets(section: str, results: ServerResults) -> Iterator[Target]:
    """A call costs the same however many tools there are; of all callers together, since one alone is noisy."""
    sums: dict[int, float] = {}
    for cell, cpu in results.cpu.items():
        if cell.section == section and cell.peer == TRYSQUARE:
            sums[cell.tools] = sums.get(cell.tools, 0.0) + cpu
    if 1 in sums and 1000 in sums:
        version = MODERN if section == HTTP else HANDSHAKE
        promise = f"CPU a call over HTTP, {version}, 1000 tools to 1 tool"
        yield Target(promise=promise, found=sums[1000] / sums[1], limit=FLAT)


def _rate_targets(results: ServerResults) -> Iterator[Target]:
    for cell, own in results.rate.items():
        if cell.section == HTTP and cell.peer == TRYSQUARE and cell.tools == 1000:
            theirs = results.rate.get(Cell(section=HTTP, peer=FASTMCP, tools=1000, callers=cell.callers))
            if theirs:
                promise = f"calls a second over HTTP, 1000 tools, {cell.callers} callers, to FastMCP's as shipped"
                yield Target(promise=promise, found=own / theirs, limit=10, at_least=True)


def growth_targets(results: ServerResults) -> Iterator[Target]:
    """A call over stdio costs the same however many tools there are."""
    grown = _grown(results)
    if 1 in grown and 1000 in grown:
        promise = "CPU a call over stdio, 1000 tools to 1 tool"
        yield Target(promise=promise, found=grown[1000] / grown[1], limit=FLAT)
