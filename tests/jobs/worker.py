"""A nest: a process that imports the engine once and forks lives of jobs, each of which may kill itself.

It reads one JSON object a line: what the next life does. It answers with one line when that life has ended.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import sys
import traceback
from pathlib import Path
from typing import Any

import anyio

from trysquare.agent.job import agent_bodies
from trysquare.agent.journal import Journal, Repeat
from trysquare.core.errors import ToolError
from trysquare.core.types import JsonObject
from trysquare.jobs.dbos_engine import DbosEngine
from trysquare.jobs.engine import Pulse, RunEngine
from trysquare.jobs.opening import open_engine

REPEATS: tuple[Repeat, ...] = ("harmless", "keyed", "unknown")


def step_name(number: int) -> str:
    """What the steps of the run are called."""
    kind = number % 4
    return f"answer {number}" if kind == 0 else f"call {number} {REPEATS[kind - 1]}"


class Dying:
    """What a life does in its steps: it writes down every effect, and kills itself where it is told to."""

    def __init__(self, folder: Path, kill: list[str] | None) -> None:
        self._folder = folder
        self._kill = kill

    def at(self, name: str, point: str) -> None:
        if self._kill == [name, point]:
            os.kill(os.getpid(), signal.SIGKILL)

    def write(self, what: str, name: str) -> None:
        with (self._folder / "effects").open("a", encoding="utf-8") as file:
            file.write(f"{what} {name}\n")

    def happen(self, name: str, key: str) -> None:
        """An effect of a tool that takes keys: it happens once for each key."""
        ledger = sqlite3.connect(self._folder / "ledger.db", isolation_level=None)
        ledger.execute("CREATE TABLE IF NOT EXISTS happened (key TEXT PRIMARY KEY, name TEXT)")
        ledger.execute("INSERT OR IGNORE INTO happened VALUES (?, ?)", (key, name))
        ledger.close()


async def run_steps(argument: JsonObject, journal: Journal) -> JsonObject:
    """A run like an agent's: an answer, then a call of each kind, and so on."""
    dying = Dying(Path(argument["folder"]), json.loads(os.environ.get("KILL", "null")))
    seen: list[Any] = []
    for number in range(argument["steps"]):
        kind, name = number % 4, step_name(number)

        async def work(key: str = "", name: str = name, number: int = number) -> JsonObject:
            dying.at(name, "before")
            dying.write("ran", name)
            if key:
                dying.happen(name, key)
            dying.at(name, "within")
            return {"number": number, "bulk": "x" * argument.get("bulk", 0)}

        if kind == 0:
            seen.append((await journal.step(name, work))["number"])
        else:
            outcome = await journal.call(name, REPEATS[kind - 1], work)
            seen.append(outcome.value["number"] if outcome.value is not None else outcome.unknown)
        dying.at(name, "after")
        await journal.tell(number + 1, argument["steps"], name)
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
    pulse = Pulse(**life.get("pulse", {}))
    async with open_engine(life["url"], agent_bodies(run_steps), pulse=pulse) as engine:
        for name, choice in life.get("answers", {}).items():
            await engine.signal(life["job"], name, choice)
        if life["resume"]:
            await engine.resume(life["job"])
        else:
            argument = {"folder": life["folder"], "steps": life["steps"], "bulk": life.get("bulk", 0)}
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
