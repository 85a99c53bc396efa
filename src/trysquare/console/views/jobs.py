"""The part Jobs: the durable runs of agents, each as a timeline of its recorded steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from starlette.responses import RedirectResponse, Response

from trysquare.console.failures import require_local
from trysquare.console.resuming import RESUMABLE
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
    title: str
    text: str
    calls: tuple[JsonObject, ...]
    arguments: JsonObject | None
    """Of a call."""
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
    turns, resumed = timeline(steps), visit.console.resumed
    return visit.page(
        "_job.html" if visit.is_part else "job.html", part="jobs", job=job, turns=turns, total=spent(turns),
        tones=TONES, is_over=job.state in FINAL, may_resume=job.state in RESUMABLE,
        is_starting=resumed.is_starting(job.job), said_last=resumed.said(job.job),
    )  # fmt: skip


async def cancel(visit: Visit) -> Response:
    """Cancel a job, in whichever process it runs."""
    async with visit.console.workspace.jobs() as jobs:
        job = await jobs.status(visit.request.path_params["job"])
        await jobs.cancel(job.job)
    return RedirectResponse(f"/jobs/{job.job}", 303)


async def resume(visit: Visit) -> Response:
    """Go on with a job that has stopped, in a process of its own."""
    require_local(visit.session)
    async with visit.console.workspace.jobs() as jobs:
        job = await jobs.status(visit.request.path_params["job"])
    await visit.console.resumed.start(job)
    return RedirectResponse(f"/jobs/{job.job}", 303)


def spent(turns: Sequence[Turn]) -> JsonObject:
    """What all turns of the model cost together, by kind; what none of them names is not listed."""
    total: dict[str, float] = {}
    for turn in turns:
        for name, value in turn.usage.items():
            if isinstance(value, int | float) and value:
                total[name] = total.get(name, 0) + value
    return {name: round(value, 4) for name, value in total.items()}


def timeline(steps: Sequence[StepRecord]) -> list[Turn]:
    """The steps with their places in time. The arguments of a call are with the turn of the model that made it."""
    first = min((step.started for step in steps), default=0.0)
    whole = (max((step.ended for step in steps), default=1.0) - first) or 1.0
    turns: list[Turn] = []
    asked: Sequence[JsonObject] = ()
    for step in steps:
        turn = _turn(step, first, whole, asked)
        asked = turn.calls or asked
        turns.append(turn)
    return turns


def _turn(step: StepRecord, first: float, whole: float, asked: Sequence[JsonObject]) -> Turn:
    inner = as_object(step.value.get("value", step.value.get("answer", step.value)))
    calls = tuple(as_object(each) for each in cast(list[Any], inner.get("calls") or []))
    text = next((str(inner[name]) for name in ("text", "sent_unknown", "message") if inner.get(name)), "")
    kind, _, place = step.name.partition(" ")
    number, _, name = place.partition(" ")
    return Turn(
        step=step,
        kind="model" if "usage" in inner else kind,
        title=name or step.name,
        text=text,
        calls=calls,
        arguments=_arguments(number, name, asked) if kind == "call" else None,
        usage=as_object(inner.get("usage")),
        start=round(100 * (step.started - first) / whole, 2),
        width=max(0.6, round(100 * (step.ended - step.started) / whole, 2)),
    )


def _arguments(number: str, name: str, asked: Sequence[JsonObject]) -> JsonObject | None:
    """The arguments of the call at a place such as `3.1`, where the turn before it named this tool there."""
    _, _, place = number.partition(".")
    at = int(place) - 1 if place.isdecimal() else 0
    if 0 <= at < len(asked) and asked[at].get("name") == name:
        return as_object(asked[at].get("arguments"))
    return next((as_object(each.get("arguments")) for each in asked if each.get("name") == name), None)


VIEWS = (
    ("GET", "/jobs", show),
    ("GET", "/jobs/{job}", show_job),
    ("POST", "/jobs/{job}/cancel", cancel),
    ("POST", "/jobs/{job}/resume", resume),
)
