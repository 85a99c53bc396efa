"""Watching: a job, and the files that it changed."""

from __future__ import annotations

from trysquare.core.threads import run_in_thread
from trysquare.workbench.bench import Bench
from trysquare.workbench.shell.job import Job, Outcome
from trysquare.workbench.tree import changed_between, shown, snapshot

MOST_NAMED = 200


async def watched(bench: Bench, job: Job) -> tuple[Outcome, list[str] | None]:
    """Run a job, and name the files that are different after it; None where there are too many to look at."""
    before = await run_in_thread(lambda: snapshot(bench.workspace))
    outcome = await bench.sandbox.run(job)
    after = await run_in_thread(lambda: snapshot(bench.workspace))
    if before is None or after is None:
        return outcome, None
    return outcome, [shown(path) for path in changed_between(before, after)[:MOST_NAMED]]
