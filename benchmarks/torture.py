"""The section `torture`: the faults of tests/gateway/torture against us and the peers, side by side."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from benchmarks.peers.gateways import GATEWAYS, MCP_HUB, McpHub
from benchmarks.peers.known import ROOT
from benchmarks.tables import Table, Target
from tests.gateway.torture.arena import WHOLE, Row, Verdict, run_trial
from tests.gateway.torture.fronts import Gateway, Trysquare
from tests.gateway.torture.lanes import Lane
from tests.gateway.torture.rows import ROWS
from tests.gateway.torture.scorecard import as_json

SCORECARD = ROOT / "benchmarks" / ".peers" / "torture.json"
OURS = Trysquare()
AT_ONCE = 4
"""Lanes that are tried side by side, each by a process of its own: most of a trial is waiting."""


@dataclass(slots=True)
class TortureResults:
    """What came of every trial."""

    verdicts: list[Verdict] = field(default_factory=list[Verdict])
    strangers: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The kinds of servers that a gateway does not speak with even when nothing is wrong."""

    def add(self, title: str, lane: Lane, verdicts: Sequence[Verdict]) -> None:
        """Keep what came of a lane."""
        if verdicts[0].passed:
            self.verdicts += verdicts
        else:
            self.strangers.setdefault(title, []).append(str(lane))


def measure_torture(results: TortureResults, *, quick: bool = False) -> None:
    """Every trial once. A gateway that does not get through with a server in good health is not tried with ill ones."""
    if results.verdicts:
        return
    known = gateways()
    names = ["plain", "killed"] if quick else [row.name for row in ROWS]
    every = [list(enumerate(one.lanes()[:1] if quick else one.lanes())) for one in known]
    # In turns, so that a gateway that waits for its timeouts stands beside one that works.
    turns = sorted((turn, number, lane) for number, lanes in enumerate(every) for turn, lane in lanes)
    with ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn")) as pool:
        tried = [(number, lane, pool.submit(try_lane, number, lane, names)) for _, number, lane in turns]
        for number, lane, trying in sorted(tried, key=lambda one: one[0]):
            results.add(known[number].title, lane, trying.result())
    if not quick:
        write_scorecard(SCORECARD, results)


def gateways() -> list[Gateway]:
    """Us, and the peers that are there."""
    return [OURS, *(one for one in GATEWAYS if not isinstance(one, McpHub) or MCP_HUB.is_dir())]


def try_lane(number: int, lane: Lane, names: Sequence[str]) -> list[Verdict]:
    """Every trial of one gateway on one lane: the first is with a server in good health."""
    return asyncio.run(_try_lane(gateways()[number], lane, names))


async def _try_lane(gateway: Gateway, lane: Lane, names: Sequence[str]) -> list[Verdict]:
    verdicts: list[Verdict] = []
    for row in (row for row in ROWS if row.name in names and row.impossible(lane) is None):
        verdicts.append(await _tried(row, lane, gateway))
        if not verdicts[0].passed:
            break
    return verdicts


async def _tried(row: Row, lane: Lane, gateway: Gateway) -> Verdict:
    verdict = await run_trial(row, lane, gateway, WHOLE)
    told = " ".join(verdict.failures.split()) or "passed"
    print(f"  {gateway.title}: {row.name}, {lane}, {verdict.seconds:.0f} s: {told[:1000]}", file=sys.stderr, flush=True)
    return verdict


def write_scorecard(path: Path, results: TortureResults) -> None:
    """The scorecard for other programs."""
    path.parent.mkdir(exist_ok=True)
    found = {"verdicts": as_json(results.verdicts), "not_reached": results.strangers}
    path.write_text(json.dumps(found, indent=1), encoding="utf-8")


def torture_tables(results: TortureResults) -> Iterator[Table]:
    """How many lanes of each gateway a fault was survived on, and what went wrong elsewhere."""
    titles = list(dict.fromkeys(verdict.gateway for verdict in results.verdicts))
    if not titles:
        return
    rows = [[row.title, *(_cell(results, row, title) for title in titles)] for row in ROWS]
    rows.append(["servers in good health that it cannot use", *(_unused(results, title) for title in titles)])
    yield Table(title="The gateway: a server that misbehaves", head=["the server …", *titles], rows=rows)


def _cell(results: TortureResults, row: Row, title: str) -> str:
    found = [verdict for verdict in results.verdicts if (verdict.row, verdict.gateway) == (row.name, title)]
    if not found:
        return "-"
    passed = sum(verdict.passed for verdict in found)
    wrong = dict.fromkeys(check.name for verdict in found for check in verdict.checks if not check.holds)
    return f"{passed} of {len(found)}" + (f": {', '.join(wrong)}" if wrong else "")


def _unused(results: TortureResults, title: str) -> str:
    """The lanes that do not work at all."""
    return "; ".join(results.strangers.get(title, ())) or "none"


def torture_targets(results: TortureResults) -> Iterator[Target]:
    """We pass every row."""
    own = [verdict for verdict in results.verdicts if verdict.gateway == OURS.title]
    if own:
        tried = len(own) + len(results.strangers.get(OURS.title, ()))
        found = sum(verdict.passed for verdict in own) / tried
        yield Target(
            promise=f"share of {tried} trials with servers that misbehave", found=found, limit=1, at_least=True
        )
