"""Finding tools is measured beside FastMCP's search, on the same requests, and the page shows what comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.discovery import DiscoveryResults, Row, discovery_tables, measure_discovery

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


def test_keywords_find_their_tool_and_nothing_is_found_less_often_than_by_plain_bm25(results: DiscoveryResults) -> None:
    assert results.ours[Row(kind="keyword", first=5)] == results.counts[Row(kind="keyword", first=5)]
    assert all(results.ours[row] >= results.theirs[row] for row in results.counts)
