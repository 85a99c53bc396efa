"""Threads for synchronous tools: bounded, reused, daemonic; a hung tool stops nobody."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from textwrap import dedent
from typing import Any

import pytest

from trysquare.core.threads import ThreadRunner

PATIENCE = 10


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - what another thread counts has no event to wait for
            await asyncio.sleep(0)


async def test_a_function_runs_in_a_daemon_thread_and_its_value_comes_back() -> None:
    thread = await ThreadRunner().run(threading.current_thread)
    assert thread is not threading.main_thread()
    assert thread.daemon


async def test_an_idle_thread_is_used_again() -> None:
    runner = ThreadRunner()
    first = await runner.run(threading.get_ident)
    await until(lambda: runner._idle == 1)
    assert await runner.run(threading.get_ident) == first


async def test_errors_come_back_whatever_they_are() -> None:
    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        await ThreadRunner().run(fail)


async def test_no_more_functions_run_at_once_than_the_limit_and_all_get_their_turn() -> None:
    runner = ThreadRunner(limit=3)
    lock, running, most = threading.Lock(), 0, 0

    def work(number: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        with lock:
            running -= 1
        return number

    async with asyncio.timeout(PATIENCE):
        done = await asyncio.gather(*(runner.run(lambda n=n: work(n)) for n in range(50)))
    assert done == list(range(50))
    assert most <= 3
    assert runner._threads <= 3


async def test_a_function_that_waits_its_turn_never_starts_once_its_caller_has_gone() -> None:
    runner = ThreadRunner(limit=1)
    release, ran = threading.Event(), threading.Event()
    first = asyncio.ensure_future(runner.run(lambda: release.wait(PATIENCE)))
    await until(lambda: runner._threads == 1 and not runner._queue)
    second = asyncio.ensure_future(runner.run(ran.set))
    await until(lambda: len(runner._queue) == 1)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    release.set()
    assert await first
    assert await runner.run(lambda: "next") == "next"
    assert not ran.is_set()


async def test_a_function_that_hangs_without_a_caller_gives_its_place_to_others() -> None:
    runner = ThreadRunner(limit=1, abandoned_limit=1)
    started, release = threading.Event(), threading.Event()

    def hang() -> None:
        started.set()
        release.wait(PATIENCE)

    hung = asyncio.ensure_future(runner.run(hang))
    await until(started.is_set)
    waiting = asyncio.ensure_future(runner.run(lambda: "served"))
    await until(lambda: len(runner._queue) == 1)
    hung.cancel()
    async with asyncio.timeout(PATIENCE):
        assert await waiting == "served"
    assert (runner._threads, runner._abandoned) == (1, 1)
    release.set()
    await until(lambda: runner._abandoned == 0)
    assert await runner.run(lambda: "still") == "still"


async def test_the_number_of_abandoned_threads_is_bounded() -> None:
    runner = ThreadRunner(limit=1, abandoned_limit=0)
    started, release = threading.Event(), threading.Event()

    def hang() -> None:
        started.set()
        release.wait(PATIENCE)

    hung = asyncio.ensure_future(runner.run(hang))
    await until(started.is_set)
    hung.cancel()
    waiting = asyncio.ensure_future(runner.run(lambda: "served"))
    await until(lambda: len(runner._queue) == 1)
    assert (runner._threads, runner._abandoned) == (1, 0)
    release.set()
    async with asyncio.timeout(PATIENCE):
        assert await waiting == "served"


async def test_functions_that_run_for_long_give_their_places_to_those_that_wait() -> None:
    runner = ThreadRunner(limit=4, abandoned_limit=4, patience=0.05)
    release = threading.Event()
    hung = [asyncio.ensure_future(runner.run(lambda n=n: (release.wait(PATIENCE), n)[1])) for n in range(4)]
    async with asyncio.timeout(PATIENCE):
        served = await asyncio.gather(*(runner.run(lambda n=n: n) for n in range(20)))
        assert served == list(range(20))
        assert not any(each.done() for each in hung)
        release.set()
        assert await asyncio.gather(*hung) == [0, 1, 2, 3], "whoever waits for them gets what they return"
        await until(lambda: runner._abandoned == 0)


async def test_no_more_functions_than_the_limit_give_up_their_places() -> None:
    runner = ThreadRunner(limit=2, abandoned_limit=1, patience=0.05)
    release, running = threading.Event(), set[int]()

    def hang(number: int) -> int:
        running.add(number)
        release.wait(PATIENCE)
        return number

    hung = [asyncio.ensure_future(runner.run(lambda n=n: hang(n))) for n in range(10)]
    await until(lambda: len(running) == 3)
    assert (runner._threads, runner._abandoned, len(runner._queue)) == (2, 1, 7)
    release.set()
    async with asyncio.timeout(PATIENCE):
        assert await asyncio.gather(*hung) == list(range(10))


async def test_a_cancelled_function_gives_up_its_place_once() -> None:
    runner = ThreadRunner(limit=1, abandoned_limit=2, patience=0.05)
    started, release = threading.Event(), threading.Event()

    def hang() -> None:
        started.set()
        release.wait(PATIENCE)

    hung = asyncio.ensure_future(runner.run(hang))
    await until(started.is_set)
    assert await runner.run(lambda: "served") == "served"
    hung.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hung
    assert (runner._threads, runner._abandoned) == (1, 1)
    release.set()
    await until(lambda: runner._abandoned == 0)
    assert runner._threads == 1


async def test_context_variables_reach_the_thread() -> None:
    variable: ContextVar[str] = ContextVar("variable", default="unset")
    variable.set("here")
    assert await ThreadRunner().run(variable.get) == "here"


async def test_a_system_without_threads_is_told_and_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    runner = ThreadRunner()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="cannot start a thread"):
            await runner.run(lambda: None)
    assert (runner._threads, len(runner._queue)) == (0, 0)
    assert await runner.run(lambda: 1) == 1


HANGING = """
    import asyncio, threading
    from trysquare import tool, call_tool, StaticToolset

    def hang() -> None:
        threading.Event().wait()

    async def main() -> None:
        result = await call_tool(StaticToolset([tool(hang, timeout=0.05)]), "hang")
        print(result.code)

    asyncio.run(main())
"""


def test_a_tool_that_hangs_does_not_keep_the_process_from_ending() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", dedent(HANGING)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, "TOOL_TIMEOUT", "")


def test_work_that_ends_after_its_loop_has_closed_is_let_go() -> None:
    runner, started, release, ended = ThreadRunner(), threading.Event(), threading.Event(), threading.Event()
    failed: list[Any] = []

    def late() -> None:
        started.set()
        release.wait(PATIENCE)
        ended.set()

    async def leave() -> None:
        task = asyncio.ensure_future(runner.run(late))
        await until(started.is_set)
        task.cancel()

    threading.excepthook, before = failed.append, threading.excepthook
    try:
        asyncio.run(leave())
        release.set()
        assert ended.wait(PATIENCE)
    finally:
        threading.excepthook = before
    assert failed == []
