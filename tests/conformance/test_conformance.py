"""The official conformance suite passes against a server made with our own tool layer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.fixture.toolset import conformance_toolset
from tests.conformance.suite import Outcome, run_scenarios, run_suite
from tests.e2e.servers import served_over_http
from tests.guide.opened import opened, write_guide
from tests.server.task_calls import stored_tasks
from trysquare.server import ServeOptions

SUITE_SECONDS = 110

ACCEPTED_WARNINGS = {
    "sep-2322-ignore-unexpected-params": "the check answers a question that was never asked; we ask it first",
}
"""Checks of a SHOULD that we do not follow, and why."""


@pytest.mark.node
@pytest.mark.xdist_group("conformance")
@pytest.mark.parametrize(("revision", "count"), [("2026-07-28", 37), ("2025-11-25", 30)])
async def test_every_required_server_scenario_passes(
    revision: str, count: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    async with asyncio.timeout(SUITE_SECONDS), served_over_http(conformance_toolset()) as url:
        outcome = await run_suite(url, revision, tmp_path)
    record_property("shown", f"conformance {revision}: {outcome.passed}/{len(outcome.required)}")
    assert len(outcome.required) == count, "the suite's own list changed"
    assert not outcome.missing, f"not run: {', '.join(outcome.missing)}"
    assert not outcome.failures, _told(outcome)
    assert _unexpected_warnings(outcome) == []


SKILL_SCENARIOS = ("sep-2640-skills-enumeration", "sep-2640-skills-manifest")
"""The extension for skills. Its third scenario is about directories, which a guide does not serve."""


@pytest.mark.node
@pytest.mark.xdist_group("conformance")
async def test_the_skills_of_a_guide_pass_the_scenarios_of_their_extension(tmp_path: Path) -> None:
    write_guide(tmp_path / "shop")
    async with (
        asyncio.timeout(SUITE_SECONDS),
        opened(tmp_path / "shop") as app,
        served_over_http(app.toolset, app.serve_options(shared=True)) as url,
    ):
        outcome = await run_scenarios(url, SKILL_SCENARIOS, tmp_path / "results")
    assert not outcome.missing, f"not run: {', '.join(outcome.missing)}"
    assert not outcome.failures, _told(outcome)
    assert (outcome.warnings, outcome.skipped) == ({}, {})


TASK_SCENARIOS = tuple(
    f"tasks-{name}"
    for name in (
        "lifecycle",
        "capability-negotiation",
        "wire-fields",
        "request-state-removal",
        "mrtr-input",
        "request-headers",
        "dispatch-and-envelope",
        "status-notifications",
        "required-task-error",
        "mrtr-composition",
    )
)
"""The extension for tasks. The scenario of its notifications has no checks yet and counts as passed."""


@pytest.mark.node
@pytest.mark.xdist_group("conformance")
async def test_tasks_pass_the_scenarios_of_their_extension(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    options = ServeOptions(name="fixture", version="1", tasks=stored_tasks(tmp_path / "state"))
    async with asyncio.timeout(SUITE_SECONDS), served_over_http(conformance_toolset(), options) as url:
        outcome = await run_scenarios(url, TASK_SCENARIOS, tmp_path / "results")
    record_property("shown", f"conformance tasks: {outcome.passed}/{len(outcome.required)}")
    assert not outcome.missing, f"not run: {', '.join(outcome.missing)}"
    assert not outcome.failures, _told(outcome)
    assert outcome.warnings == {}
    assert list(outcome.skipped) == ["tasks-status-notifications"]


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
