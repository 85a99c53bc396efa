"""JSON-RPC connection: concurrent requests over one transport, matched with their responses."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import msgspec

from trysquare.core.json import JsonObject
from trysquare.core.threads import run_in_thread
from trysquare.gateway.upstream import codec
from trysquare.gateway.upstream.codec import Frame, InvalidFrame, Salvaged, Trace, salvage
from trysquare.gateway.upstream.transport import DisconnectReason, OutgoingMessage, RequestId, Transport, TransportError
from trysquare.protocol import messages
from trysquare.protocol.messages import PARSE_ERROR, AnyId, RpcError
from trysquare.protocol.methods import ProgressParams, cancelled_params

logger = logging.getLogger("trysquare.gateway")

_LONG_BROKEN = 64 * 1024
"""Size of a broken message from which it is salvaged in a thread."""
_NOISE_CHARACTERS = 120
_MAX_LOGS = _MAX_PROGRESS = 100


class Malformed(InvalidFrame):
    """The response to a request cannot be parsed."""


class Disconnected(Exception):
    """No response will come."""

    def __init__(self, disconnect: DisconnectReason) -> None:
        super().__init__(disconnect.reason)
        self.disconnect = disconnect


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerRequest:
    """A request of the server to us."""

    id: AnyId
    method: str
    params: msgspec.Raw


class ConnectionObserver(Protocol):
    """Receiver of the server's notifications, requests and disconnect."""

    def on_notification(self, method: str, params: msgspec.Raw, about: RequestId | None = None) -> None:
        """Handle a notification other than progress."""

    def on_request(self, request: ServerRequest, about: RequestId | None) -> None:
        """Handle a request of the server, which must get a response."""

    def on_disconnect(self, disconnect: DisconnectReason) -> None:
        """Handle the end of the connection."""


