"""The official conformance suite passes against a server made with our own tool layer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.conformance.fixture.toolset import conformance_toolset
from tests.conformance.suite import Outcome, run_suite
from tests.walks.servers import served_over_http

SUITE_SECONDS = 110

ACCEPTED_WARNINGS = {
    "sep-2322-ignore-unexpected-params": "the check answers a question that was never asked; we ask it first",
}
"""Checks of a SHOULD that we do not follow, and why."""


@pytest.mark.node
@pytest.mark.parametrize(("revision", "count"), [("2026-07-28", 37), ("2025-11-25", 30)])
async def test_every_required_server_scenario_passes(
    revision: str, count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with asyncio.timeout(SUITE_SECONDS), served_over_http(conformance_toolset()) as url:
        outcome = await run_suite(url, revision, tmp_path)
    with capsys.disabled():
        print(f"\nconformance {revision}: {outcome.passed}/{len(outcome.required)}")  # noqa: T201 - the count is the point
    assert len(outcome.required) == count, "the suite's own list changed"
    assert not outcome.missing, f"not run: {', '.join(outcome.missing)}"
    assert not outcome.failures, _told(outcome)
    assert _unexpected_warnings(outcome) == []


def _told(outcome: Outcome) -> str:
    lines = [f"{scenario}: {line}" for scenario, found in outcome.failures.items() for line in found]
    return "\n".join(["failed scenarios:", *lines])


def _unexpected_warnings(outcome: Outcome) -> list[str]:
    return [
        f"{scenario}: {line}"
        for scenario, found in outcome.warnings.items()
        for line in found
        if line.split(":", 1)[0] not in ACCEPTED_WARNINGS
    ]
