"""The section `torture`: the faults of tests/gateway/torture against us and the peers, side by side."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class TortureResults:
    """What came of every trial."""

    verdicts: list[Verdict] = field(default_factory=list[Verdict])
    strangers: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The kinds of servers that a gateway does not speak with even when nothing is wrong."""


def measure_torture(results: TortureResults, *, quick: bool = False) -> None:
    """Every trial once. A gateway that does not get through with a server in good health is not tried with ill ones."""
    if results.verdicts:
        return
    for gateway in gateways():
        lanes = gateway.lanes()[:1] if quick else gateway.lanes()
        rows = [row for row in ROWS if row.name in ("plain", "killed")] if quick else ROWS
        asyncio.run(_measure(results, gateway, lanes, rows))
    if not quick:
        write_scorecard(SCORECARD, results)


def gateways() -> list[Gateway]:
    """Us, and the peers that are there."""
    return [OURS, *(one for one in GATEWAYS if not isinstance(one, McpHub) or MCP_HUB.is_dir())]


async def _measure(results: TortureResults, gateway: Gateway, lanes: Sequence[Lane], rows: Sequence[Row]) -> None:
    plain, *faults = rows
    for lane in lanes:
        verdict = await _tried(plain, lane, gateway)
        if not verdict.passed:
            results.strangers.setdefault(gateway.title, []).append(str(lane))
            continue
        results.verdicts.append(verdict)
        for row in faults:
            if row.impossible(lane) is None:
                results.verdicts.append(await _tried(row, lane, gateway))


async def _tried(row: Row, lane: Lane, gateway: Gateway) -> Verdict:
    verdict = await run_trial(row, lane, gateway, WHOLE)
    told = verdict.failures or "passed"
    print(f"  {gateway.title}: {row.name}, {lane}: {told[:200]}", file=sys.stderr)
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
