"""Pending requests: answers in any order, late answers, timeouts and a connection that is lost."""

from __future__ import annotations

import pytest

from trysquare.net.rpc import ConnectionLost, PendingRequests


async def test_answers_may_come_in_any_order_and_twice() -> None:
    pending = PendingRequests[str]()
    (first, first_answer), (second, second_answer) = pending.begin(), pending.begin()
    for request_id, text in ((second, "b"), (first, "a")):
        future = pending.take(request_id)
        assert future is not None
        future.set_result(text)
    assert pending.take(first) is None
    assert await pending.wait(first, first_answer, timeout=10) == "a"
    assert await pending.wait(second, second_answer, timeout=10) == "b"


async def test_an_answer_after_the_timeout_is_not_awaited() -> None:
    pending = PendingRequests[str]()
    request_id, answer = pending.begin()
    with pytest.raises(TimeoutError):
        await pending.wait(request_id, answer, timeout=0)
    assert pending.take(request_id) is None


async def test_a_lost_connection_rejects_what_is_pending_and_what_comes_after() -> None:
    pending = PendingRequests[str]()
    request_id, answer = pending.begin()
    assert pending.disconnect("gone")
    assert not pending.disconnect("gone again")
    with pytest.raises(ConnectionLost, match=r"^gone$"):
        await pending.wait(request_id, answer, timeout=10)
    with pytest.raises(ConnectionLost, match=r"^gone$"):
        pending.begin()
