"""Alarms ring when they are due, in any order they were set, and not at all once they are cleared."""

from __future__ import annotations

import asyncio

import anyio
import uvloop

from trysquare.core.alarms import Alarms

PATIENCE = 10
LATE = 3600


async def test_an_alarm_rings_once_it_is_due() -> None:
    alarms, rung = Alarms(), asyncio.Event()
    alarms.set("a", 0.001, rung.set)
    with anyio.fail_after(PATIENCE):
        await rung.wait()


async def test_a_sooner_alarm_does_not_wait_for_one_that_was_set_before() -> None:
    alarms, late, soon = Alarms(), asyncio.Event(), asyncio.Event()
    alarms.set("late", LATE, late.set)
    alarms.set("soon", 0.001, soon.set)
    with anyio.fail_after(PATIENCE):
        await soon.wait()
    assert not late.is_set()


async def test_a_later_alarm_rings_although_those_before_it_were_cleared() -> None:
    alarms, first, second = Alarms(), asyncio.Event(), asyncio.Event()
    alarms.set("first", 0.001, first.set)
    alarms.set("second", 0.01, second.set)
    alarms.clear("first")
    with anyio.fail_after(PATIENCE):
        await second.wait()
    assert not first.is_set()


async def test_an_alarm_that_sets_another_has_it_ring_as_well() -> None:
    alarms, rung = Alarms(), asyncio.Event()
    alarms.set("a", 0.001, lambda: alarms.set("b", 0.001, rung.set))
    with anyio.fail_after(PATIENCE):
        await rung.wait()


async def test_setting_an_alarm_anew_moves_it() -> None:
    alarms, early, moved = Alarms(), asyncio.Event(), asyncio.Event()
    alarms.set("a", 0.001, early.set)
    alarms.set("a", 0.01, moved.set)
    with anyio.fail_after(PATIENCE):
        await moved.wait()
    assert not early.is_set()


async def test_clearing_what_was_never_set_does_nothing() -> None:
    Alarms().clear("a")


def test_one_that_is_due_at_once_does_not_keep_others_from_being_set_on_uvloop() -> None:
    async def ring_both() -> None:
        alarms, first, second = Alarms(), asyncio.Event(), asyncio.Event()
        # uvloop has no timer for what is due within half a millisecond.
        alarms.set("first", 0.0001, first.set)
        alarms.set("second", 0, second.set)
        with anyio.fail_after(PATIENCE):
            await first.wait()
            await second.wait()

    uvloop.run(ring_both())
