"""What a POST holds is checked before the SDK sees it."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from starlette.types import Message, Receive, Scope, Send

from trysquare.server.http.messages import MessageValidationMiddleware

LIMIT = 1000


class Endpoint:
    """An application that keeps what it is given, and waits where it is told to."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.entered = anyio.Event()
        self.may_end = anyio.Event()
        self.may_end.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        while (event := await receive())["type"] == "http.request":
            body += event["body"]
            if not event["more_body"]:
                break
        self.bodies.append(body)
        self.entered.set()
        await self.may_end.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


async def _posted(
    app: MessageValidationMiddleware, *chunks: bytes, session: str | None = None, method: str = "POST"
) -> list[Any]:
    events: list[Message] = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    events[-1]["more_body"] = False
    waiting = iter(events)
    sent: list[Message] = []

    async def receive() -> Message:
        return next(waiting, {"type": "http.disconnect"})

    async def send(event: Message) -> None:
        sent.append(event)

    headers = [] if session is None else [(b"mcp-session-id", session.encode())]
    await app({"type": "http", "method": method, "headers": headers}, receive, send)
    return sent


def _request(request_id: int | str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": "tools/list"}).encode()


async def test_a_message_reaches_the_endpoint_as_it_was_sent() -> None:
    endpoint = Endpoint()
    sent = await _posted(MessageValidationMiddleware(endpoint, LIMIT), _request(1)[:10], _request(1)[10:])
    assert sent[0]["status"] == 200
    assert endpoint.bodies == [_request(1)]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"[]", -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}', -32600),
        (b'{"jsonrpc":"2.0","method":"tools/list"}', -32600),
    ],
)
async def test_what_is_no_message_is_refused_with_a_reason(body: bytes, code: int) -> None:
    endpoint = Endpoint()
    [start, end] = await _posted(MessageValidationMiddleware(endpoint, LIMIT), body)
    assert start["status"] == 400
    assert json.loads(end["body"])["error"]["code"] == code
    assert endpoint.bodies == []


async def test_a_body_that_is_too_large_is_left_to_the_endpoint_unread() -> None:
    endpoint = Endpoint()
    await _posted(MessageValidationMiddleware(endpoint, LIMIT), b"x" * 600, b"x" * 600, b"x" * 600)
    assert endpoint.bodies == [b"x" * 1800]


async def test_other_methods_pass_unread() -> None:
    endpoint = Endpoint()
    await _posted(MessageValidationMiddleware(endpoint, LIMIT), b"{", method="DELETE")
    assert endpoint.bodies == [b"{"]


@pytest.mark.parametrize("same", [7, "7"])
async def test_of_two_open_requests_of_a_session_with_one_id_the_second_is_refused(same: int | str) -> None:
    endpoint = Endpoint()
    endpoint.may_end = anyio.Event()
    app = MessageValidationMiddleware(endpoint, LIMIT)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: _posted(app, _request(7), session="one"))
            await endpoint.entered.wait()
            [start, end] = await _posted(app, _request(same), session="one")
            assert start["status"] == 400
            assert "still open" in json.loads(end["body"])["error"]["message"]
            endpoint.may_end.set()
    assert (await _posted(app, _request(7), session="one"))[0]["status"] == 200


async def test_the_same_id_may_be_open_in_two_sessions_and_where_there_is_none() -> None:
    endpoint = Endpoint()
    endpoint.may_end = anyio.Event()
    app = MessageValidationMiddleware(endpoint, LIMIT)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: _posted(app, _request(7), session="one"))
            group.start_soon(lambda: _posted(app, _request(7), session="two"))
            group.start_soon(lambda: _posted(app, _request(7)))
            group.start_soon(lambda: _posted(app, _request(7)))
            endpoint.may_end.set()
    assert endpoint.bodies == [_request(7)] * 4
