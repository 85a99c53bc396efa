"""Background tasks, shielded clean-up and timeouts: referenced, reported, finished, and fired unless cancelled."""

from __future__ import annotations

import asyncio

import anyio
import pytest
import uvloop

from trysquare.core.concurrency import BackgroundTasks, TimeoutScheduler, TurnBuffer, cancel_all, shielded

PATIENCE = 10
LATE = 3600


async def test_a_timeout_fires_once_it_is_due() -> None:
    timeouts, rung = TimeoutScheduler(), asyncio.Event()
    timeouts.schedule("a", 0.001, rung.set)
    with anyio.fail_after(PATIENCE):
        await rung.wait()


async def test_a_sooner_timeout_does_not_wait_for_one_that_was_set_before() -> None:
    timeouts, late, soon = TimeoutScheduler(), asyncio.Event(), asyncio.Event()
    timeouts.schedule("late", LATE, late.set)
    timeouts.schedule("soon", 0.001, soon.set)
    with anyio.fail_after(PATIENCE):
        await soon.wait()
    assert not late.is_set()


async def test_a_later_timeout_fires_although_those_before_it_were_cancelled() -> None:
    timeouts, first, second = TimeoutScheduler(), asyncio.Event(), asyncio.Event()
    timeouts.schedule("first", 0.001, first.set)
    timeouts.schedule("second", 0.01, second.set)
    timeouts.cancel("first")
    with anyio.fail_after(PATIENCE):
        await second.wait()
    assert not first.is_set()


async def test_a_timeout_that_schedules_another_has_it_fire_as_well() -> None:
    timeouts, rung = TimeoutScheduler(), asyncio.Event()
    timeouts.schedule("a", 0.001, lambda: timeouts.schedule("b", 0.001, rung.set))
    with anyio.fail_after(PATIENCE):
        await rung.wait()


async def test_scheduling_a_timeout_anew_moves_it() -> None:
    timeouts, early, moved = TimeoutScheduler(), asyncio.Event(), asyncio.Event()
    timeouts.schedule("a", 0.001, early.set)
    timeouts.schedule("a", 0.01, moved.set)
    with anyio.fail_after(PATIENCE):
        await moved.wait()
    assert not early.is_set()


async def test_cancelling_what_was_never_scheduled_does_nothing() -> None:
    TimeoutScheduler().cancel("a")


def test_one_that_is_due_at_once_does_not_keep_others_from_being_set_on_uvloop() -> None:
    async def ring_both() -> None:
        timeouts, first, second = TimeoutScheduler(), asyncio.Event(), asyncio.Event()
        # uvloop has no timer for what is due within half a millisecond.
        timeouts.schedule("first", 0.0001, first.set)
        timeouts.schedule("second", 0, second.set)
        with anyio.fail_after(PATIENCE):
            await first.wait()
            await second.wait()

    uvloop.run(ring_both())


async def test_background_tasks_are_awaited_also_those_started_meanwhile() -> None:
    tasks, ended = BackgroundTasks(), list[str]()

    async def inner() -> None:
        await asyncio.sleep(0)
        ended.append("inner")

    async def outer() -> None:
        tasks.start(inner())
        ended.append("outer")

    tasks.start(outer())
    await tasks.wait()
    assert ended == ["outer", "inner"]


async def test_a_background_task_that_fails_is_reported() -> None:
    errors = list[BaseException]()
    tasks = BackgroundTasks(errors.append)

    async def fail() -> None:
        raise ValueError("broken")

    tasks.start(fail())
    await tasks.wait()
    await asyncio.sleep(0)
    assert [str(error) for error in errors] == ["broken"]


async def test_closing_cancels_background_tasks_and_refuses_further_ones() -> None:
    tasks, started = BackgroundTasks(), asyncio.Event()

    async def work() -> None:
        started.set()
        await asyncio.Event().wait()

    first = tasks.start(work())
    await started.wait()
    await tasks.close()
    started.clear()
    second = tasks.start(work())
    await tasks.wait()
    assert first.cancelled()
    assert second.cancelled()
    assert not started.is_set()


class CleanUp:
    """Clean-up that takes until it is let go."""

    def __init__(self) -> None:
        self.started, self.may_end, self.ended = asyncio.Event(), asyncio.Event(), False

    async def run(self) -> str:
        self.started.set()
        await self.may_end.wait()
        self.ended = True
        return "clean"


async def test_shielded_work_returns_its_result() -> None:
    clean_up = CleanUp()
    clean_up.may_end.set()
    assert await shielded(clean_up.run()) == "clean"


async def test_shielded_work_ends_although_its_caller_is_cancelled_several_times() -> None:
    clean_up = CleanUp()
    caller = asyncio.create_task(shielded(clean_up.run()))
    await clean_up.started.wait()
    for _ in range(3):
        caller.cancel()
        await asyncio.sleep(0)
    assert not caller.done()
    clean_up.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert caller.cancelled()
    assert clean_up.ended


