"""Whatever bytes a server sends, every request gets its own answer or none."""

from __future__ import annotations

import json
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.gateway.upstream.connection import Connection, Disconnected, ServerRequest
from trysquare.gateway.upstream.transport import DisconnectReason, OutgoingMessage, RequestId, Transport, TransportError
from trysquare.protocol import RpcError


class Recorder(Transport):
    """A channel that keeps what is sent, and an observer that keeps what it is told."""

    owns_process = True

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.notices: list[str] = []
        self.questions: list[str] = []
        self.losses: list[DisconnectReason] = []
        self.is_closed = False

    async def open(self, listener: object) -> None:
        return None

    def send(self, outgoing: OutgoingMessage) -> None:
        if self.is_closed:
            raise TransportError(DisconnectReason(reason="closed", was_sent=False))
        self.sent.append(json.loads(outgoing.body))

    def set_version(self, version: str) -> None:
        return None

    def cancel(self, request_id: RequestId) -> None:
        self.sent.append(f"abandoned {request_id}")

    def stderr_tail(self) -> str:
        return ""

    async def close(self) -> None:
        return None

    def on_notification(self, method: str, params: msgspec.Raw, about: RequestId | None = None) -> None:
        self.notices.append(method)

    def on_request(self, request: ServerRequest, about: RequestId | None) -> None:
        self.questions.append(request.method)

    def on_disconnect(self, disconnect: DisconnectReason) -> None:
        self.losses.append(disconnect)


def opened() -> tuple[Recorder, Connection]:
    recorder = Recorder()
    return recorder, Connection(recorder, recorder)


async def test_answers_find_their_requests_in_any_order_and_only_once() -> None:
    _, connection = opened()
    first, second = connection.begin("a", b"{}"), connection.begin("b", b"{}")
    connection.receive(b'{"jsonrpc":"2.0","id":2,"result":{"n":2}}')
    connection.receive(b'{"jsonrpc":"2.0","id":"1","result":{"n":1}}')
    connection.receive(b'{"jsonrpc":"2.0","id":1,"result":{"n":9}}')
    connection.receive(b'{"jsonrpc":"2.0","id":7,"result":{"n":9}}')
    assert bytes(await first.wait_result()) == b'{"n":1}'
    assert bytes(await second.wait_result()) == b'{"n":2}'
    assert connection.ignored == 2


async def test_every_message_of_a_batch_is_handled() -> None:
    recorder, connection = opened()
    exchange = connection.begin("a", b"{}")
    connection.receive(b'[{"method":"notifications/x"},{"id":1,"result":{}}]')
    assert bytes(await exchange.wait_result()) == b"{}"
    assert recorder.notices == ["notifications/x"]


async def test_an_error_is_raised_and_one_that_cannot_be_read_as_well() -> None:
    _, connection = opened()
    for answer in (b'{"id":1,"error":{"code":-32000,"message":"no"}}', b'{"id":2,"error":5}', b'{"id":3}'):
        exchange = connection.begin("a", b"{}")
        connection.receive(answer)
        with pytest.raises(RpcError):
            await exchange.wait_result()


async def test_a_ping_is_answered_and_other_requests_are_passed_on() -> None:
    recorder, connection = opened()
    connection.receive(b'{"id":"p","method":"ping"}')
    connection.receive(b'{"id":"q","method":"roots/list"}')
    assert recorder.sent == [{"jsonrpc": "2.0", "id": "p", "result": {}}]
    assert recorder.questions == ["roots/list"]


async def test_a_request_that_is_given_up_is_cancelled_once_and_an_answered_one_is_not() -> None:
    recorder, connection = opened()
    given_up, answered = connection.begin("a", b"{}"), connection.begin("b", b"{}")
    connection.receive(b'{"id":2,"result":{}}')
    recorder.sent.clear()
    for exchange in (given_up, answered, given_up):
        connection.end(exchange)
    assert [sent if isinstance(sent, str) else sent["method"] for sent in recorder.sent] == [
        "notifications/cancelled",
        "abandoned 1",
    ]


async def test_a_lost_channel_fails_every_request_and_takes_no_more() -> None:
    recorder, connection = opened()
    exchanges = [connection.begin("a", b"{}") for _ in range(3)]
    connection.on_disconnect(DisconnectReason(reason="unread", was_sent=False), 2)
    connection.on_disconnect(DisconnectReason(reason="gone"))
    connection.on_disconnect(DisconnectReason(reason="gone again"))
    told: list[tuple[str, bool]] = []
    for exchange in exchanges:
        with pytest.raises(Disconnected) as caught:
            await exchange.wait_result()
        told.append((caught.value.disconnect.reason, caught.value.disconnect.was_sent))
    assert told == [("gone", True), ("unread", False), ("gone", True)]
    assert [disconnect.reason for disconnect in recorder.losses] == ["gone"]
    with pytest.raises(TransportError):
        connection.begin("a", b"{}")


async def test_a_request_that_cannot_be_sent_is_not_under_way() -> None:
    recorder, connection = opened()
    recorder.is_closed = True
    with pytest.raises(TransportError):
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
        connection.receive(message)
    assert connection.received == len(messages)
    assert connection.disconnect is None
