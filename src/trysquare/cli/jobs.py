"""`trysquare jobs`: the durable runs of agents: which there are, where they stand, and how they go on."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import anyio

from trysquare.app import jobs_address
from trysquare.cli.jobs_progress import STYLES, watch
from trysquare.cli.jobs_steps import print_replay, step_line
from trysquare.cli.options import add_place_options, load
from trysquare.cli.output import print_json, print_table, styled
from trysquare.jobs.engine import JobReader, JobStatus, StepRecord
from trysquare.jobs.opening import open_reader


def configure(parser: argparse.ArgumentParser) -> None:
    """Add what can be done with jobs."""
    actions = parser.add_subparsers(metavar="ACTION", required=True, dest="action")
    listing = actions.add_parser("list", help="show the latest jobs and where they stand", allow_abbrev=False)
    listing.add_argument("--limit", type=int, default=50, metavar="N", help="how many (default: 50)")
    show = actions.add_parser("show", help="show one job and its steps", allow_abbrev=False)
    show.add_argument("--follow", action="store_true", help="go on showing how far it is until it ends")
    again = actions.add_parser(
        "resume", help="take up a job that was interrupted, failed or was cancelled", allow_abbrev=False
    )
    again.add_argument("--answer", metavar="CHOICE", help="what the job asks: again or skip")
    cancel = actions.add_parser("cancel", help="stop a job, wherever it runs", allow_abbrev=False)
    replay = actions.add_parser("replay", help="go through what a job did, from its record alone", allow_abbrev=False)
    replay.add_argument("--step", metavar="NAME", help="this step only, in full")
    for action in (show, again, cancel, replay):
        action.add_argument("job", metavar="JOB", help="its id, or the beginning of it")
    for action in (listing, show, replay):
        action.add_argument("--json", action="store_true", help="print JSON")
    for action in (listing, show, again, cancel, replay):
        add_place_options(action)


def run(arguments: argparse.Namespace) -> int:
    """List, show, resume, cancel or replay."""
    actions = {"list": _list, "show": _show, "resume": _resume, "cancel": _cancel, "replay": _replay}
    return anyio.run(actions[arguments.action], arguments)


async def _resume(arguments: argparse.Namespace) -> int:
    # Only this action runs agents, and loads what they need.
    from trysquare.cli.jobs_resume import resume

    return await resume(arguments)


@asynccontextmanager
async def _opened(arguments: argparse.Namespace) -> AsyncGenerator[JobReader]:
    loaded = load(arguments)
    address = jobs_address(loaded.settings, loaded.origins)
    async with open_reader(address.url, project=address.project) as jobs:
        yield jobs


async def _list(arguments: argparse.Namespace) -> int:
    async with _opened(arguments) as jobs:
        found = await jobs.list(limit=max(1, arguments.limit))
    if arguments.json:
        print_json([as_json(each) for each in found])
    elif not found:
        print("There are no jobs here.")
    else:
        print_table(("JOB", "STATE", "DONE", "UPDATED", "TITLE"), [_row(each) for each in found])
    return 0


def _row(found: JobStatus) -> list[str]:
    part = f"{found.done}/{found.total}" if found.total is not None else str(found.done)
    return [found.job, found.state, part, shown_time(found.updated), " ".join(found.title.split())]


def shown_time(seconds: float) -> str:
    """A time of this place, to the second."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")


async def _show(arguments: argparse.Namespace) -> int:
    async with _opened(arguments) as jobs:
        found = await jobs.status(arguments.job)
        if arguments.follow:
            found = await watch(jobs, found.job)
        steps = await jobs.steps(found.job)
    if arguments.json:
        print_json({**as_json(found), "steps": [step_json(each) for each in steps]})
    else:
        _print_job(found, steps)
    return 0


def _print_job(found: JobStatus, steps: Sequence[StepRecord]) -> None:
    print(f"{styled(found.job, 'bold')}  {styled(found.state, STYLES[found.state])}  {found.title}")
    print(f"  begun    {shown_time(found.created)}")
    print(f"  updated  {shown_time(found.updated)}")
    if found.holder:
        print(f"  process  {found.holder}")
    for step in steps:
        print(f"  {step_line(step)}")
    if found.message and found.state not in ("done", "failed"):
        print(f"  last     {found.message}")
    _print_end(found)


def _print_end(found: JobStatus) -> None:
    if found.question is not None and found.state not in ("done", "cancelled"):
        print(f"  asks     {found.question.text}")
        print(f"           trysquare jobs resume {found.job} --answer {'|'.join(found.question.choices)}")
    if found.error and found.state == "failed":
        print(f"  error    {found.error}")
    if found.state in ("interrupted", "failed", "cancelled") and found.question is None:
        print(f"  go on    trysquare jobs resume {found.job}")
    if found.result is not None:
        print(f"  result   {found.result.get('summary', found.result)}")


async def _cancel(arguments: argparse.Namespace) -> int:
    async with _opened(arguments) as jobs:
        found = await jobs.status(arguments.job)
        await jobs.cancel(found.job)
    print(f"Job {found.job} is cancelled. What it did stays; `trysquare jobs resume {found.job}` takes it up again.")
    return 0


async def _replay(arguments: argparse.Namespace) -> int:
    async with _opened(arguments) as jobs:
        found = await jobs.status(arguments.job)
        steps = await jobs.steps(found.job)
    if arguments.json:
        print_json([step_json(each) for each in steps])
        return 0
    return print_replay(found, steps, only=arguments.step)


def as_json(found: JobStatus) -> dict[str, Any]:
    """A job as other programs read it."""
    question = found.question
    return {
        "job": found.job,
        "kind": found.kind,
        "title": found.title,
        "state": found.state,
        "created": found.created,
        "updated": found.updated,
        "process": found.holder,
        "done": found.done,
        "total": found.total,
        "message": found.message,
        "question": None if question is None else {"text": question.text, "choices": list(question.choices)},
        "error": found.error,
        "result": found.result,
        "argument": found.argument,
    }


def step_json(step: StepRecord) -> dict[str, Any]:
    """A step as other programs read it."""
    return {"name": step.name, "started": step.started, "ended": step.ended, "value": step.value}
