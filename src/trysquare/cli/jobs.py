"""`trysquare jobs`: list, show, resume, cancel and replay the durable runs of agents."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO, cast

from trysquare.app import agent_environment
from trysquare.cli import terminal
from trysquare.cli.command import Command, option
from trysquare.cli.options import JSON, add_place_options, load
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.threads import run_in_thread
from trysquare.core.untrusted import folded
from trysquare.jobs import (
    FINAL,
    JobQuestion,
    JobReader,
    JobState,
    JobStatus,
    RunEngine,
    StepRecord,
    open_engine,
    open_reader,
)
from trysquare.providers import jobs_address
from trysquare.settings.load import Loaded

if TYPE_CHECKING:
    from trysquare.agents.journal import Journal

EVERY = 0.3
"""Seconds between two polls."""
_STYLES: dict[JobState, str] = {
    "queued": "dim",
    "running": "cyan",
    "asks": "yellow",
    "interrupted": "yellow",
    "done": "green",
    "failed": "red",
    "cancelled": "dim",
}
LONGEST_VALUE = 2_000
"""Characters of a value in a replay; `--step` shows all of it."""


@asynccontextmanager
async def _opened(arguments: argparse.Namespace) -> AsyncGenerator[JobReader]:
    loaded = load(arguments)
    address = jobs_address(loaded.settings, loaded.origins)
    async with open_reader(address.url, project=address.project) as jobs:
        yield jobs


async def _list(arguments: argparse.Namespace) -> None:
    async with _opened(arguments) as jobs:
        found = await jobs.list(limit=max(1, arguments.limit))
    rows = [
        (each.job, each.state, _part(each), _shown_time(each.updated), " ".join(each.title.split())) for each in found
    ]
    report, headings = [_job_json(each) for each in found], ("JOB", "STATE", "DONE", "UPDATED", "TITLE")
    terminal.print_listing(report, headings, rows, json=arguments.json, empty="No jobs.")


def _part(found: JobStatus) -> str:
    return f"{found.done}/{found.total}" if found.total is not None else str(found.done)


def _shown_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")


async def _show(arguments: argparse.Namespace) -> None:
    async with _opened(arguments) as jobs:
        found = await jobs.status(arguments.job)
        if arguments.follow:
            found = await watch(jobs, found.job)
        steps = await jobs.steps(found.job)
    report = {**_job_json(found), "steps": [asdict(each) for each in steps]}
    terminal.print_report(report, lambda: _print_job(found, steps), json=arguments.json)


def _print_job(found: JobStatus, steps: Sequence[StepRecord]) -> None:
    print(f"{terminal.styled(found.job, 'bold')}  {terminal.styled(found.state, _STYLES[found.state])}  {found.title}")
    print(f"  begun    {_shown_time(found.created)}")
    print(f"  updated  {_shown_time(found.updated)}")
    if found.holder:
        print(f"  process  {found.holder}")
    for step in steps:
        print(f"  {_step_line(step)}")
    if found.message and found.state not in ("done", "failed"):
        print(f"  last     {found.message}")
    _print_end(found)


def _print_end(found: JobStatus) -> None:
    if found.question is not None and found.state not in ("done", "cancelled"):
        print(f"  asks     {found.question.text}")
        if found.question.ends is not None:
            left = max(0.0, found.question.ends - time.time())
            print(f"           unanswered in {left:.0f} s: {found.question.default}")
        print(f"           trysquare jobs resume {found.job} --answer {'|'.join(found.question.choices)}")
    if found.error and found.state == "failed":
        print(f"  error    {found.error}")
    if found.state in ("interrupted", "failed", "cancelled") and found.question is None:
        print(f"  go on    trysquare jobs resume {found.job}")
    if found.result is not None:
        print(f"  result   {found.result.get('summary', found.result)}")


async def _cancel(arguments: argparse.Namespace) -> None:
    async with _opened(arguments) as jobs:
        found = await jobs.status(arguments.job)
        await jobs.cancel(found.job)
    print(f"Job {found.job} is cancelled. Its changes remain; `trysquare jobs resume {found.job}` resumes it.")


@asynccontextmanager
async def agent_engine(loaded: Loaded) -> AsyncGenerator[RunEngine]:
    """Open an engine that runs agents as configured."""
    from trysquare.agents.journal import agent_bodies
    from trysquare.agents.runner import run_stored_request

    context = CallContext(caller=_QuietTerminal(), client="trysquare")
    address = jobs_address(loaded.settings, loaded.origins, make=True)
    with agent_environment(loaded.settings, loaded.origins) as around:

        async def run(kept: JsonObject, journal: Journal) -> JsonObject:
            return await run_stored_request(kept, journal, around, context)

        bodies = agent_bodies(run, question_seconds=loaded.settings.limits.job_question_seconds)
        async with open_engine(address.url, bodies, project=address.project) as engine:
            yield engine


async def _resume(arguments: argparse.Namespace) -> int:
    """Answer the job's question if `--answer` is given, and resume it unless another process runs it."""
    loaded = load(arguments)
    async with _opened(arguments) as jobs:
        found = await jobs.status(arguments.job)
        if arguments.answer is not None:
            await _answer(jobs, found, arguments.answer)
            if found.state in ("running", "asks"):
                terminal.say(f"Job {found.job} continues in process {found.holder}.")
                return 0
    async with agent_engine(loaded) as engine:
        recorded = len(await engine.steps(found.job))
        await engine.resume(found.job)
        terminal.say(f"Job {found.job} continues after {terminal.count(recorded, 'recorded step')}.")
        return _print_outcome(await watch(engine, found.job))


