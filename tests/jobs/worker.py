"""A nest: a process that imports the engine once and forks lives of jobs, each of which may kill itself.

It reads one JSON object a line: what the next life does. It answers with one line when that life has ended.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import traceback
from pathlib import Path
from typing import Any

import anyio

from tests.jobs.agent_run import run_recorded
from tests.jobs.dying import Dying
from trysquare import ToolError
from trysquare.agents.journal import Journal, Repeat, agent_bodies
from trysquare.core.json import JsonObject
from trysquare.jobs import RunEngine, open_engine
from trysquare.jobs.dbos import DbosEngine
from trysquare.jobs.engine import Liveness

REPEATS: tuple[Repeat, ...] = ("harmless", "keyed", "unknown")


def step_name(number: int) -> str:
    """What the steps of the run are called."""
    kind = number % 4
    return f"answer {number}" if kind == 0 else f"call {number} {REPEATS[kind - 1]}"


async def run_steps(argument: JsonObject, journal: Journal) -> JsonObject:
    """A run like an agent's: an answer, then a call of each kind, and so on."""
    dying = Dying(Path(argument["folder"]))
    if argument["agent"]:
        return await run_recorded(journal, dying)
    seen: list[Any] = []
    for number in range(argument["steps"]):
        kind, name = number % 4, step_name(number)

        async def work(key: str = "", name: str = name, number: int = number) -> JsonObject:
            dying.do(name, key)
            return {"number": number, "bulk": "x" * argument.get("bulk", 0)}

        if kind == 0:
            seen.append((await journal.step(name, work))["number"])
        else:
            outcome = await journal.call(name, REPEATS[kind - 1], work)
            seen.append(outcome.value["number"] if outcome.value is not None else outcome.unknown)
        dying.at(name, "after")
        await journal.report(number + 1, argument["steps"], name)
    return {"seen": seen}


async def wait_for_question(engine: RunEngine, job: str) -> None:
    """Wait until the job asks."""
    found = await engine.status(job)
    while found.state != "asks":
        await anyio.sleep(0.05)
        found = await engine.status(job)


async def waited(engine: RunEngine, life: dict[str, Any]) -> None:
    """Wait for the job's end, and write down the error with which that may fail."""
    try:
        await engine.wait(life["job"])
    except ToolError as error:
        told = f"{error.code} {error} {error.instruction}"
        await anyio.Path(life["folder"], "error").write_text(told, encoding="utf-8")


async def live(life: dict[str, Any]) -> None:
    """Start the job, or take it up, and wait for its end."""
    pulse = Liveness(**life.get("pulse", {}))
    async with open_engine(life["url"], agent_bodies(run_steps), pulse=pulse) as engine:
        for name, choice in life.get("answers", {}).items():
            await engine.signal(life["job"], name, choice)
        if life["resume"]:
            await engine.resume(life["job"])
        else:
            argument = {"folder": life["folder"], "steps": life["steps"], "bulk": life.get("bulk", 0)}
            argument["agent"] = life.get("agent", False)
            await engine.start("agent", argument, title="a run", job=life["job"])
        if "room" in life:
            # Nothing in this process can make a file longer than this from now on: the disk is full.
            resource.setrlimit(resource.RLIMIT_FSIZE, (life["room"], resource.RLIM_INFINITY))
        with anyio.fail_after(60):
            if life.get("until") == "asks":
                await wait_for_question(engine, life["job"])
            else:
                await waited(engine, life)


def run_life(life: dict[str, Any]) -> int:
    """One life, in a process of its own, and how it ended."""
    child = os.fork()
    if child == 0:
        os.environ["KILL"] = json.dumps(life.get("kill"))
        code = 1
        try:
            anyio.run(live, life)
            code = 0
        finally:
            if code:
                traceback.print_exc()
            # The rest of the nest belongs to its own process: nothing of it may run here.
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    assert DbosEngine, "imported once, for all lives"
    for line in sys.stdin:
        sys.stdout.write(f"{run_life(json.loads(line))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
