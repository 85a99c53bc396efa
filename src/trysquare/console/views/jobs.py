"""The part Jobs: the durable runs of agents, each as a timeline of its recorded steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from starlette.responses import RedirectResponse, Response

from trysquare.core.json import JsonObject, as_object
from trysquare.jobs import FINAL, StepRecord

if TYPE_CHECKING:
    from trysquare.console.app import Visit

SHOWN = 100
TONES = {"running": "good", "asks": "warn", "interrupted": "warn", "failed": "bad", "done": "good"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One step of a timeline. Positions are parts of the whole time, in percent."""

    step: StepRecord
    kind: str
    text: str
    calls: tuple[JsonObject, ...]
    usage: JsonObject
    start: float
    width: float


async def show(visit: Visit) -> Response:
    """The latest jobs."""
    async with visit.console.workspace.jobs() as jobs:
        found = await jobs.list(limit=SHOWN)
    return visit.page("_job_rows.html" if visit.is_part else "jobs.html", part="jobs", jobs=found, tones=TONES)


async def show_job(visit: Visit) -> Response:
    """One job with its steps."""
    async with visit.console.workspace.jobs() as jobs:
        job = await jobs.status(visit.request.path_params["job"])
        steps = await jobs.steps(job.job)
    template = "_job.html" if visit.is_part else "job.html"
    is_over = job.state in FINAL
    return visit.page(template, part="jobs", job=job, turns=timeline(steps), tones=TONES, is_over=is_over)


async def cancel(visit: Visit) -> Response:
    """Cancel a job, in whichever process it runs."""
    async with visit.console.workspace.jobs() as jobs:
        job = await jobs.status(visit.request.path_params["job"])
        await jobs.cancel(job.job)
    return RedirectResponse(f"/jobs/{job.job}", 303)


def timeline(steps: Sequence[StepRecord]) -> list[Turn]:
    """The steps with their places in time."""
    first = min((step.started for step in steps), default=0.0)
    whole = (max((step.ended for step in steps), default=1.0) - first) or 1.0
    return [_turn(step, first, whole) for step in steps]


def _turn(step: StepRecord, first: float, whole: float) -> Turn:
    inner = as_object(step.value.get("value", step.value.get("answer", step.value)))
    calls = cast(list[Any], inner.get("calls") or [])
    text = next((str(inner[name]) for name in ("text", "sent_unknown", "message") if inner.get(name)), "")
    return Turn(
        step=step,
        kind=step.name.partition(" ")[0],
        text=text,
        calls=tuple(as_object(each) for each in calls),
        usage=as_object(inner.get("usage")),
        start=round(100 * (step.started - first) / whole, 2),
        width=max(0.6, round(100 * (step.ended - step.started) / whole, 2)),
    )


VIEWS = (("GET", "/jobs", show), ("GET", "/jobs/{job}", show_job), ("POST", "/jobs/{job}/cancel", cancel))