async def _answer(jobs: JobReader, found: JobStatus, choice: str) -> None:
    if found.question is None:
        raise ToolError(
            f"Job `{found.job}` has no open question.",
            code=ErrorCode.VALIDATION_INVALID_PARAM,
            instruction="Leave out --answer.",
        )
    await jobs.signal(found.job, found.question.name, choice)


def _print_outcome(found: JobStatus) -> int:
    """Print the outcome of a job, and return the exit code."""
    if found.state != "done" or found.result is None:
        ended = "has failed" if found.state == "failed" else "was cancelled"
        terminal.say(f"Job {found.job} {ended}. {found.error or ''}".rstrip())
        terminal.say(f"Resume it with: trysquare jobs resume {found.job}")
        return 1
    print(found.result.get("summary", found.result))
    return 0 if found.result.get("status", "finished") == "finished" else 1


async def _replay(arguments: argparse.Namespace) -> None:
    async with _opened(arguments) as jobs:
        found = await jobs.status(arguments.job)
        steps = await jobs.steps(found.job)
    report = [asdict(each) for each in steps]
    terminal.print_report(report, lambda: _print_replay(found, steps, only=arguments.step), json=arguments.json)


def _job_json(found: JobStatus) -> dict[str, Any]:
    asked = found.question
    question = asked and {
        "text": asked.text, "choices": list(asked.choices),
        **({} if asked.ends is None else {"default": asked.default, "ends": asked.ends}),
    }  # fmt: skip
    renamed = {"process" if name == "holder" else name: value for name, value in asdict(found).items()}
    return {**renamed, "question": question}


def _step_line(step: StepRecord) -> str:
    """A step in one line: name, duration, start of its value."""
    text = " ".join(_value_text(step.value).split())
    return f"{step.name:<28} {step.ended - step.started:6.1f} s  {text[:90]}{'…' if len(text) > 90 else ''}"


def _value_text(value: JsonObject) -> str:
    """The value of a step as text: an answer's words and calls, a result's text, or JSON."""
    inner = cast(JsonObject, value.get("value", value.get("answer", value)))
    said = [str(inner[name]) for name in ("text", "sent_unknown") if inner.get(name)]
    calls = cast(list[JsonObject], inner.get("calls") or [])
    said += [f"→ {call.get('name')} {json.dumps(call.get('arguments'), ensure_ascii=False)}" for call in calls]
    return "\n".join(said) or json.dumps(inner, ensure_ascii=False)


def _print_replay(found: JobStatus, steps: Sequence[StepRecord], *, only: str | None) -> None:
    """Print the recorded steps. No model and no tool is called."""
    if only is not None:
        _print_step(_named_step(found, steps, only), longest=None)
        return
    print(f"{terminal.styled(found.job, 'bold')}  {found.title}")
    for step in steps:
        _print_step(step, longest=LONGEST_VALUE)
    print(f"{terminal.count(len(steps), 'step')} recorded; the job is {found.state}.")


def _print_step(step: StepRecord, *, longest: int | None) -> None:
    print(terminal.styled(f"── {step.name} ({step.ended - step.started:.1f} s)", "cyan"))
    text = _value_text(step.value) if longest is not None else json.dumps(step.value, ensure_ascii=False, indent=2)
    print(text if longest is None or len(text) <= longest else f"{text[:longest]}… (--step '{step.name}' shows all)")


