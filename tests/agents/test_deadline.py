"""One deadline for the model and the tools: whatever hangs is left behind, and the run ends with what is known."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.agents.scripted import FINISH, ScriptedModel, call, definition, run_script, workbench
from trysquare import Result, Tool, tool
from trysquare.agents import budget as deadline
from trysquare.agents.budget import Budget
from trysquare.agents.capabilities import local_probes
from trysquare.agents.completion import Criteria
from trysquare.agents.journal import CallOutcome, Repeat
from trysquare.agents.policy import Policy
from trysquare.core.json import JsonObject
from trysquare.models import ModelResponse


class Recorded:
    """The journal of a job: what is recorded is not done again."""

    job = "job-1"

    def __init__(self, recorded: dict[str, JsonObject] | None = None) -> None:
        self.recorded = {} if recorded is None else recorded

    async def step(self, name: str, run: Callable[[], Awaitable[JsonObject]]) -> JsonObject:
        if name not in self.recorded:
            self.recorded[name] = await run()
        return self.recorded[name]

    async def call(self, name: str, repeat: Repeat, run: Callable[[str], Awaitable[JsonObject]]) -> CallOutcome:
        return CallOutcome(value=await self.step(name, lambda: run(name)))

    async def report(self, done: int, total: int | None, message: str) -> None:
        return None


@contextmanager
def hanging(kind: str) -> Generator[Tool]:
    """A tool that never comes back by itself."""
    released = threading.Event()
    stop = asyncio.Event()

    async def waits() -> str:
        """Wait for ever."""
        await asyncio.Event().wait()
        return ""

    async def swallows(often: int) -> str:
        """Wait for ever, and do not hear that nobody waits any more."""
        for _ in range(often):
            try:
                await stop.wait()
            except asyncio.CancelledError:
                continue
        await asyncio.Event().wait()
        return ""

    async def swallows_once() -> str:
        """Wait for ever."""
        return await swallows(1)

    async def swallows_always() -> str:
        """Wait for ever."""
        return await swallows(100)

    def blocks() -> str:
        """Wait for ever in a thread."""
        released.wait()
        return ""

    functions = {"async": waits, "once": swallows_once, "always": swallows_always, "thread": blocks}
    try:
        yield tool(functions[kind], name="hang")
    finally:
        released.set()
        stop.set()


SHORT = definition(budget=Budget(seconds=0.2))


@pytest.mark.parametrize("kind", ["async", "once", "always", "thread"])
@pytest.mark.parametrize("in_job", [True, False])
async def test_a_tool_that_hangs_is_left_behind_at_the_deadline(
    kind: str, in_job: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "GRACE", 0.3)
    model = ScriptedModel([[call("hang"), call("hang")], FINISH])
    with hanging(kind) as hang, anyio.fail_after(60):
        journal = Recorded() if in_job else None
        outcome = await run_script(model, [hang], agent=SHORT, journal=journal)
    assert (outcome.status, outcome.calls, len(model.requests)) == ("out_of_budget", 2, 1)
    assert outcome.spent.seconds >= 0.2
    if journal is not None:
        values = [value for name, value in journal.recorded.items() if name.startswith("call")]
        assert [value["code"] for value in values] == ["TOOL_TIMEOUT"], "the second call was never begun"


async def test_a_command_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    agent = definition(budget=Budget(seconds=1), policy=Policy(default="allow"))
    model = ScriptedModel([call("bash", command="echo begun > begun; sleep 1000 & sleep 1000"), FINISH])
    async with workbench(tmp_path) as toolset:
        with anyio.fail_after(120):
            outcome = await run_script(model, toolset, agent=agent, root=tmp_path, probes=local_probes(tmp_path))
    assert outcome.status == "out_of_budget"


async def test_the_time_of_tools_counts_in_a_job_and_stays_counted_when_it_is_taken_up_again() -> None:
    async def quick() -> str:
        """Answer at once."""
        return "done"

    journal = Recorded()
    agent = definition(budget=Budget(seconds=50, steps=2))
    first = await run_script([call("quick")] * 2, [tool(quick)], agent=agent, journal=journal)
    assert first.summary == "All 2 steps are used."
    journal.recorded["call 1.1 quick"]["seconds"] = 60.0
    again = await run_script([], [tool(quick)], agent=agent, journal=Recorded(journal.recorded))
    assert (again.status, again.spent.steps) == ("out_of_budget", 1)
    assert again.spent.seconds >= 60


async def test_a_model_that_does_not_let_itself_be_ended_is_left_behind_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "GRACE", 0.3)
    stop = asyncio.Event()

    class Deaf(ScriptedModel):
        async def answer(self, request: Any) -> ModelResponse:
            while not stop.is_set():
                try:
                    await stop.wait()
                except asyncio.CancelledError:
                    continue
            raise AssertionError

    with anyio.fail_after(60):
        outcome = await run_script(Deaf([]), agent=SHORT)
    stop.set()
    assert (outcome.status, outcome.spent.steps) == ("out_of_budget", 0)


async def test_the_tests_that_finish_runs_once_more_are_held_to_the_deadline_too() -> None:
    runs = 0

    async def suite() -> Result[Any]:
        """Run the tests; the second time they hang."""
        nonlocal runs
        runs += 1
        if runs > 1:
            await asyncio.Event().wait()
        return Result(success=True, fields={"passed": True})

    agent = definition(budget=Budget(seconds=0.5), criteria=Criteria(tests_pass=True))
    model = ScriptedModel([call("test"), FINISH])
    with anyio.fail_after(60):
        outcome = await run_script(model, [tool(suite, name="test")], agent=agent)
    assert (outcome.status, runs) == ("out_of_budget", 2)


async def test_a_run_that_is_cancelled_ends_its_tool() -> None:
    ended = asyncio.Event()
    begun = asyncio.Event()

    async def long() -> str:
        """Take long."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    running = asyncio.ensure_future(run_script([call("long")], [tool(long)]))
    await begun.wait()
    running.cancel()
    with anyio.fail_after(20), pytest.raises(asyncio.CancelledError):
        await running
    assert ended.is_set()
