"""Whatever bytes a server sends, every request gets its own answer or none."""

from __future__ import annotations

import json
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.gateway.upstream.channel import Loss, Outgoing, RequestId, Unreachable
from trysquare.gateway.upstream.connection import Connection, Lost, Refused, ServerRequest


class Recorder:
    """A channel that keeps what is sent, and an observer that keeps what it is told."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.notices: list[str] = []
        self.questions: list[str] = []
        self.losses: list[Loss] = []
        self.is_closed = False

    async def open(self, listener: object) -> None:
        return None

    def send(self, outgoing: Outgoing) -> None:
        if self.is_closed:
            raise Unreachable(Loss(reason="closed", was_sent=False))
        self.sent.append(json.loads(outgoing.body))

    def settle(self, version: str) -> None:
        return None

    def abandon(self, request_id: RequestId) -> None:
        self.sent.append(f"abandoned {request_id}")

    def last_words(self) -> str:
        return ""

    async def close(self) -> None:
        return None

    def notice(self, method: str, params: msgspec.Raw, about: RequestId | None = None) -> None:
        self.notices.append(method)

    def asked(self, request: ServerRequest, about: RequestId | None) -> None:
        self.questions.append(request.method)

    def lost(self, loss: Loss) -> None:
        self.losses.append(loss)


def opened() -> tuple[Recorder, Connection]:
    recorder = Recorder()
    return recorder, Connection(recorder, recorder)


async def test_answers_find_their_requests_in_any_order_and_only_once() -> None:
    _, connection = opened()
    first, second = connection.begin("a", b"{}"), connection.begin("b", b"{}")
    connection.hear(b'{"jsonrpc":"2.0","id":2,"result":{"n":2}}')
    connection.hear(b'{"jsonrpc":"2.0","id":"1","result":{"n":1}}')
    connection.hear(b'{"jsonrpc":"2.0","id":1,"result":{"n":9}}')
    connection.hear(b'{"jsonrpc":"2.0","id":7,"result":{"n":9}}')
    assert bytes(await first.answered()) == b'{"n":1}'
    assert bytes(await second.answered()) == b'{"n":2}'
    assert connection.ignored == 2


async def test_several_messages_in_one_are_all_heard() -> None:
    recorder, connection = opened()
    exchange = connection.begin("a", b"{}")
    connection.hear(b'[{"method":"notifications/x"},{"id":1,"result":{}}]')
    assert bytes(await exchange.answered()) == b"{}"
    assert recorder.notices == ["notifications/x"]


async def test_an_error_is_raised_and_one_that_cannot_be_read_as_well() -> None:
    _, connection = opened()
    for answer in (b'{"id":1,"error":{"code":-32000,"message":"no"}}', b'{"id":2,"error":5}', b'{"id":3}'):
        exchange = connection.begin("a", b"{}")
        connection.hear(answer)
        with pytest.raises(Refused):
            await exchange.answered()


async def test_a_ping_is_answered_and_other_requests_are_passed_on() -> None:
    recorder, connection = opened()
    connection.hear(b'{"id":"p","method":"ping"}')
    connection.hear(b'{"id":"q","method":"roots/list"}')
    assert recorder.sent == [{"jsonrpc": "2.0", "id": "p", "result": {}}]
    assert recorder.questions == ["roots/list"]


async def test_a_request_that_is_given_up_is_cancelled_once_and_an_answered_one_is_not() -> None:
    recorder, connection = opened()
    given_up, answered = connection.begin("a", b"{}"), connection.begin("b", b"{}")
    connection.hear(b'{"id":2,"result":{}}')
    recorder.sent.clear()
    for exchange in (given_up, answered, given_up):
        connection.end(exchange)
    assert [sent if isinstance(sent, str) else sent["method"] for sent in recorder.sent] == [
        "notifications/cancelled",
        "abandoned 1",
    ]


async def test_a_lost_channel_is_told_to_every_request_and_takes_no_more() -> None:
    recorder, connection = opened()
    exchanges = [connection.begin("a", b"{}") for _ in range(3)]
    connection.lose(Loss(reason="unread", was_sent=False), 2)
    connection.lose(Loss(reason="gone"))
    connection.lose(Loss(reason="gone again"))
    told: list[tuple[str, bool]] = []
    for exchange in exchanges:
        with pytest.raises(Lost) as caught:
            await exchange.answered()
        told.append((caught.value.loss.reason, caught.value.loss.was_sent))
    assert told == [("gone", True), ("unread", False), ("gone", True)]
    assert [loss.reason for loss in recorder.losses] == ["gone"]
    with pytest.raises(Unreachable):
        connection.begin("a", b"{}")


async def test_a_request_that_cannot_be_sent_is_not_under_way() -> None:
    recorder, connection = opened()
    recorder.is_closed = True
    with pytest.raises(Unreachable):
        connection.begin("a", b"{}")
    assert connection.under_way == 0


async def test_a_request_with_a_limit_gives_up() -> None:
    _, connection = opened()
    with anyio.fail_after(20), pytest.raises(TimeoutError):
        await connection.request("a", {}, seconds=0.01)
    assert connection.under_way == 0


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=3),
    max_leaves=8,
)
_frames = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": _json,
        "id": _json,
        "method": st.sampled_from(["ping", "notifications/progress", "notifications/resources/updated"]) | _json,
        "params": st.fixed_dictionaries({}, optional={"progressToken": _json, "uri": _json}) | _json,
        "result": _json,
        "error": _json,
    },
)


@given(st.lists(st.binary(max_size=60) | _frames.map(lambda frame: json.dumps(frame).encode()), max_size=8))
def test_nothing_that_a_server_sends_breaks_the_connection(messages: list[bytes]) -> None:
    _, connection = opened()
    for message in messages:
        connection.hear(message)
    assert connection.heard == len(messages)
    assert connection.loss is None
