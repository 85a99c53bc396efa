"""Places: no more are taken than there are, nobody is overtaken, and none is lost with a caller that goes away."""

from __future__ import annotations

import asyncio

import pytest

from trysquare.gateway.pool.limits import ConcurrencyLimiter


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_who_comes_while_all_are_taken_waits_in_line() -> None:
    places, order = ConcurrencyLimiter(1), list[int]()
    await places.acquire()
    assert not places.try_acquire()

    async def call(number: int) -> None:
        await places.acquire()
        order.append(number)

    waiting = [asyncio.ensure_future(call(number)) for number in range(3)]
    await _settle()
    assert order == []
    for _ in waiting:
        places.release()
        await _settle()
    assert order == [0, 1, 2]


async def test_a_place_that_is_given_back_goes_to_who_waits_and_not_to_who_comes() -> None:
    places = ConcurrencyLimiter(1)
    await places.acquire()
    waiting = asyncio.ensure_future(places.acquire())
    await _settle()
    places.release()
    assert not places.try_acquire()
    await waiting


@pytest.mark.parametrize("is_given_first", [False, True])
async def test_a_caller_that_goes_away_takes_no_place_with_it(is_given_first: bool) -> None:
    places = ConcurrencyLimiter(1)
    await places.acquire()
    leaving, staying = asyncio.ensure_future(places.acquire()), asyncio.ensure_future(places.acquire())
    await _settle()
    if is_given_first:
        places.release()
    leaving.cancel()
    await _settle()
    if not is_given_first:
        places.release()
    async with asyncio.timeout(10):
        await staying
    assert not places.try_acquire()
    places.release()
    assert places.try_acquire()
