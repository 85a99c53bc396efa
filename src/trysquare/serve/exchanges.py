"""Exchanges: one call over HTTP and the way back to its client, as the SDK's sessions see it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import anyio
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import REQUEST_TIMEOUT, JSONRPCNotification, JSONRPCRequest, RequestId
from starlette.requests import Request
from starlette.types import Receive, Send

from trysquare.core.alarms import Alarms
from trysquare.core.types import JsonObject
from trysquare.serve.frames import encode_frame
from trysquare.serve.http_sessions import HttpSession

_QUICK: Final = 0.1
"""Seconds after which a call is looked after: most are answered before."""
_PING_INTERVAL: Final = 15.0
"""Seconds of silence after which a proxy might close the connection."""
_PING: Final = b": ping\r\n\r\n"
_STREAM: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


class Exchange:
    """One call over HTTP: answered with plain JSON, or with a stream of events once there is more to tell than that.

    It is the SDK's `DispatchContext`: progress, log lines and questions go through it.
    """

    def __init__(
        self,
        request: Request,
        receive: Receive,
        send: Send,
        request_id: RequestId,
        session: HttpSession | None,
        alarms: Alarms,
    ) -> None:
        self.request_id = request_id
        self.progress_token: str | int | None = None
        self.is_over = False
        """Whether nobody waits for the answer any more."""
        self._request = request
        self._receive = receive
        self._send = send
        self._session = session
        self._alarms = alarms
        self._sending: asyncio.Lock | None = None
        self._streams = False
        self._answered = False
        self._task = asyncio.current_task()
        self._attending: asyncio.Task[None] | None = None
        alarms.set(self, _QUICK, self._attend)

    @property
    def can_send_request(self) -> bool:
        return self._session is not None

    @property
    def transport(self) -> TransportContext:
        can_send = self.can_send_request
        return TransportContext(kind="streamable-http", can_send_request=can_send, headers=self._request.headers)

    @property
    def message_metadata(self) -> ServerMessageMetadata:
        return ServerMessageMetadata(request_context=self._request)

    @property
    def cancel_requested(self) -> anyio.Event:
        event = anyio.Event()
        if self.is_over:
            event.set()
        return event

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        if self._session is None:
            raise NoBackChannelError(method)
        with self._session.asking() as (request_id, answer):
            request = JSONRPCRequest(jsonrpc="2.0", id=request_id, method=method, params=dict(params or {}))
            await self._tell(encode_frame(request))
            try:
                async with asyncio.timeout((opts or {}).get("timeout")):
                    return await answer
            except TimeoutError:
                raise MCPError(code=REQUEST_TIMEOUT, message=f"The client did not answer {method} in time.") from None

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        told = JSONRPCNotification(jsonrpc="2.0", method=method, params=None if params is None else dict(params))
        await self._tell(encode_frame(told))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self.progress_token is None:
            return
        params: JsonObject = {"progressToken": self.progress_token, "progress": progress}
        optional = {"total": total, "message": message}
        params |= {name: value for name, value in optional.items() if value is not None}
        await self.notify("notifications/progress", params)

    async def answer(self, frame: bytes, status: int = 200) -> None:
        """Send the answer and end."""
        self._answered = True
        if self._streams:
            await self._tell(frame, is_last=True)
            return
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(frame)),
            *self._own_headers(),
        ]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": frame})

    async def end(self) -> None:
        """End without an answer, after `give_up` has done its work."""
        if self._task is not None:
            self._task.uncancel()
        if not self._answered:
            await self._write(b"", is_last=True)

    def give_up(self) -> None:
        """Stop the call: nobody waits for it any more."""
        self.is_over = True
        if self._task is not None:
            self._task.cancel()

    def close(self) -> None:
        """Stop looking after the call."""
        self._alarms.clear(self)
        if self._attending is not None:
            self._attending.cancel()

    async def _tell(self, frame: bytes, *, is_last: bool = False) -> None:
        await self._write(b"event: message\r\ndata: %b\r\n\r\n" % frame.rstrip(b"\n"), is_last=is_last)

    async def _write(self, event: bytes, *, is_last: bool = False) -> None:
        if self._sending is None:
            self._sending = asyncio.Lock()
        async with self._sending:
            if not self._streams:
                self._streams = True
                headers = [*_STREAM, *self._own_headers()]
                await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            await self._send({"type": "http.response.body", "body": event, "more_body": not is_last})

    def _own_headers(self) -> list[tuple[bytes, bytes]]:
        return [] if self._session is None else [(b"mcp-session-id", self._session.id.encode())]

    def _attend(self) -> None:
        self._attending = asyncio.get_running_loop().create_task(self._look_after())

    async def _look_after(self) -> None:
        """Keep the connection of a long call open, and see its client go away."""
        while True:
            try:
                async with asyncio.timeout(_PING_INTERVAL):
                    event = await self._receive()
            except TimeoutError:
                await self._write(_PING)
                continue
            if event["type"] == "http.disconnect":
                break
        # In a session, a lost connection does not take the call back; only the client's word does.
        if self._session is None:
            self.give_up()
