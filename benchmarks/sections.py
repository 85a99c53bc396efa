"""What is measured, and in what order: every round goes through all servers, so that a busy moment meets them all."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.agent_loop import LoopResults, measure_loop
from benchmarks.bots import BotResults, measure_bots
from benchmarks.debug import DebugResults, measure_debug
from benchmarks.discovery import DiscoveryResults, measure_discovery
from benchmarks.gateway import GatewayResults, measure_gateways
from benchmarks.grammar import GrammarResults, measure_grammar
from benchmarks.guide import GuideResults, measure_guide
from benchmarks.http_client import http_load
from benchmarks.local_calls import LocalResults, measure_local
from benchmarks.measures import Cold, Load
from benchmarks.peers.known import ROOT, TRYSQUARE, TYPESCRIPT, start_of
from benchmarks.stdio_client import cold_start, stdio_load
from benchmarks.torture import TortureResults, measure_torture
from benchmarks.workload import HANDSHAKE, MODERN


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How much is measured."""

    rounds: int = 5
    seconds: float = 1.5
    cold_tools: tuple[int, ...] = (1, 75, 1000)
    http_tools: tuple[int, ...] = (75, 1000)
    callers: tuple[int, ...] = (1, 16, 64)

    @classmethod
    def quick(cls) -> Plan:
        """The smallest run that goes everywhere."""
        return cls(rounds=1, seconds=0.05, cold_tools=(1, 20), http_tools=(20,), callers=(1, 4))


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One thing that is measured of one server."""

    section: str
    peer: str
    tools: int
    callers: int = 0


@dataclass(slots=True)
class Results:
    """The best of all rounds, each figure by itself."""

    cold: dict[Cell, Cold] = field(default_factory=dict[Cell, Cold])
    cpu: dict[Cell, float] = field(default_factory=dict[Cell, float])
    """Microseconds of CPU a call."""
    rate: dict[Cell, float] = field(default_factory=dict[Cell, float])
    """Calls a second."""
    guide: GuideResults = field(default_factory=GuideResults)
    bots: BotResults = field(default_factory=BotResults)
    discovery: DiscoveryResults = field(default_factory=DiscoveryResults)
    gateway: GatewayResults = field(default_factory=GatewayResults)
    torture: TortureResults = field(default_factory=TortureResults)
    debug: DebugResults = field(default_factory=DebugResults)
    local: LocalResults = field(default_factory=LocalResults)
    grammar: GrammarResults = field(default_factory=GrammarResults)
    loop: LoopResults = field(default_factory=LoopResults)

    def add_cold(self, cell: Cell, found: Cold) -> None:
        """Keep the better of what is known and what was found."""
        known = self.cold.get(cell, found)
        self.cold[cell] = Cold(cpu=min(known.cpu, found.cpu), wall=min(known.wall, found.wall))

    def add_load(self, cell: Cell, found: Load) -> None:
        """Keep the better of what is known and what was found."""
        self.cpu[cell] = min(self.cpu.get(cell, found.cpu_per_call), found.cpu_per_call)
        self.rate[cell] = max(self.rate.get(cell, 0.0), found.rate)


Section = Callable[[Plan, Sequence[str], Results, Path], None]


def run_section(name: str, plan: Plan, peers: Sequence[str], results: Results, project: Path) -> None:
    """Run one section for as many rounds as the plan says."""
    if name not in SECTIONS:
        raise SystemExit(f"There is no section `{name}`. The sections are {', '.join(SECTIONS)}.")
    for number in range(plan.rounds):
        print(f"{name}: round {number + 1} of {plan.rounds}", file=sys.stderr)
        SECTIONS[name](plan, peers, results, project)


def _cold(plan: Plan, peers: Sequence[str], results: Results, project: Path) -> None:
    for tools in plan.cold_tools:
        for peer in peers:
            results.add_cold(Cell(section="cold", peer=peer, tools=tools), cold_start(peer, tools, project))


def _stdio(section: str, era: str) -> Section:
    def measure(plan: Plan, peers: Sequence[str], results: Results, project: Path) -> None:
        tools = plan.http_tools[0]
        for peer in peers:
            loads = stdio_load(peer, tools, plan.callers, plan.seconds, era, project)
            _add(results, section, peer, tools, plan, loads)

    return measure


def _growth(plan: Plan, peers: Sequence[str], results: Results, project: Path) -> None:
    """Our own calls with few and with many tools: a call must not cost more because there are many."""
    for tools in plan.cold_tools:
        [load] = stdio_load(TRYSQUARE, tools, (1,), plan.seconds, HANDSHAKE, project)
        results.add_load(Cell(section="growth", peer=TRYSQUARE, tools=tools, callers=1), load)


def _http(plan: Plan, peers: Sequence[str], results: Results, project: Path) -> None:
    for tools in plan.http_tools:
        for peer in peers:
            _add(results, "http", peer, tools, plan, http_load(peer, tools, plan.callers, plan.seconds, project))


def _memory(plan: Plan, peers: Sequence[str], results: Results, project: Path) -> None:
    tools = plan.http_tools[0]
    for peer in peers:
        loads = [_memory_load(peer, tools, callers, plan.seconds, project) for callers in plan.callers]
        _add(results, "memory", peer, tools, plan, loads)


def _memory_load(peer: str, tools: int, callers: int, seconds: float, project: Path) -> Load:
    start = start_of(peer, "memory", tools, project, str(callers), str(seconds))
    words = [sys.executable, "-m", "benchmarks.memory_client", peer, str(tools), str(callers), str(seconds)]
    command = start.command if peer == TYPESCRIPT else words
    run = subprocess.run(command, env=start.environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"{peer} failed in memory: {run.stderr[-2000:]}")
    return Load(**json.loads(run.stdout.splitlines()[-1]))


def _add(results: Results, section: str, peer: str, tools: int, plan: Plan, loads: Sequence[Load]) -> None:
    for callers, load in zip(plan.callers, loads, strict=True):
        results.add_load(Cell(section=section, peer=peer, tools=tools, callers=callers), load)


def _guide(plan: Plan, peers: Sequence[str], results: Results, project: Path) -> None:
    measure_guide(results.guide, plan.seconds, quick=plan == Plan.quick())


def _bots(plan: Plan, peers: Sequence[str], results: Results, project: Path) -> None:
    measure_bots(results.bots, plan.seconds, quick=plan == Plan.quick())


def _discovery(plan: Plan, peers: Sequence[str], results: Results, project: Path) -> None:
    measure_discovery(results.discovery)


def _gateway(plan: Plan, peers: Sequence[str], results: Results, project: Path) -> None:
    measure_gateways(results.gateway, plan.seconds, quick=plan == Plan.quick())


def _torture(plan: Plan, peers: Sequence[str], results: Results, project: Path) -> None:
    measure_torture(results.torture, quick=plan == Plan.quick())


def _debug(plan: Plan, peers: Sequence[str], results: Results, project: Path) -> None:
    measure_debug(results.debug, quick=plan == Plan.quick())


def _grammar(plan: Plan, peers: Sequence[str], results: Results, project: Path) -> None:
    measure_grammar(results.grammar, quick=plan == Plan.quick())


def _local(plan: Plan, peers: Sequence[str], results: Results, project: Path) -> None:
    measure_local(results.local, requests=3 if plan == Plan.quick() else 20)


def _agents(plan: Plan, peers: Sequence[str], results: Results, project: Path) -> None:
    measure_loop(results.loop, quick=plan == Plan.quick())


SECTIONS: dict[str, Section] = {
    "cold": _cold,
    "call": _stdio("call", HANDSHAKE),
    "call-modern": _stdio("call-modern", MODERN),
    "memory": _memory,
    "http": _http,
    "growth": _growth,
    "guide": _guide,
    "bots": _bots,
    "discovery": _discovery,
    "gateway": _gateway,
    "torture": _torture,
    "debug": _debug,
    "local": _local,
    "grammar": _grammar,
    "agents": _agents,
}