async def test_shielded_work_in_a_timeout_ends_before_the_timeout_is_raised() -> None:
    clean_up = CleanUp()
    asyncio.get_running_loop().call_later(0.05, clean_up.may_end.set)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await shielded(clean_up.run())
    assert clean_up.ended


async def test_shielded_work_ends_in_a_cancelled_scope_of_anyio_which_cancels_at_every_step() -> None:
    clean_up = CleanUp()
    asyncio.get_running_loop().call_later(0.05, clean_up.may_end.set)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await shielded(clean_up.run())
    assert scope.cancelled_caught
    assert clean_up.ended
    current = asyncio.current_task()
    assert current is not None
    assert current.cancelling() == 0


async def test_an_error_of_shielded_work_is_raised() -> None:
    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await shielded(fail())


async def test_cancelled_tasks_have_ended_whatever_they_raise() -> None:
    waiting = asyncio.Event()

    async def wait() -> None:
        await waiting.wait()

    async def fail_when_cancelled() -> None:
        try:
            await waiting.wait()
        finally:
            raise ValueError("while being cancelled")

    tasks = [asyncio.create_task(wait()), asyncio.create_task(fail_when_cancelled())]
    await asyncio.sleep(0)
    await cancel_all(tasks)
    assert [task.cancelled() for task in tasks] == [True, False]
    assert isinstance(tasks[1].exception(), ValueError)


async def test_what_takes_longer_than_its_limit_is_stopped() -> None:
    timeouts, stopped = TimeoutScheduler(), list[str]()

    async def wait() -> None:
        try:
            await asyncio.sleep(LATE)
        except asyncio.CancelledError:
            stopped.append("waiting")
            raise

    with pytest.raises(TimeoutError), timeouts.limit(0.001):
        await wait()
    assert stopped == ["waiting"]
    await asyncio.sleep(0)


async def test_what_ends_in_time_is_not_stopped_later() -> None:
    timeouts, later = TimeoutScheduler(), asyncio.Event()
    with timeouts.limit(0.001):
        pass
    timeouts.schedule("later", 0.01, later.set)
    with anyio.fail_after(PATIENCE):
        await later.wait()


async def test_an_error_inside_of_a_limit_passes() -> None:
    with pytest.raises(KeyError), TimeoutScheduler().limit(LATE):
        raise KeyError


async def test_a_task_that_somebody_else_cancels_is_cancelled_and_not_late() -> None:
    entered = asyncio.Event()

    async def limited(seconds: float) -> None:
        with TimeoutScheduler().limit(seconds):
            entered.set()
            await asyncio.sleep(LATE)

    task = asyncio.create_task(limited(LATE))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_outer_of_two_limits_is_the_one_that_is_over() -> None:
    timeouts = TimeoutScheduler()
    with pytest.raises(TimeoutError) as outer, timeouts.limit(0.001), timeouts.limit(LATE):
        await asyncio.sleep(LATE)
    assert isinstance(outer.value.__cause__, asyncio.CancelledError)


def test_a_limit_outside_of_a_task_is_refused() -> None:
    async def nothing() -> None:
        loop = asyncio.get_running_loop()
        refused: asyncio.Future[str] = loop.create_future()

        def enter() -> None:
            try:
                with TimeoutScheduler().limit(LATE):
                    refused.set_result("entered")
            except RuntimeError as error:
                refused.set_result(str(error))

        loop.call_soon(enter)
        assert await refused == "a time limit needs a task"

    asyncio.run(nothing())


async def test_what_is_written_in_a_turn_is_sent_together_at_its_end() -> None:
    sent = list[list[bytes]]()
    buffer = TurnBuffer(sent.append, limit=10)
    for data in (b"one", b"two"):
        buffer.add(data)
    assert (sent, buffer.size) == ([], 6)

    await asyncio.sleep(0)
    assert (sent, buffer.size) == ([[b"one", b"two"]], 0)


async def test_what_is_over_the_limit_of_a_turn_does_not_wait() -> None:
    sent = list[list[bytes]]()
    buffer = TurnBuffer(sent.append, limit=10)
    for data in (b"eight...", b"three", b"new"):
        buffer.add(data)
    assert sent == [[b"eight...", b"three"]]

    await asyncio.sleep(0)
    assert sent == [[b"eight...", b"three"], [b"new"]]


async def test_what_was_flushed_or_taken_is_not_sent_again() -> None:
    sent = list[list[bytes]]()
    buffer = TurnBuffer(sent.append)
    buffer.add(b"flushed")
    buffer.flush()
    buffer.add(b"taken")
    assert buffer.take() == [b"taken"]
    buffer.flush()
    await asyncio.sleep(0)
    assert sent == [[b"flushed"]]
