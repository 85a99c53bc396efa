"""timed: what is counted of each call. No test asserts how long anything took, only what is counted where."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from trysquare import CallContext, Result, StaticToolset, ToolError, call_tool, tool
from trysquare.core.errors import InputRequired
from trysquare.middleware.observability import BOUNDS, CallMetrics, Clock, ToolMetrics
from trysquare.testing import call


def only(meter: CallMetrics) -> ToolMetrics:
    [times] = meter.times()
    return times


async def test_calls_and_failures_are_counted() -> None:
    async def look(fail: str) -> Result[str]:
        if fail == "raise":
            raise ToolError("no")
        return Result.failure("no") if fail == "return" else Result.ok("yes")

    meter = CallMetrics()
    for fail in ("", "raise", "return", ""):
        await call(meter.measured(tool(look)), "look", fail=fail)
    times = only(meter)
    assert (times.tool, times.calls, times.failures, sum(times.buckets)) == ("look", 4, 2, 4)
    assert 0 < times.wall_max <= times.wall


async def test_waiting_for_a_person_is_no_failure() -> None:
    async def ask() -> None:
        raise InputRequired({})

    meter = CallMetrics()
    with pytest.raises(InputRequired):
        await meter.measured(tool(ask)).call({}, CallContext())
    assert (only(meter).calls, only(meter).failures) == (1, 0)


async def test_a_tool_that_was_never_called_has_no_times() -> None:
    async def look() -> None: ...

    meter = CallMetrics()
    meter.measured(tool(look))
    assert meter.times() == []


async def test_cpu_of_other_work_on_the_loop_does_not_count() -> None:
    ready, go = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        ready.set()
        await go.wait()
        return "done"

    meter = CallMetrics()
    running = asyncio.create_task(call(meter.measured(tool(wait)), "wait"))
    await ready.wait()
    busy_until = time.thread_time() + 0.05
    while time.thread_time() < busy_until:
        pass
    go.set()
    assert (await running).value == "done"
    assert 0 < only(meter).cpu < only(meter).wall, "the loop was busy elsewhere while the tool waited"


async def test_cpu_of_a_synchronous_tools_thread_counts() -> None:
    used: list[float] = []

    def work() -> str:
        started = time.thread_time()
        while time.thread_time() < started + 0.02:
            pass
        used.append(time.thread_time() - started)
        return "done"

    meter = CallMetrics()
    assert (await call(meter.measured(tool(work)), "work")).value == "done"
    assert only(meter).cpu >= used[0]


async def test_what_the_tool_awaits_is_resumed_with_values_and_errors() -> None:
    async def gather() -> list[str]:
        async def give(value: str) -> str:
            await asyncio.sleep(0)
            return value

        async def fail() -> None:
            await asyncio.sleep(0)
            raise ValueError("inner")

        got = [await give("a"), await asyncio.create_task(give("b"))]
        try:
            await asyncio.create_task(fail())
        except ValueError as error:
            got.append(str(error))
        return got

    assert (await call(CallMetrics().measured(tool(gather)), "gather")).value == ["a", "b", "inner"]


async def test_cancellation_reaches_the_tool_and_is_no_failure() -> None:
    ready, ended = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        ready.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    meter = CallMetrics()
    running = asyncio.create_task(call_tool(StaticToolset([meter.measured(tool(wait))]), "wait"))
    await ready.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (ended.is_set(), only(meter).calls, only(meter).failures) == (True, 1, 0)


async def test_a_timeout_inside_the_tool_works_as_without_the_wrapper() -> None:
    async def wait() -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            return "timed out"
        return "never"

    assert (await call(CallMetrics().measured(tool(wait)), "wait")).value == "timed out"


def test_each_bucket_ends_at_its_bound() -> None:
    clock = Clock("look")
    for bound in BOUNDS:
        clock.add(bound, 0.0, failed=False)
    clock.add(BOUNDS[-1] + 1, 0.0, failed=False)
    assert clock.times().buckets == (1,) * (len(BOUNDS) + 1)


def test_counting_is_safe_among_threads() -> None:
    clock = Clock("look")

    def count() -> None:
        for _ in range(2000):
            clock.add(0.5, 0.25, failed=True)

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times = clock.times()
    assert (times.calls, times.failures, times.wall, times.cpu) == (16000, 16000, 8000.0, 4000.0)


async def test_the_cpu_of_a_tool_that_is_called_very_often_is_told_for_all_its_calls() -> None:
    clock = Clock("busy")
    weights = [clock.weight() for _ in range(2000)]
    assert sum(weight > 0 for weight in weights) < 500
    assert sum(weights) == pytest.approx(2000, rel=0.01)


async def test_the_cpu_that_is_told_never_shrinks() -> None:
    clock, told = Clock("busy"), [0.0]
    for number in range(1000):
        # The first calls take much more than the later ones.
        clock.add(0.001, clock.weight() * (0.5 if number < 200 else 0.001), failed=False)
        told.append(clock.times().cpu)
    assert told == sorted(told)
    assert told[-1] == pytest.approx(200 * 0.5 + 800 * 0.001, rel=0.01)
