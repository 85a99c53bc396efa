"""Every fault that a server can have, through `trysquare serve --gateway`. By default each fault takes a few lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.gateway.torture.arena import Row, run_trial
from tests.gateway.torture.fronts import Trysquare
from tests.gateway.torture.lanes import LANES, Lane
from tests.gateway.torture.rows import ROWS
from tests.gateway.torture.scorecard import as_json, lines
from tests.support import size

AT_ONCE = size(1, len(LANES))
"""Lanes for each fault; the next fault goes on with the lanes after them, so that every lane has its turn."""


def trials() -> Iterator[tuple[Row, Lane]]:
    """The trials of this run."""
    for number, row in enumerate(ROWS):
        possible = [lane for lane in LANES if row.impossible(lane) is None]
        begin = number * 7
        yield from ((row, possible[(begin + step) % len(possible)]) for step in range(min(AT_ONCE, len(possible))))


@pytest.mark.parametrize(
    ("row", "lane"), list(trials()), ids=lambda one: one.name if isinstance(one, Row) else str(one)
)
async def test_a_server_that_misbehaves_does_no_harm(
    row: Row, lane: Lane, record_property: Callable[[str, object], None]
) -> None:
    verdict = await run_trial(row, lane, Trysquare())
    record_property("torture", as_json([verdict])[0])
    assert verdict.checks
    assert verdict.passed, verdict.failures


def test_the_scorecard_says_what_failed_and_where() -> None:
    row, lane = ROWS[1], LANES[0]
    failed = {"name": "next call", "holds": False, "found": "nothing heard"}
    entries = [{"row": row.name, "lane": str(lane), "passed": False, "checks": [failed]}]
    shown = "\n".join(lines(entries, ROWS, LANES))

    assert "FAIL" in shown
    assert f"FAILED killed, {lane}: next call (nothing heard)" in shown
    assert "0 of 1 trials passed" in shown
