"""Start real servers and drive them through real MCP clients. `make demo` plays eight steps, `--all` every one."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import logging
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcp import MCPError

from examples.demo.chapters import EVERYTHING, TOUR, Chapter, Step, chosen, names
from examples.demo.stage import Stage
from examples.demo.transcript import Transcript, first_cause, replace_what_cannot_be_shown
from trysquare.cli.terminal import safe_streams
from trysquare.core.errors import ToolError


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the chosen steps; 1 if any of them did not show what it should."""
    chapters = _read(arguments)
    # The client's library warns when it calls a tool that is not listed; here that is the point.
    logging.getLogger("client").setLevel(logging.ERROR)
    logging.getLogger("mcp").setLevel(logging.ERROR)
    transcript = Transcript(of=sum(len(chapter.steps) for chapter in chapters), headings=chapters[0] is not TOUR[0])
    transcript.title("Trysquare: real servers, real MCP clients, in a temporary folder.")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="trysquare-demo-") as folder:
        asyncio.run(_play(chapters, transcript, Path(folder)))
        log = (Path(folder) / Stage.LOG).read_text(encoding="utf-8")
    return _conclude(transcript, time.monotonic() - started, log, hint=chapters[-1] is TOUR[-1])


def _read(arguments: Sequence[str] | None) -> list[Chapter[Any]]:
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="play every step")
    which.add_argument("--only", metavar="NAME", action="append", help="play one chapter or step; can be repeated")
    which.add_argument("--list", action="store_true", help="list the chapters and steps")
    options = parser.parse_args(arguments)
    if options.list:
        for chapter in (*TOUR, *EVERYTHING):
            print(f"{chapter.name:<14}{chapter.title}")
            for step in chapter.steps:
                print(f"  {step.name:<14}{step.title}")
        parser.exit()
    for name in set(options.only or ()) - set(names()):
        near = "".join(f" Did you mean `{each}`?" for each in difflib.get_close_matches(name, names(), n=1))
        parser.error(f"unknown step `{name}`.{near} --list shows all of them.")
    return chosen(options.only) if options.only else list(EVERYTHING if options.all else TOUR)


async def _play(chapters: Sequence[Chapter[Any]], transcript: Transcript, folder: Path) -> None:
    log = folder / Stage.LOG
    await asyncio.to_thread(log.touch)
    for number, chapter in enumerate(chapters):
        transcript.chapter(chapter.title)
        # Each chapter has a project of its own, so that it plays the same alone and after others.
        project = folder / f"{number}-{chapter.name}"
        await asyncio.to_thread(project.mkdir)
        await _play_chapter(chapter, Stage(transcript=transcript, project=project, log=log))


async def _play_chapter(chapter: Chapter[Any], stage: Stage) -> None:
    if missing := await asyncio.to_thread(chapter.missing):
        for step in chapter.steps:
            stage.transcript.left_out(step.title, missing)
        return
    async with chapter.opened(stage) as opened:
        for step in chapter.steps:
            await _play_step(step, opened, stage.transcript)


async def _play_step(step: Step[Any], opened: object, transcript: Transcript) -> None:
    """Play one step; what breaks it is a failure of that step, and the next one is played."""
    transcript.step(step.title, step.shows)
    try:
        await step.play(opened)
    except (MCPError, ToolError, KeyError, OSError, TimeoutError, RuntimeError, ExceptionGroup) as error:
        transcript.broke(error)


def _conclude(transcript: Transcript, seconds: float, log: str, *, hint: bool) -> int:
    if not transcript.failures:
        transcript.conclude(seconds)
        if hint:
            transcript.note("Every step there is: make demo ARGS=--all. Some of them: make demo ARGS='--only NAME'.")
        return 0
    transcript.failed()
    print("The server's log ends with:")
    for line in log.splitlines()[-15:]:
        print(f"  {line}")
    return 1


def _run() -> int:
    """Play in a terminal or a pipe; an interruption and a reader that has gone end it without a traceback."""
    replace_what_cannot_be_shown()
    try:
        with safe_streams():
            return main()
    except KeyboardInterrupt:
        return 130
    except (BrokenPipeError, ExceptionGroup) as error:
        if not isinstance(first_cause(error), BrokenPipeError):
            raise
        # What is still in the buffer would fail again when the interpreter flushes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


if __name__ == "__main__":
    sys.exit(_run())
