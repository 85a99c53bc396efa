"""Every section: what it measures, how long that takes, and how its figures and targets are shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import servers
from benchmarks.agent_loop import LoopResults, loop_tables, loop_targets, measure_loop
from benchmarks.bots import BotResults, bot_tables, bot_targets, measure_bots
from benchmarks.console import ConsoleResults, console_tables, console_targets, measure_console
from benchmarks.debug import DebugResults, debug_tables, debug_targets, measure_debug
from benchmarks.discovery import DiscoveryResults, discovery_tables, measure_discovery
from benchmarks.gateway import (
    GatewayResults,
    call_tables,
    call_targets,
    large_tables,
    large_targets,
    measure_calls,
    measure_large,
    measure_starts,
    start_tables,
    start_targets,
)
from benchmarks.grammar import GrammarResults, grammar_tables, grammar_targets, measure_grammar
from benchmarks.guide import GuideResults, guide_tables, guide_targets, measure_guide
from benchmarks.local_calls import LocalResults, local_tables, local_targets, measure_local
from benchmarks.servers import Plan, ServerResults
from benchmarks.tables import Table, Target
from benchmarks.torture import TortureResults, measure_torture, torture_tables, torture_targets


@dataclass(slots=True)
class Results:
    """What was measured, by the part of the product."""

    servers: ServerResults = field(default_factory=ServerResults)
    guide: GuideResults = field(default_factory=GuideResults)
    bots: BotResults = field(default_factory=BotResults)
    discovery: DiscoveryResults = field(default_factory=DiscoveryResults)
    gateway: GatewayResults = field(default_factory=GatewayResults)
    torture: TortureResults = field(default_factory=TortureResults)
    debug: DebugResults = field(default_factory=DebugResults)
    local: LocalResults = field(default_factory=LocalResults)
    grammar: GrammarResults = field(default_factory=GrammarResults)
    loop: LoopResults = field(default_factory=LoopResults)
    console: ConsoleResults = field(default_factory=ConsoleResults)


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """One round of a section."""

    plan: Plan
    peers: Sequence[str]
    results: Results
    project: Path
    """A directory for the state of servers."""

    @property
    def is_quick(self) -> bool:
        """Whether it only has to show that everything works."""
        return self.plan == Plan.quick()


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """Something that can be measured alone."""

    about: str
    minutes: float
    """About how long it takes with the default rounds on two idle cores."""
    measure: Callable[[Round], None]
    """One round."""
    tables: Callable[[Results], Iterable[Table]]
    targets: Callable[[Results], Iterable[Target]] = lambda _: ()
    once: bool = False
    """Whether its figures do not get better by being measured again."""


def run_section(name: str, plan: Plan, peers: Sequence[str], results: Results, project: Path) -> None:
    """Run one section for as many rounds as the plan says."""
    section = SECTIONS[name]
    rounds = 1 if section.once else plan.rounds
    for number in range(rounds):
        print(f"{name}: round {number + 1} of {rounds}", file=sys.stderr)
        section.measure(Round(plan=plan, peers=peers, results=results, project=project))


def known_sections(names: Sequence[str]) -> list[str]:
    """The sections of these names, all of them by default."""
    for name in names:
        if name not in SECTIONS:
            raise SystemExit(f"There is no section `{name}`. The sections are {', '.join(SECTIONS)}.")
    return list(names) or list(SECTIONS)


Measured = Callable[[str, Plan, Sequence[str], ServerResults, Path], None]


def _calls(name: str, measure: Measured, about: str, minutes: float) -> Section:
    return Section(
        about=about,
        minutes=minutes,
        measure=lambda one: measure(name, one.plan, one.peers, one.results.servers, one.project),
        tables=lambda results: servers.load_tables(name, results.servers),
        targets=lambda results: servers.load_targets(name, results.servers),
    )


SECTIONS: Mapping[str, Section] = {
    servers.COLD: Section(
        about="cold start of each server to its whole list of 1, 75 and 1,000 tools",
        minutes=2,
        measure=lambda one: servers.measure_cold(one.plan, one.peers, one.results.servers, one.project),
        tables=lambda results: servers.cold_tables(results.servers),
        targets=lambda results: servers.cold_targets(results.servers),
    ),
    servers.CALL: _calls(servers.CALL, servers.measure_stdio, "calls over stdio, 2025-11-25", 2.5),
    servers.CALL_MODERN: _calls(servers.CALL_MODERN, servers.measure_stdio, "calls over stdio, 2026-07-28", 2.5),
    servers.HTTP: _calls(
        servers.HTTP, servers.measure_http, "stateless calls over HTTP, 2026-07-28, with 1, 75 and 1,000 tools", 12
    ),
    servers.HTTP_SESSIONS: _calls(
        servers.HTTP_SESSIONS, servers.measure_http, "calls in sessions over HTTP, 2025-11-25, same tools", 9
    ),
    servers.GROWTH: Section(
        about="our own calls over stdio with 1, 75 and 1,000 tools",
        minutes=0.5,
        measure=lambda one: servers.measure_growth(one.plan, one.results.servers, one.project),
        tables=lambda results: servers.growth_tables(results.servers),
        targets=lambda results: servers.growth_targets(results.servers),
    ),
    "gateway": Section(
        about="calls through the gateways to real servers from npm",
        minutes=12,
        measure=lambda one: measure_calls(one.results.gateway, one.plan.seconds, quick=one.is_quick),
        tables=lambda results: call_tables(results.gateway),
        targets=lambda results: call_targets(results.gateway),
    ),
    "gateway-start": Section(
        about="first call of a cold gateway over ten servers, its memory, and the next call after kill -9",
        minutes=4,
        measure=lambda one: measure_starts(one.results.gateway),
        tables=lambda results: start_tables(results.gateway),
        targets=lambda results: start_targets(results.gateway),
    ),
    "gateway-large": Section(
        about="a result of 50 MB through the gateways, with other calls beside it",
        minutes=4,
        measure=lambda one: measure_large(one.results.gateway, quick=one.is_quick),
        tables=lambda results: large_tables(results.gateway),
        targets=lambda results: large_targets(results.gateway),
    ),
    "torture": Section(
        about="servers that misbehave behind the gateways, every fault on every transport",
        minutes=60,
        measure=lambda one: measure_torture(one.results.torture, quick=one.is_quick),
        tables=lambda results: torture_tables(results.torture),
        targets=lambda results: torture_targets(results.torture),
        once=True,
    ),
    "guide": Section(
        about="content of the guide by expression, beside mcp-guide",
        minutes=10,
        measure=lambda one: measure_guide(one.results.guide, one.plan.seconds, quick=one.is_quick),
        tables=lambda results: guide_tables(results.guide),
        targets=lambda results: guide_targets(results.guide),
    ),
    "bots": Section(
        about="calls of a bot's tools with a long history",
        minutes=1,
        measure=lambda one: measure_bots(one.results.bots, one.plan.seconds, quick=one.is_quick),
        tables=lambda results: bot_tables(results.bots),
        targets=lambda results: bot_targets(results.bots),
    ),
    "discovery": Section(
        about="tools that are found for what people ask, beside FastMCP's search",
        minutes=5,
        measure=lambda one: measure_discovery(one.results.discovery, public=True),
        tables=lambda results: discovery_tables(results.discovery),
        once=True,
    ),
    "debug": Section(
        about="the debugger beside mcp-debugger",
        minutes=4,
        measure=lambda one: measure_debug(one.results.debug, quick=one.is_quick),
        tables=lambda results: debug_tables(results.debug),
        targets=lambda results: debug_targets(results.debug),
    ),
    "local": Section(
        about="calls of a local model, where one is installed",
        minutes=10,
        measure=lambda one: measure_local(one.results.local, requests=3 if one.is_quick else 20),
        tables=lambda results: local_tables(results.local),
        targets=lambda results: local_targets(results.local),
    ),
    "grammar": Section(
        about="grammars of tool calls beside llguidance and xgrammar",
        minutes=5,
        measure=lambda one: measure_grammar(one.results.grammar, quick=one.is_quick),
        tables=lambda results: grammar_tables(results.grammar),
        targets=lambda results: grammar_targets(results.grammar),
    ),
    "agents": Section(
        about="a step of the agents' loop beside pydantic-ai's",
        minutes=0.5,
        measure=lambda one: measure_loop(one.results.loop, quick=one.is_quick),
        tables=lambda results: loop_tables(results.loop),
        targets=lambda results: loop_targets(results.loop),
    ),
    "console": Section(
        about="every page of the console on a large project, and a page that is only open",
        minutes=3,
        measure=lambda one: measure_console(one.results.console, one.project, one.plan.seconds, quick=one.is_quick),
        tables=lambda results: console_tables(results.console),
        targets=lambda results: console_targets(results.console),
    ),
}
