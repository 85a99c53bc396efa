"""The scorecard: every fault beside every lane, for one gateway or several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tests.gateway.torture.arena import Row, Verdict
from tests.gateway.torture.lanes import Lane


def as_json(verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
    """The verdicts for another program."""
    return [
        {
            "row": verdict.row,
            "lane": verdict.lane,
            "gateway": verdict.gateway,
            "passed": verdict.passed,
            "seconds": round(verdict.seconds, 2),
            "checks": [{"name": one.name, "holds": one.holds, "found": one.found} for one in verdict.checks],
        }
        for verdict in verdicts
    ]


def lines(entries: Sequence[Mapping[str, Any]], rows: Sequence[Row], lanes: Sequence[Lane]) -> Iterator[str]:
    """One gateway's scorecard as text: a line for each fault, a column for each lane."""
    known = {(entry["row"], entry["lane"]): entry for entry in entries}
    shown = [lane for lane in lanes if any(entry["lane"] == str(lane) for entry in entries)]
    for number, lane in enumerate(shown, 1):
        yield f"  lane {number:2d}: {lane}"
    wide = max(len(row.title) for row in rows)
    yield "  " + " " * wide + "".join(f" {number:>4d}" for number in range(1, len(shown) + 1))
    for row in rows:
        cells = "".join(f" {_cell(row, lane, known):>4}" for lane in shown)
        yield f"  {row.title.ljust(wide)}{cells}"
    passed = sum(bool(entry["passed"]) for entry in entries)
    yield f"  {passed} of {len(entries)} trials passed"
    for entry in entries:
        if not entry["passed"]:
            wrong = "; ".join(f"{one['name']} ({one['found']})" for one in entry["checks"] if not one["holds"])
            yield f"  FAILED {entry['row']}, {entry['lane']}: {wrong}"


def _cell(row: Row, lane: Lane, known: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    entry = known.get((row.name, str(lane)))
    if entry is None:
        return "-" if row.impossible(lane) else ""
    return "pass" if entry["passed"] else "FAIL"
