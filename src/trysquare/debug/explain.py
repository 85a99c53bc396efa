"""explain_failure: run a failing test or program once, recorded from inside, and say why it failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from trysquare.core.types import JsonObject
from trysquare.debug.explaining import Explanation, explain
from trysquare.debug.recorded import TIMEOUT, Cost, record_run
from trysquare.debug.targets import Target
from trysquare.processes.nursery import Nursery


@dataclass(frozen=True, kw_only=True, slots=True)
class Explained:
    """What a recorded run came to."""

    outcome: str
    """failed, passed, exited, killed or unfinished."""
    exit_code: int | None
    failures: tuple[tuple[str, Explanation], ...]
    """The name of each failing test or program, and why it failed."""
    output: str
    cost: Cost


async def explain_failure(
    target: Target, root: Path, nursery: Nursery, *, timeout: float = TIMEOUT, env: Mapping[str, str] | None = None
) -> Explained:
    """Run a Python target recorded, wait for its end, and explain each failure."""
    run = await record_run(target, root, nursery, {"watch": "failure"}, timeout=timeout, env=env)
    failures = cast(list[JsonObject], run.found.get("failures") or [])
    return Explained(
        outcome=run.outcome,
        exit_code=run.exit_code,
        failures=tuple((str(each["name"]), explain(each)) for each in failures),
        output=run.output,
        cost=run.cost,
    )
