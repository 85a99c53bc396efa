"""Finding tools is measured beside FastMCP's search, on the same requests, and the page shows what comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.discovery import (
    HELD_OUT,
    OTHER,
    DiscoveryResults,
    Row,
    discovery_tables,
    discovery_targets,
    measure_discovery,
)

_PAGE = Path(__file__).parents[2] / "docs" / "benchmarks-discovery.md"

# What is measured takes half a minute, which two workers need not spend twice.
pytestmark = pytest.mark.xdist_group("discovery")


@pytest.fixture(scope="module")
def results() -> DiscoveryResults:
    found = DiscoveryResults()
    measure_discovery(found)
    return found


def test_the_page_shows_what_is_measured(results: DiscoveryResults) -> None:
    [table] = discovery_tables(results)
    page = _PAGE.read_text(encoding="utf-8")
    assert [row for row in table.rows if f"| {' | '.join(row)} |" not in page] == []


def test_every_kind_of_request_of_the_held_out_half_has_a_target(results: DiscoveryResults) -> None:
    assert len(list(discovery_targets(results))) == 3


def test_what_is_only_measured_is_found_at_least_twice_as_often_as_by_the_peer(results: DiscoveryResults) -> None:
    for part in (HELD_OUT, OTHER):
        for kind in ("everyday", "impossible"):
            row = Row(part=part, kind=kind)
            assert results.ours[row] >= 2 * results.theirs[row]
