"""The gateways are measured, and every answer is looked at. No test here asserts a time."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from benchmarks.gateway import (
    PLAIN,
    GatewayResults,
    call_tables,
    call_targets,
    large_tables,
    large_targets,
    start_tables,
    start_targets,
)
from benchmarks.gateway_client import events
from benchmarks.gateway_peers import FASTMCP, HUB, KINDS, TRYSQUARE
from benchmarks.measures import Load
from benchmarks.peers.known import BASELINE
from benchmarks.tables import Target
from benchmarks.torture import TortureResults, torture_tables, torture_targets
from tests.gateway.torture.arena import Check, Verdict
from tests.gateway.torture.lanes import LANES


async def test_events_are_read_whole_wherever_the_stream_is_cut() -> None:
    async def cut(size: int) -> AsyncGenerator[bytes]:
        stream = b': ping\n\nevent: message\ndata: {"id":1}\n\ndata: {"id":2}\r\n\r\n'
        for begin in range(0, len(stream), size):
            yield stream[begin : begin + size]

    for size in range(1, 40):
        assert [event async for event in events(cut(size))] == [b'{"id":1}', b'{"id":2}']


def finished(factor: float) -> GatewayResults:
    """Results in which ours are the peers' times a factor."""
    results = GatewayResults(own_start=0.2)
    for name in KINDS:
        share = factor if name == TRYSQUARE else 1.0
        results.add_load(name, "everything", 64, Load(calls=1000, seconds=share, cpu=share))
        for kept in (
            results.first,
            results.later,
            results.first_over_http,
            results.memory,
            results.large,
            results.waits,
            results.back,
        ):
            kept[name] = share
    results.add_load(TRYSQUARE, PLAIN, 64, Load(calls=1000, seconds=factor, cpu=factor / 2))
    return results


def targets(results: GatewayResults) -> list[Target]:
    return [target for of in (call_targets, start_targets, large_targets) for target in of(results)]


def test_targets_are_met_or_missed() -> None:
    good, bad = targets(finished(0.05)), targets(finished(2.0))

    assert [target.promise for target in good if not target.is_met] == []
    assert [target.promise for target in bad if target.is_met] == []
    assert len(good) == len(bad) == 11
    assert {FASTMCP, HUB} < set(KINDS)


def test_the_baseline_is_no_peer_and_has_a_target_of_its_own() -> None:
    results = finished(0.4)
    results.first[BASELINE] = 0.1
    found = {target.promise: target for target in start_targets(results)}

    assert found["first good call with ten cold servers, to the best peer's"].is_met
    assert found["first good call with ten cold servers, to the baseline's"].found == pytest.approx(4.0)


def test_a_gateway_that_never_comes_back_is_shown_as_such() -> None:
    results = finished(1.0)
    results.back[HUB] = float("inf")
    [starts], [large], [calls] = start_tables(results), large_tables(results), call_tables(results)

    assert {row[0]: row[-1] for row in starts.rows}["mcp-hub 4.2"] == "never"
    assert [row[-1] for row in large.rows] == ["1.000 s"] * len(KINDS)
    assert len(calls.rows) == len(KINDS) + 1


def test_the_scorecards_stand_side_by_side_with_what_went_wrong() -> None:
    def verdict(gateway: str, holds: bool) -> Verdict:
        checks = (Check(name="next call", holds=holds),)
        return Verdict(row="killed", lane="stdio", gateway=gateway, checks=checks, seconds=1)

    results = TortureResults(verdicts=[verdict("Trysquare", True), verdict("other", True), verdict("other", False)])
    [table] = torture_tables(results)
    [target] = torture_targets(results)

    assert table.head == ["the server …", "Trysquare", "other"]
    assert ["is killed in the middle of a call", "1 of 1", "1 of 2: next call"] in table.rows
    assert target.is_met


def test_a_gateway_that_cannot_use_a_server_in_good_health_is_tried_no_further() -> None:
    def verdict(row: str, holds: bool) -> Verdict:
        checks = (Check(name="next call", holds=holds),)
        return Verdict(row=row, lane=str(LANES[0]), gateway="Trysquare", checks=checks, seconds=1)

    results = TortureResults()
    results.add("Trysquare", LANES[0], [verdict("plain", True), verdict("killed", True)])
    results.add("Trysquare", LANES[1], [verdict("plain", False)])
    [table] = torture_tables(results)
    [target] = torture_targets(results)

    assert table.rows[-1] == ["servers in good health that it cannot use", str(LANES[1])]
    assert not target.is_met