class PendingRequest:
    """A request without a response yet, and what the server sends meanwhile: questions, progress, logs."""

    __slots__ = ("_outcome", "_waiter", "earlier", "flaw", "id", "logs", "progress", "questions")

    def __init__(self, request_id: RequestId) -> None:
        self.id = request_id
        self.questions: deque[ServerRequest] = deque()
        self.logs: deque[JsonObject] = deque(maxlen=_MAX_LOGS)
        """Log messages not relayed yet; of a flood the latest."""
        self.progress: ProgressParams | None = None
        """The latest that was not relayed yet."""
        self.earlier: list[ProgressParams] | None = None
        """Those before it, where all are kept."""
        self.flaw = ""
        """What is wrong with the response; its unreadable parts are replaced by a mark."""
        self._outcome: Frame | DisconnectReason | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def outcome(self) -> Frame | DisconnectReason | None:
        """The response, or why there is none; None while it is pending."""
        return self._outcome

    def resolve(self, outcome: Frame | DisconnectReason) -> None:
        """Set the outcome; only the first counts."""
        if self._outcome is None:
            self._outcome = outcome
            self.wake()

    def wake(self) -> None:
        """Wake the waiter."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def has_event(self) -> bool:
        """Whether there is an outcome, a question, progress or a log message."""
        return self._outcome is not None or self.progress is not None or bool(self.questions) or bool(self.logs)

    def take_progress(self) -> Sequence[ProgressParams]:
        """The reports that were not relayed yet."""
        if self.progress is None:
            return ()
        found, self.earlier, self.progress = (*(self.earlier or ()), self.progress), None, None
        return found

    def next_event(self) -> asyncio.Future[None]:
        self._waiter = waiter = asyncio.get_running_loop().create_future()
        return waiter

    async def wait(self) -> None:
        """Wait for the outcome, discarding progress and logs."""
        while self._outcome is None:
            self.progress = None
            self.logs.clear()
            await self.next_event()

    async def wait_result(self) -> msgspec.Raw:
        """Wait for the result. Raises `RpcError`, `Disconnected` or `Malformed`."""
        await self.wait()
        return self.result()

    def result(self) -> msgspec.Raw:
        """The result. Raises `RpcError`, `Disconnected` or `Malformed`."""
        outcome = self._outcome
        assert outcome is not None
        if isinstance(outcome, DisconnectReason):
            raise Disconnected(outcome)
        if len(outcome.result):
            return outcome.result
        if self.flaw and not len(outcome.error):
            raise Malformed(self.flaw)
        raise messages.read_error(messages.decode_any(outcome.error))


class Connection:
    """JSON-RPC over a transport. Responses without a pending request, late or repeated, are ignored and counted."""

    def __init__(
        self,
        transport: Transport,
        observer: ConnectionObserver,
        *,
        server: str = "a server",
        keeps_progress: bool = False,
    ) -> None:
        self.transport = transport
        self._keeps_progress = keeps_progress
        self._server = server
        self._observer = observer
        self._pending: dict[RequestId, PendingRequest] = {}
        self._parsing: dict[asyncio.Task[None], RequestId | None] = {}
        """Large messages that are being parsed in a thread, and the request on whose stream each came."""
        self._late_disconnects: dict[RequestId, DisconnectReason] = {}
        self._last_id = 0
        self.disconnect: DisconnectReason | None = None
        self.received = 0
        """Messages received; grows as long as the server is alive."""
        self.ignored = 0
        """Messages without a receiver."""
        self.noise = 0
        """Lines that were not messages, as some programs print them."""

    @property
    def under_way(self) -> int:
        return len(self._pending)

    @property
    def next_id(self) -> RequestId:
        return self._last_id + 1

    async def open(self) -> None:
        """Open the transport. Raises `TransportError`."""
        await self.transport.open(self)

    def begin(self, method: str, params: bytes, *, name: str | None = None) -> PendingRequest:
        """Send a request. Raises `TransportError` where nothing was sent."""
        if self.disconnect is not None:
            reason, instruction = self.disconnect.reason, self.disconnect.instruction
            raise TransportError(DisconnectReason(reason=reason, was_sent=False, instruction=instruction))
        self._last_id = request_id = self._last_id + 1
        pending = PendingRequest(request_id)
        self._pending[request_id] = pending
        try:
            body = messages.encode_request(request_id, method, params)
            self.transport.send(OutgoingMessage(body=body, request_id=request_id, method=method, name=name))
        except TransportError:
            self._pending.pop(request_id, None)
            raise
        return pending

    async def request(self, method: str, params: JsonObject, *, seconds: float, name: str | None = None) -> msgspec.Raw:
        """Send a request and wait for its result. Also raises `TransportError` and `TimeoutError`."""
        pending = self.begin(method, messages.encode(params), name=name)
        try:
            async with asyncio.timeout(seconds):
                return await pending.wait_result()
        finally:
            self.end(pending)

    def end(self, pending: PendingRequest, *, why: str = "The caller no longer waits for the result.") -> None:
        """Stop waiting for a request; one without a response is cancelled at the server."""
        if self._pending.pop(pending.id, None) is None or self.disconnect is not None:
            return
        self.notify("notifications/cancelled", cancelled_params(pending.id, why))
        self.transport.cancel(pending.id)

    def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification, if the connection is still open."""
        self._send_quietly(OutgoingMessage(body=messages.encode_notification(method, params), method=method))

    def answer(self, request: ServerRequest, result: JsonObject) -> None:
        """Respond to a request of the server."""
        self._send_quietly(OutgoingMessage(body=messages.encode_result(request.id, result)))

    def refuse(self, request: ServerRequest, code: int, why: str) -> None:
        """Respond to a request of the server with an error."""
        self._refuse(request.id, RpcError(code, why))

    def _refuse(self, request_id: AnyId, error: RpcError) -> None:
        self._send_quietly(OutgoingMessage(body=messages.encode_error(error, request_id)))

    def receive(self, message: bytes | bytearray, about: RequestId | None = None) -> None:
        self.received += 1
        if len(message) > codec.LARGE:
            self._parse_in_thread(message, about)
            return
        try:
            found = codec.decode_frames(message)
        except InvalidFrame:
            if len(message) > _LONG_BROKEN:
                self._parse_in_thread(message, about)
            else:
                self._dispatch_salvaged(salvage(message), message, about)
            return
        self._dispatch_all(found, about)

    def _parse_in_thread(self, message: bytes | bytearray, about: RequestId | None) -> None:
        task = asyncio.ensure_future(self._receive_large(message, about))
        self._parsing[task] = about
        task.add_done_callback(self._parsed)

    async def _receive_large(self, message: bytes | bytearray, about: RequestId | None) -> None:
        read = await run_in_thread(partial(_read, message))
        if isinstance(read, Salvaged):
            self._dispatch_salvaged(read, message, about)
        else:
            self._dispatch_all(read, about)

    def _dispatch_all(self, found: list[Frame], about: RequestId | None) -> None:
        for frame in found:
            try:
                self._dispatch(frame, about)
            except InvalidFrame:
                # A notification with invalid parameters.
                self.ignored += 1

    def _dispatch_salvaged(self, read: Salvaged, message: bytes | bytearray, about: RequestId | None) -> None:
        """Dispatch what is left of a broken message, so that its request fails at once instead of timing out."""
        if read.frames and not read.flaw:
            self._dispatch_all(read.frames, about)
            return
        known = [Trace(_whole_id(frame.id), _names(frame)) for frame in read.frames] or read.traces
        by_id = {_whole_id(frame.id): frame for frame in read.frames}
        if not any(self._dispatch_broken(trace, by_id.get(trace.id), read.flaw, about) for trace in known):
            self._count_noise(message)

    def _dispatch_broken(self, trace: Trace, frame: Frame | None, flaw: str, about: RequestId | None) -> bool:
        """Dispatch one broken message; False if it is indistinguishable from noise."""
        if trace.is_answer:
            pending = self._pending.pop(self._answered_id(trace, about), None)
            if pending is not None:
                pending.flaw = flaw
                pending.resolve(frame or Frame())
            else:
                self.ignored += 1
            return True
        if "method" in trace.names and trace.id is not None:
            self._refuse(trace.id, RpcError(PARSE_ERROR, f"Parse error: {flaw}."))
            return True
        self.ignored += "method" in trace.names
        return "method" in trace.names

    def _answered_id(self, trace: Trace, about: RequestId | None) -> RequestId:
        """The request of a broken response. One without an id is for the only request it can be for."""
        if isinstance(trace.id, int):
            return trace.id
        if isinstance(trace.id, str) and trace.id.isdecimal():
            return int(trace.id)
        if trace.id is None and about is not None:
            return about
        return next(iter(self._pending)) if trace.id is None and len(self._pending) == 1 else -1

    def _count_noise(self, message: bytes | bytearray) -> None:
        self.noise += 1
        if self.noise == 1:
            text = bytes(message[:_NOISE_CHARACTERS]).decode(errors="replace")
            logger.warning("output that is not a protocol message, ignored: server=%s output=%s", self._server, text)

    def _parsed(self, task: asyncio.Task[None]) -> None:
        about = self._parsing.pop(task)
        if about in self._late_disconnects:
            self.on_disconnect(self._late_disconnects.pop(about), about)
        if self.disconnect is not None and not self._parsing:
            self._fail_all(self.disconnect)

    def on_disconnect(self, disconnect: DisconnectReason, request_id: RequestId | None = None) -> None:
        if request_id is not None:
            self._fail_one(disconnect, request_id)
        elif self.disconnect is None:
            self.disconnect = disconnect
            if not self._parsing:
                self._fail_all(disconnect)
            self._observer.on_disconnect(disconnect)

    def _fail_one(self, disconnect: DisconnectReason, request_id: RequestId) -> None:
        if request_id in self._parsing.values():
            # The response may be in a message that is not parsed yet.
            self._late_disconnects[request_id] = disconnect
            return
        pending = self._pending.pop(request_id, None)
        if pending is not None:
            pending.resolve(disconnect)

    def _fail_all(self, disconnect: DisconnectReason) -> None:
        waiting, self._pending = self._pending, {}
        for pending in waiting.values():
            pending.resolve(disconnect)

    def is_pending(self, request_id: RequestId) -> bool:
        return request_id in self._pending

    def _dispatch(self, frame: Frame, about: RequestId | None) -> None:
        if frame.method is None:
            self._on_response(frame, about)
        elif frame.id is not None:
            self._on_request(ServerRequest(id=frame.id, method=frame.method, params=frame.params), about)
        elif frame.method == "notifications/progress":
            self._on_progress(frame.params)
        else:
            self._observer.on_notification(frame.method, frame.params, about)

    def _on_response(self, frame: Frame, about: RequestId | None) -> None:
        # A server that could not parse a request responds without its id.
        names = _names(frame) if frame.id is None else frozenset[str]()
        number = self._answered_id(Trace(_whole_id(frame.id), names), about) if frame.id is not None or names else -1
        pending = self._pending.pop(number, None)
        if pending is None:
            self.ignored += 1
        else:
            pending.resolve(frame)

    def _on_request(self, request: ServerRequest, about: RequestId | None) -> None:
        if request.method == "ping":
            self.answer(request, {})
        else:
            self._observer.on_request(request, about)

    def _on_progress(self, params: msgspec.Raw) -> None:
        progress = codec.decode_progress(params)
        token = None if progress is None else progress.progress_token
        pending = self._pending.get(token) if isinstance(token, int) else None
        if pending is None:
            self.ignored += 1
        else:
            if self._keeps_progress and pending.progress is not None:
                pending.earlier = [*(pending.earlier or ()), pending.progress][-_MAX_PROGRESS:]
            pending.progress = progress
            pending.wake()

    def _send_quietly(self, outgoing: OutgoingMessage) -> None:
        """Send a message without a response; if the server is gone, its disconnect is reported anyway."""
        if self.disconnect is not None:
            return
        try:
            self.transport.send(outgoing)
        except TransportError:
            self.ignored += 1


def _read(message: bytes | bytearray) -> list[Frame] | Salvaged:
    try:
        return codec.decode_frames(message)
    except InvalidFrame:
        return salvage(message)


def _whole_id(given: float | str | None) -> int | str | None:
    """An id as an integer: some servers write 1 as 1.0."""
    if isinstance(given, float):
        return int(given) if given.is_integer() else None
    return given


def _names(frame: Frame) -> frozenset[str]:
    parts = {"method": frame.method is not None, "result": len(frame.result) > 0, "error": len(frame.error) > 0}
    return frozenset(name for name, is_there in parts.items() if is_there)
