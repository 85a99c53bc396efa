"""Validation of HTTP bodies before the SDK gets them: an invalid message gets an error response."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from mcp_types import INVALID_REQUEST, JSONRPCMessage, JSONRPCRequest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trysquare.server.codec import FrameError, decode_frame, encode_frame
from trysquare.server.http.fast_path import FastPath
from trysquare.server.notifications import session_id


class MessageValidationMiddleware:
    """The application behind a check that a POST holds one message of the protocol, and in a session a fresh id.

    The SDK keeps the open requests of a session by id: of two with the same one, only one would be answered.
    """

    def __init__(self, app: ASGIApp, max_body: int, calls: FastPath | None = None) -> None:
        self._app = app
        self._calls = calls
        self._max_body = max_body
        self._open: set[tuple[str, str] | None] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body, receive = await _received(receive, self._max_body)
        if body is None:
            await self._app(scope, receive, send)
            return
        try:
            message = decode_frame(body)
            key = self._open_key(scope, message)
        except FrameError as error:
            await _refuse(send, encode_frame(error.answer))
            return
        try:
            await self._pass_on(scope, message, receive, send)
        finally:
            self._open.discard(key)

    def _pass_on(self, scope: Scope, message: JSONRPCMessage, receive: Receive, send: Send) -> Awaitable[None]:
        if self._calls is not None:
            session = self._calls.session_of(scope)
            if session is not None and not isinstance(message, JSONRPCRequest) and session.receive(message):
                return _accept(send)
            if (call := self._calls.match(scope, message, session)) is not None:
                return self._calls.answer(call, scope, receive, send)
        return self._app(scope, receive, send)

    def _open_key(self, scope: Scope, message: JSONRPCMessage) -> tuple[str, str] | None:
        """What a request is known by while it is open; None for what needs no answer, or has no session."""
        session = session_id(scope)
        if session is None or not isinstance(message, JSONRPCRequest):
            return None
        key = (session, str(message.id))
        if key in self._open:
            raise FrameError(INVALID_REQUEST, "A request with this `id` is still open.", message.id)
        self._open.add(key)
        return key


async def _received(receive: Receive, limit: int) -> tuple[bytes | None, Receive]:
    """The body, or None where it is not all there: cut off by the client, or too large; and how to receive it again.

    The SDK answers for bodies that are too large, so nothing more of them is read here.
    """
    events: list[Message] = []
    again = _replayed(events, receive)
    size = 0
    while size <= limit:
        event = await receive()
        events.append(event)
        size += len(event.get("body", b""))
        if event["type"] != "http.request":
            return None, again
        if not event.get("more_body", False):
            return (_body(events) if size <= limit else None), again
    return None, again


def _body(events: list[Message]) -> bytes:
    return events[0].get("body", b"") if len(events) == 1 else b"".join(event.get("body", b"") for event in events)


def _replayed(events: list[Message], receive: Receive) -> Receive:
    waiting = iter(events)

    async def replay() -> Message:
        event: Any = next(waiting, None)
        return await receive() if event is None else event

    return replay


async def _accept(send: Send) -> None:
    await send({"type": "http.response.start", "status": 202, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


async def _refuse(send: Send, answer: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": answer})
