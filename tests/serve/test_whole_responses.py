"""What goes over the wire for a response: one write where the length is known, and a stream's head at once."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.server import ServerState

from trysquare.serve.whole_responses import WholeResponses, cycle_of

PATIENCE = 10


class Wire(asyncio.Transport):
    """Keeps what is written, each write by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = asyncio.Event()

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closed.is_set()

    def close(self) -> None:
        self.closed.set()


async def _requested(app: ASGIApp, method: str = "GET", more: str = "") -> Wire:
    """The wire after a request was answered."""
    config = Config(app, log_config=None, access_log=False, lifespan="off", ws="none", http=WholeResponses)
    config.load()
    state, wire = ServerState(), Wire()
    protocol = WholeResponses(config=config, server_state=state, app_state={})
    protocol.connection_made(wire)
    protocol.data_received(f"{method} / HTTP/1.1\r\nHost: x\r\n{more}\r\n".encode())
    with anyio.fail_after(PATIENCE):
        await asyncio.gather(*state.tasks)
    protocol.connection_lost(None)
    return wire


def _answering(*bodies: bytes, length: int | None) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [] if length is None else [(b"content-length", b"%d" % length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for number, body in enumerate(bodies, 1):
            await send({"type": "http.response.body", "body": body, "more_body": number < len(bodies)})

    return app


async def test_an_answer_of_known_length_is_one_write() -> None:
    [whole] = (await _requested(_answering(b"hello", length=5))).writes
    assert whole.startswith(b"HTTP/1.1 200 OK\r\n")
    assert whole.endswith(b"\r\n\r\nhello")


async def test_the_head_of_a_stream_does_not_wait_for_its_first_event() -> None:
    reached = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        reached.set()
        await send({"type": "http.response.body", "body": b"event"})

    head, *rest = (await _requested(app)).writes
    assert reached.is_set()
    assert head.endswith(b"\r\n\r\n")
    assert b"event" in b"".join(rest)


async def test_a_large_body_is_not_copied_behind_its_head() -> None:
    body = b"x" * 100_000
    [head, sent] = (await _requested(_answering(body, length=len(body)))).writes
    assert head.endswith(b"\r\n\r\n")
    assert sent == body


async def test_a_body_in_pieces_arrives_whole_and_in_order() -> None:
    wire = await _requested(_answering(b"one ", b"two ", b"three", length=13))
    assert b"".join(wire.writes).endswith(b"\r\n\r\none two three")


async def test_a_body_that_looks_like_a_head_is_a_body() -> None:
    body = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"
    wire = await _requested(_answering(body, body, length=2 * len(body)))
    assert b"".join(wire.writes).endswith(b"\r\n\r\n" + body + body)


@pytest.mark.parametrize(("method", "more"), [("HEAD", ""), ("HEAD", "Connection: close\r\n")])
async def test_an_answer_without_a_body_is_sent(method: str, more: str) -> None:
    [head] = (await _requested(_answering(b"", length=5), method, more)).writes
    assert b"content-length: 5" in head


async def test_a_head_whose_body_never_comes_is_sent_before_the_connection_ends() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})

    wire = await _requested(app)
    assert wire.closed.is_set()
    assert b"".join(wire.writes).endswith(b"\r\n\r\n")


HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"2")]
HEAD = b"content-type: application/json\r\n"
BODY = b"{}"


def _at_once(taken: list[bool]) -> ASGIApp:
    """An application that gives its response as a whole where it can, and notes whether it could."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        cycle = cycle_of(send)
        taken.append(cycle is not None and cycle.send_whole(200, HEAD, BODY))
        if not taken[-1]:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await send({"type": "http.response.body", "body": BODY})

    return app


async def test_a_response_that_is_given_as_a_whole_looks_as_one_that_is_not() -> None:
    async def in_parts(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await send({"type": "http.response.body", "body": BODY})

    taken: list[bool] = []
    given, usual = await _requested(_at_once(taken)), await _requested(in_parts)
    assert taken == [True]
    assert given.writes == usual.writes
    assert len(given.writes) == 1


async def test_a_client_that_wants_the_connection_closed_gets_the_usual_way() -> None:
    taken: list[bool] = []
    wire = await _requested(_at_once(taken), more="Connection: close\r\n")
    assert taken == [False]
    assert wire.is_closing()
    assert b"connection: close" in wire.writes[0]


async def test_nothing_goes_past_what_stands_between() -> None:
    taken: list[bool] = []
    inner = _at_once(taken)

    async def outer(scope: Scope, receive: Receive, send: Send) -> None:
        async def marked(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (b"x-seen", b"1")]}
            await send(message)

        await inner(scope, receive, marked)

    wire = await _requested(outer)
    assert taken == [False]
    assert b"x-seen: 1" in b"".join(wire.writes)


async def test_two_responses_to_one_request_are_refused() -> None:
    taken: list[bool] = []
    app = _at_once(taken)

    async def twice(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, send)
        cycle = cycle_of(send)
        assert cycle is not None
        taken.append(cycle.send_whole(200, HEAD, BODY))

    assert len((await _requested(twice)).writes) == 1
    assert taken == [True, False]