def _named_step(found: JobStatus, steps: Sequence[StepRecord], name: str) -> StepRecord:
    for step in steps:
        if step.name == name:
            return step
    raise NotFound(
        f"Job `{found.job}` has no recorded step `{name}`.",
        code=ErrorCode.JOB_NOT_FOUND,
        instruction=f"It has: {', '.join(step.name for step in steps) or 'none'}.",
    )


async def watch(jobs: JobReader, job: str) -> JobStatus:
    """Show the progress of a job until it ends, and ask its questions at the terminal."""
    line = _ProgressLine(sys.stderr)
    asked: str | None = None
    try:
        while (found := await jobs.status(job)).state not in FINAL:
            line.show(found)
            if found.state == "asks" and found.question is not None and found.question.name != asked:
                asked = found.question.name
                line.end()
                await _ask_question(jobs, found.job, found.question)
            await asyncio.sleep(EVERY)
        line.show(found)
        return found
    finally:
        line.end()


async def _ask_question(jobs: JobReader, job: str, question: JobQuestion) -> None:
    terminal.say(question.text)
    if not terminal.TerminalCaller().can_ask():
        terminal.say(f"Answer with: trysquare jobs resume {job} --answer {'|'.join(question.choices)}")
        return
    schema = {"type": "string", "title": "Answer", "enum": list(question.choices)}
    choice = await run_in_thread(lambda: terminal.ask_value("answer", schema, needed=True))
    if choice is not None:
        await jobs.signal(job, question.name, choice)


class _QuietTerminal(terminal.TerminalCaller):
    """A `TerminalCaller` without progress, which `watch` shows."""

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        return None


class _ProgressLine:
    """The progress line of a job, rewritten in place on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._last = ""

    def show(self, found: JobStatus) -> None:
        text = f"{found.job} {found.state} {_part(found)} {folded(found.message)}".rstrip()
        if self._live:
            minutes, seconds = divmod(max(0, int(time.time() - found.created)), 60)
            line = f"{minutes}:{seconds:02}  {text}"[: terminal.terminal_width() - 1]
            state = terminal.styled(found.state, _STYLES[found.state], stream=self._stream)
            anew = terminal.control("\r\x1b[2K", self._stream)
            self._stream.write(f"{anew}{line.replace(found.state, state, 1)}")
        elif text != self._last:
            self._stream.write(f"{text}\n")
        self._last = text
        self._stream.flush()

    def end(self) -> None:
        if self._live and self._last:
            self._stream.write("\n")
            self._stream.flush()
            self._last = ""


_LIMIT = option("--limit", type=int, default=50, metavar="N", help="maximum number (default: 50)")
_FOLLOW = option("--follow", action="store_true", help="show progress until it ends")
_ANSWER = option("--answer", metavar="CHOICE", help="the answer to the job's question: again or skip")
_STEP = option("--step", metavar="NAME", help="show only this step, in full")
_JOB = (option("job", metavar="JOB", help="the job's id, or a prefix of it"), add_place_options)
COMMAND = Command(
    subcommands={
        "list": Command(
            _list,
            (_LIMIT, JSON, add_place_options),
            "show the latest jobs and their state",
            examples=(
                "trysquare jobs list",
                "trysquare jobs list --limit 5 --json",
            ),
        ),
        "show": Command(
            _show,
            (_FOLLOW, JSON, *_JOB),
            "show one job and its steps",
            examples=(
                "trysquare jobs show e466d8",
                "trysquare jobs show e466d8 --follow",
            ),
        ),
        "resume": Command(
            _resume,
            (_ANSWER, *_JOB),
            "resume a job that was interrupted, failed or cancelled",
            examples=(
                "trysquare jobs resume e466d8",
                "trysquare jobs resume e466d8 --answer skip",
            ),
        ),
        "cancel": Command(
            _cancel,
            _JOB,
            "cancel a job, in whichever process it runs",
            examples=(
                "trysquare jobs cancel e466d8",
                "trysquare jobs cancel e466d8 --project ../shop",
            ),
        ),
        "replay": Command(
            _replay,
            (_STEP, JSON, *_JOB),
            "replay a job from its record alone",
            examples=(
                "trysquare jobs replay e466d8",
                "trysquare jobs replay e466d8 --step 'model 3'",
            ),
        ),
    },
    examples=(
        "trysquare jobs list",
        "trysquare jobs resume e466d8",
    ),
)
