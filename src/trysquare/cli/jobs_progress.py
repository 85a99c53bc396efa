"""Live progress of a job: one line that changes on a terminal, a plain line for each change elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

import anyio

from trysquare.cli.output import styled
from trysquare.cli.streams import control
from trysquare.cli.terminal import TerminalCaller, ask_value, say
from trysquare.core.threads import run_in_thread
from trysquare.core.untrusted import folded
from trysquare.jobs.engine import FINAL, JobQuestion, JobReader, JobState, JobStatus

EVERY = 0.3
"""Seconds between two looks."""
STYLES: dict[JobState, str] = {
    "queued": "dim",
    "running": "cyan",
    "asks": "yellow",
    "interrupted": "yellow",
    "done": "green",
    "failed": "red",
    "cancelled": "dim",
}


async def watch(jobs: JobReader, job: str) -> JobStatus:
    """Show how far a job is until it ends. A person at the terminal is asked what it asks."""
    line = _Line(sys.stderr)
    asked: str | None = None
    try:
        while (found := await jobs.status(job)).state not in FINAL:
            line.show(found)
            if found.state == "asks" and found.question is not None and found.question.name != asked:
                asked = found.question.name
                line.end()
                await _answer(jobs, found.job, found.question)
            await anyio.sleep(EVERY)
        line.show(found)
        return found
    finally:
        line.end()


async def _answer(jobs: JobReader, job: str, question: JobQuestion) -> None:
    say(question.text)
    if not TerminalCaller().can_ask():
        say(f"Answer with: trysquare jobs resume {job} --answer {'|'.join(question.choices)}")
        return
    schema = {"type": "string", "title": "Answer", "enum": list(question.choices)}
    choice = await run_in_thread(lambda: ask_value("answer", schema, needed=True))
    if choice is not None:
        await jobs.signal(job, question.name, choice)


class QuietTerminal(TerminalCaller):
    """The person at the terminal, who is asked there and sees the progress of a job elsewhere."""

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        return None


class _Line:
    """The line that shows a job, rewritten in place where the stream is a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._last = ""

    def show(self, found: JobStatus) -> None:
        text = progress_text(found)
        if self._live:
            room = shutil.get_terminal_size((120, 24)).columns - 1
            clock = _clock(time.time() - found.created)
            anew = control("\r\x1b[2K", self._stream)
            self._stream.write(f"{anew}{_coloured(f'{clock}  {text}'[:room], found.state, self._stream)}")
        elif text != self._last:
            self._stream.write(f"{text}\n")
        self._last = text
        self._stream.flush()

    def end(self) -> None:
        """Leave the line as it stands."""
        if self._live and self._last:
            self._stream.write("\n")
            self._stream.flush()
            self._last = ""


def _coloured(text: str, state: JobState, stream: TextIO) -> str:
    return text.replace(state, styled(state, STYLES[state], stream=stream), 1)


def progress_text(found: JobStatus) -> str:
    """Where a job stands, in one line."""
    part = f"{found.done}/{found.total}" if found.total is not None else str(found.done)
    told = folded(found.message)
    return f"{found.job} {found.state} {part} {told}".rstrip()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(max(0, int(seconds)), 60)
    return f"{minutes}:{rest:02}"
