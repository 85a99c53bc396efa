"""What is shown of a job's recorded steps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from trysquare.cli.output import count, styled
from trysquare.core.errors import ErrorCode, NotFound
from trysquare.core.types import JsonObject
from trysquare.jobs.engine import JobStatus, StepRecord

ROOM = 2_000
"""Characters of one value in a replay; `--step` shows all of it."""


def step_line(step: StepRecord) -> str:
    """A step in one line: its name, how long it took, how its value begins."""
    told = " ".join(value_text(step.value).split())
    return f"{step.name:<28} {step.ended - step.started:6.1f} s  {told[:90]}{'…' if len(told) > 90 else ''}"


def value_text(value: JsonObject) -> str:
    """What a step gave, as a person reads it: an answer's words and calls, a result's text, else the JSON."""
    inner = cast(JsonObject, value.get("value", value.get("answer", value)))
    said = [str(inner[name]) for name in ("text", "sent_unknown") if inner.get(name)]
    calls = cast(list[JsonObject], inner.get("calls") or [])
    said += [f"→ {call.get('name')} {json.dumps(call.get('arguments'), ensure_ascii=False)}" for call in calls]
    return "\n".join(said) or json.dumps(inner, ensure_ascii=False)


def print_replay(found: JobStatus, steps: Sequence[StepRecord], *, only: str | None) -> int:
    """Go through the record of a job, step by step. No model is asked and no tool is called."""
    if only is not None:
        _print_step(_named(found, steps, only), room=None)
        return 0
    print(f"{styled(found.job, 'bold')}  {found.title}")
    for step in steps:
        _print_step(step, room=ROOM)
    print(f"{count(len(steps), 'step')} recorded; the job is {found.state}.")
    return 0


def _print_step(step: StepRecord, *, room: int | None) -> None:
    print(styled(f"── {step.name} ({step.ended - step.started:.1f} s)", "cyan"))
    text = value_text(step.value) if room is not None else json.dumps(step.value, ensure_ascii=False, indent=2)
    print(text if room is None or len(text) <= room else f"{text[:room]}… (--step '{step.name}' shows all)")


def _named(found: JobStatus, steps: Sequence[StepRecord], name: str) -> StepRecord:
    for step in steps:
        if step.name == name:
            return step
    raise NotFound(
        f"Job `{found.job}` has recorded no step `{name}`.",
        code=ErrorCode.JOB_NOT_FOUND,
        instruction=f"It has: {', '.join(step.name for step in steps) or 'none'}.",
    )
