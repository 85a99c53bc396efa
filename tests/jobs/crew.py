"""One process of a crew: it takes up what others leave, runs what it is told to start, and lives until it is ended.

It prints `ready`, then a line for every step that it has done.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio

from trysquare.core.json import JsonObject
from trysquare.jobs import JobRun, open_engine
from trysquare.jobs.engine import Liveness


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def appeared(path: str) -> None:
    """Wait for a file, with which a test says when."""
    there = False
    while not there:
        await anyio.sleep(0.02)
        there = await anyio.Path(path).exists()


async def work(argument: JsonObject, run: JobRun) -> JsonObject:
    """Some steps, each of which takes a moment."""
    if "gate" in argument:
        await appeared(argument["gate"])
    for number in range(argument["steps"]):

        async def one(number: int = number) -> JsonObject:
            say(f"{run.job} {number}")
            await anyio.sleep(argument["seconds"])
            return {"number": number}

        await run.step(f"step {number}", one)
    return {"steps": argument["steps"]}


async def hold(argument: JsonObject, run: JobRun) -> JsonObject:
    """A step that ends once the file of that name is there, so that a test decides when."""

    async def one() -> JsonObject:
        say(f"{run.job} holds")
        await appeared(argument["until"])
        return {"by": argument["until"]}

    await run.step("hold", one)
    say(f"{run.job} went on")
    return await work({"steps": 1, "seconds": 0}, run)


async def live(asked: dict[str, Any]) -> None:
    pulse = Liveness(**asked.get("pulse", {}))
    bodies = {"work": work, "hold": hold}
    async with open_engine(asked["url"], bodies, adopting=asked.get("adopting", True), pulse=pulse) as engine:
        for job in asked.get("start", ()):
            await engine.start(asked.get("kind", "work"), asked["argument"], title="a job", job=job)
        say("ready")
        await anyio.to_thread.run_sync(sys.stdin.readline)


if __name__ == "__main__":
    anyio.run(live, json.loads(sys.argv[1]))
