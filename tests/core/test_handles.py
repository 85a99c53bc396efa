"""Handles: random, owned by one principal, and with an end."""

from __future__ import annotations

import threading

import pytest

from tests.support import raises_code
from trysquare import ErrorCode
from trysquare.core.cache import KeepLimits, MemoryHandles, SweepTimer, TooLargeToKeep


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_handle_gives_its_value_to_its_owner_alone() -> None:
    handles = MemoryHandles()
    handle = handles.put({"rows": 3}, principal="ada")
    assert handles.get(handle, principal="ada") == {"rows": 3}
    with raises_code(ErrorCode.HANDLE_NOT_FOUND) as raised:
        handles.get(handle, principal="bob")
    assert raised.value.code is ErrorCode.HANDLE_NOT_FOUND
    assert raised.value.instruction


def test_handles_are_random() -> None:
    handles = MemoryHandles()
    assert len({handles.put(None, principal="ada") for _ in range(100)}) == 100


def test_a_handle_expires() -> None:
    clock = Clock()
    handles = MemoryHandles(clock=clock)
    handle = handles.put("x", principal="ada", ttl=60)
    clock.now += 59.9
    assert handles.get(handle, principal="ada") == "x"
    clock.now += 0.1
    with raises_code(ErrorCode.HANDLE_NOT_FOUND):
        handles.get(handle, principal="ada")
    clock.now -= 1
    with raises_code(ErrorCode.HANDLE_NOT_FOUND):
        handles.get(handle, principal="ada")


def test_the_oldest_goes_when_there_are_too_many() -> None:
    handles = MemoryHandles(capacity=2)
    first, second, third = (handles.put(number, principal="ada") for number in range(3))
    assert handles.get(second, principal="ada") == 1
    assert handles.get(third, principal="ada") == 2
    with raises_code(ErrorCode.HANDLE_NOT_FOUND):
        handles.get(first, principal="ada")


def test_a_dropped_handle_is_gone_and_may_be_dropped_again() -> None:
    handles = MemoryHandles()
    handle = handles.put("x", principal="ada")
    handles.drop(handle)
    handles.drop(handle)
    with raises_code(ErrorCode.HANDLE_NOT_FOUND):
        handles.get(handle, principal="ada")


def test_a_long_handle_is_not_repeated_at_length() -> None:
    with raises_code(ErrorCode.HANDLE_NOT_FOUND) as raised:
        MemoryHandles().get("x" * 10_000, principal="ada")
    assert len(raised.value.message) < 120


def test_the_bytes_of_one_caller_are_bounded_and_the_oldest_go_first() -> None:
    handles = MemoryHandles(limits=KeepLimits(total=10_000, per_caller=2_500))
    other = handles.put("x" * 1_000, principal="bob")
    own = [handles.put("x" * 1_000, principal="ada") for _ in range(4)]
    assert handles.size <= 3_600
    assert handles.get(own[-1], principal="ada") == "x" * 1_000
    assert handles.get(other, principal="bob") == "x" * 1_000, "another caller's flood drops nothing of mine"
    for dropped in own[:2]:
        with raises_code(ErrorCode.HANDLE_NOT_FOUND):
            handles.get(dropped, principal="ada")


def test_the_bytes_of_all_callers_are_bounded() -> None:
    handles = MemoryHandles(limits=KeepLimits(total=5_000, per_caller=2_500))
    for number in range(50):
        handles.put(["x" * 1_000], principal=f"caller {number}")
    assert handles.size <= 5_000


def test_what_is_over_the_bound_by_itself_is_refused_and_nothing_is_dropped_for_it() -> None:
    handles = MemoryHandles(limits=KeepLimits(total=5_000, per_caller=2_500))
    kept = handles.put("x", principal="ada")
    with pytest.raises(TooLargeToKeep):
        handles.put("x" * 3_000, principal="ada")
    assert handles.get(kept, principal="ada") == "x"


def test_expired_ones_are_dropped_without_another_being_put() -> None:
    clock = Clock()
    handles = MemoryHandles(clock=clock)
    handles.put("x" * 1_000, principal="ada", ttl=60)
    kept = handles.put("y", principal="ada", ttl=600)
    clock.now += 61
    assert handles.get(kept, principal="ada") == "y"
    assert handles.size < 100
    clock.now += 600
    assert handles.sweep() is None
    assert handles.size == 0


def test_a_timer_drops_what_expires_while_nobody_asks() -> None:
    class Swept:
        def __init__(self) -> None:
            self.count = 0
            self.done = threading.Event()

        def sweep(self) -> float | None:
            self.count += 1
            if self.count == 2:
                self.done.set()
                return None
            return 0.0

    swept = Swept()
    timer = SweepTimer(swept.sweep)
    timer.start(0)
    timer.start(0)
    assert swept.done.wait(30)
