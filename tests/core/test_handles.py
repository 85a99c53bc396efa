"""Handles: random, owned by one principal, and with an end."""

from __future__ import annotations

import pytest

from trysquare.core.errors import ErrorCode, NotFound
from trysquare.core.handles import MemoryHandles


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_handle_gives_its_value_to_its_owner_alone() -> None:
    handles = MemoryHandles()
    handle = handles.put({"rows": 3}, principal="ada")
    assert handles.get(handle, principal="ada") == {"rows": 3}
    with pytest.raises(NotFound) as refused:
        handles.get(handle, principal="bob")
    assert refused.value.code is ErrorCode.HANDLE_NOT_FOUND
    assert refused.value.instruction == "Repeat the call that produced the handle."


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
    with pytest.raises(NotFound, match="has expired or never existed"):
        handles.get(handle, principal="ada")
    clock.now -= 1
    with pytest.raises(NotFound):
        handles.get(handle, principal="ada")


def test_the_oldest_goes_when_there_are_too_many() -> None:
    handles = MemoryHandles(capacity=2)
    first, second, third = (handles.put(number, principal="ada") for number in range(3))
    assert handles.get(second, principal="ada") == 1
    assert handles.get(third, principal="ada") == 2
    with pytest.raises(NotFound):
        handles.get(first, principal="ada")


def test_a_dropped_handle_is_gone_and_may_be_dropped_again() -> None:
    handles = MemoryHandles()
    handle = handles.put("x", principal="ada")
    handles.drop(handle)
    handles.drop(handle)
    with pytest.raises(NotFound):
        handles.get(handle, principal="ada")


def test_a_long_handle_is_not_repeated_at_length() -> None:
    with pytest.raises(NotFound) as refused:
        MemoryHandles().get("x" * 10_000, principal="ada")
    assert len(refused.value.message) < 120
