"""Connection: many requests at once over one channel, each matched with its answer."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import msgspec

from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject
from trysquare.gateway.upstream import frames
from trysquare.gateway.upstream.broken_frames import Salvaged, Trace, salvage
from trysquare.gateway.upstream.channel import Channel, Loss, Outgoing, RequestId, Unreachable
from trysquare.gateway.upstream.frames import ErrorBody, Frame, NotAFrame, Progress

logger = logging.getLogger("trysquare.gateway")

_LONG_BROKEN = 64 * 1024
"""Bytes above which a message that cannot be read is looked through in a thread."""
_SHOWN_NOISE = 120
_MOST_LOGS = 100


class Refused(Exception):
    """The server answered a request with an error."""

    def __init__(self, error: ErrorBody) -> None:
        super().__init__(error.message)
        self.error = error


class Malformed(NotAFrame):
    """The server answered with something that cannot be read."""


class Lost(Exception):
    """No answer will come."""

    def __init__(self, loss: Loss) -> None:
        super().__init__(loss.reason)
        self.loss = loss


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerRequest:
    """Something that a server asks of us while it works."""

    id: int | float | str
    method: str
    params: msgspec.Raw


class Observer(Protocol):
    """Who is told what a server says without having been asked."""

    def notice(self, method: str, params: msgspec.Raw, about: RequestId | None = None) -> None:
        """Learn of a notification that belongs to no request of ours."""
        ...

    def asked(self, request: ServerRequest, about: RequestId | None) -> None:
        """Learn that the server asks something of us. It has to be answered."""
        ...

    def lost(self, loss: Loss) -> None:
        """Learn that the connection has ended."""
        ...


class Exchange:
    """One request of ours under way: its answer, and what the server asks and tells meanwhile."""

    __slots__ = ("_outcome", "_waiter", "flaw", "id", "logs", "progress", "questions")

    def __init__(self, request_id: RequestId) -> None:
        self.id = request_id
        self.questions: deque[ServerRequest] = deque()
        self.logs: deque[JsonObject] = deque(maxlen=_MOST_LOGS)
        """Log messages that have not been passed on; of a flood the latest."""
        self.progress: Progress | None = None
        """The latest that has not been passed on; those before it no longer matter."""
        self.flaw = ""
        """What is wrong with the answer; then a mark stands in it for what could not be read."""
        self._outcome: Frame | Loss | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def outcome(self) -> Frame | Loss | None:
        """The answer, or why there is none; None while it is awaited."""
        return self._outcome

    def settle(self, outcome: Frame | Loss) -> None:
        """Give it its answer. Only the first counts."""
        if self._outcome is None:
            self._outcome = outcome
            self.wake()

    def wake(self) -> None:
        """Have whoever waits look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def is_stirred(self) -> bool:
        """Whether there is an answer, a question or progress."""
        return self._outcome is not None or self.progress is not None or bool(self.questions) or bool(self.logs)

    def stirring(self) -> asyncio.Future[None]:
        """What to wait for until there is, and then to look again."""
        self._waiter = waiter = asyncio.get_running_loop().create_future()
        return waiter

    async def settled(self) -> None:
        """Wait until there is an answer, whatever the server tells meanwhile."""
        while self._outcome is None:
            self.progress = None
            self.logs.clear()
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    async def answered(self) -> msgspec.Raw:
        """Wait for the answer. Raises `Refused` or `Lost`."""
        await self.settled()
        return self.result()

    def result(self) -> msgspec.Raw:
        """What the server answered. Raises `Refused`, `Lost` or `Malformed`."""
        outcome = self._outcome
        assert outcome is not None
        if isinstance(outcome, Loss):
            raise Lost(outcome)
        if len(outcome.result):
            return outcome.result
        if self.flaw and not len(outcome.error):
            raise Malformed(self.flaw)
        raise Refused(frames.decode_error(outcome.error))


class Connection:
    """JSON-RPC over a channel. Answers that nobody waits for, late or double, are ignored and counted."""

    def __init__(self, channel: Channel, observer: Observer, *, server: str = "a server") -> None:
        self.channel = channel
        self._server = server
        self._observer = observer
        self._exchanges: dict[RequestId, Exchange] = {}
        self._opening: dict[asyncio.Task[None], RequestId | None] = {}
        """Large messages that are being taken apart, and on whose stream they came."""
        self._late_losses: dict[RequestId, Loss] = {}
        self._last_id = 0
        self.loss: Loss | None = None
        self.heard = 0
        """Messages that have come in; grows as long as the server is alive."""
        self.ignored = 0
        """Messages that nobody waited for."""
        self.noise = 0
        """Lines that were no messages, as programs print them that should not."""

    @property
    def under_way(self) -> int:
        """Requests that have not been answered yet."""
        return len(self._exchanges)

    @property
    def next_id(self) -> RequestId:
        """The id of the request that is sent next."""
        return self._last_id + 1

    async def open(self) -> None:
        """Open the channel. Raises `Unreachable`."""
        await self.channel.open(self)

    def begin(self, method: str, params: bytes, *, name: str | None = None) -> Exchange:
        """Send a request and have its exchange. Raises `Unreachable` where nothing was sent."""
        if self.loss is not None:
            raise Unreachable(Loss(reason=self.loss.reason, was_sent=False, instruction=self.loss.instruction))
        self._last_id = request_id = self._last_id + 1
        exchange = Exchange(request_id)
        self._exchanges[request_id] = exchange
        try:
            body = frames.request(request_id, method, params)
            self.channel.send(Outgoing(body=body, request_id=request_id, method=method, name=name))
        except Unreachable:
            self._exchanges.pop(request_id, None)
            raise
        return exchange

    async def request(self, method: str, params: JsonObject, *, seconds: float, name: str | None = None) -> msgspec.Raw:
        """Send a request and wait for its answer. Raises `Unreachable`, `Refused`, `Lost` or `TimeoutError`."""
        exchange = self.begin(method, frames.encode(params), name=name)
        try:
            async with asyncio.timeout(seconds):
                return await exchange.answered()
        finally:
            self.end(exchange)

    def end(self, exchange: Exchange, *, why: str = "The caller no longer waits for the answer.") -> None:
        """Wait no more for an exchange; tells the server, if it has not answered."""
        if self._exchanges.pop(exchange.id, None) is None or self.loss is not None:
            return
        self.notify("notifications/cancelled", {"requestId": exchange.id, "reason": why})
        self.channel.abandon(exchange.id)

    def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification, as far as it still can be."""
        self._send_quietly(Outgoing(body=frames.notification(method, params), method=method))

    def answer(self, request: ServerRequest, result: JsonObject) -> None:
        """Answer a request of the server."""
        self._send_quietly(Outgoing(body=frames.answer(request.id, result)))

    def refuse(self, request: ServerRequest, code: int, why: str) -> None:
        """Refuse a request of the server."""
        self._send_quietly(Outgoing(body=frames.refusal(request.id, code, why)))

    def hear(self, message: bytes | bytearray, about: RequestId | None = None) -> None:
        self.heard += 1
        if len(message) > frames.LARGE:
            self._open_beside(message, about)
            return
        try:
            found = frames.decode_frames(message)
        except NotAFrame:
            if len(message) > _LONG_BROKEN:
                self._open_beside(message, about)
            else:
                self._take_salvaged(salvage(message), message, about)
            return
        self._take_all(found, about)

    def _open_beside(self, message: bytes | bytearray, about: RequestId | None) -> None:
        task = asyncio.ensure_future(self._hear_large(message, about))
        self._opening[task] = about
        task.add_done_callback(self._opened)

    async def _hear_large(self, message: bytes | bytearray, about: RequestId | None) -> None:
        read = await run_in_thread(partial(_read, message))
        if isinstance(read, Salvaged):
            self._take_salvaged(read, message, about)
        else:
            self._take_all(read, about)

    def _take_all(self, found: list[Frame], about: RequestId | None) -> None:
        for frame in found:
            try:
                self._take(frame, about)
            except NotAFrame:
                # A notification whose parameters are none.
                self.ignored += 1

    def _take_salvaged(self, read: Salvaged, message: bytes | bytearray, about: RequestId | None) -> None:
        """Take what is left of a broken message. Whoever waits for it learns at once that it is broken."""
        if read.frames and not read.flaw:
            self._take_all(read.frames, about)
            return
        known = [Trace(_whole_id(frame.id), _names(frame)) for frame in read.frames] or read.traces
        by_id = {_whole_id(frame.id): frame for frame in read.frames}
        if not any(self._take_broken(trace, by_id.get(trace.id), read.flaw, about) for trace in known):
            self._hear_noise(message)

    def _take_broken(self, trace: Trace, frame: Frame | None, flaw: str, about: RequestId | None) -> bool:
        """Tell whoever waits for one broken message. False if it cannot be told from noise."""
        if trace.is_answer:
            exchange = self._exchanges.pop(self._answered_id(trace, about), None)
            if exchange is not None:
                exchange.flaw = flaw
                exchange.settle(frame or Frame())
            else:
                self.ignored += 1
            return True
        if "method" in trace.names and trace.id is not None:
            self._send_quietly(Outgoing(body=frames.refusal(trace.id, frames.PARSE_ERROR, f"Parse error: {flaw}.")))
            return True
        self.ignored += "method" in trace.names
        return "method" in trace.names

    def _answered_id(self, trace: Trace, about: RequestId | None) -> RequestId:
        """Which request a broken answer is for. One without an id is for the only request that it can be for."""
        if isinstance(trace.id, int):
            return trace.id
        if isinstance(trace.id, str) and trace.id.isdecimal():
            return int(trace.id)
        if trace.id is None and about is not None:
            return about
        return next(iter(self._exchanges)) if trace.id is None and len(self._exchanges) == 1 else -1

    def _hear_noise(self, message: bytes | bytearray) -> None:
        self.noise += 1
        if self.noise == 1:
            text = bytes(message[:_SHOWN_NOISE]).decode(errors="replace")
            logger.warning("%s prints what is not a message of the protocol; it is passed over: %s", self._server, text)

    def _opened(self, task: asyncio.Task[None]) -> None:
        about = self._opening.pop(task)
        if about in self._late_losses:
            self.lose(self._late_losses.pop(about), about)
        if self.loss is not None and not self._opening:
            self._give_up(self.loss)

    def lose(self, loss: Loss, request_id: RequestId | None = None) -> None:
        if request_id is not None:
            self._lose_one(loss, request_id)
        elif self.loss is None:
            self.loss = loss
            if not self._opening:
                self._give_up(loss)
            self._observer.lost(loss)

    def _lose_one(self, loss: Loss, request_id: RequestId) -> None:
        if request_id in self._opening.values():
            # The answer may be in what has come and is not yet read.
            self._late_losses[request_id] = loss
            return
        exchange = self._exchanges.pop(request_id, None)
        if exchange is not None:
            exchange.settle(loss)

    def _give_up(self, loss: Loss) -> None:
        """Tell every request that it gets no answer; those go first that came before the end."""
        exchanges, self._exchanges = self._exchanges, {}
        for exchange in exchanges.values():
            exchange.settle(loss)

    def awaits(self, request_id: RequestId) -> bool:
        return request_id in self._exchanges

    def exchange_of(self, request_id: RequestId) -> Exchange | None:
        """The exchange with this id, if it is under way."""
        return self._exchanges.get(request_id)

    def _take(self, frame: Frame, about: RequestId | None) -> None:
        if frame.method is None:
            self._take_answer(frame, about)
        elif frame.id is not None:
            self._take_request(ServerRequest(id=frame.id, method=frame.method, params=frame.params), about)
        elif frame.method == "notifications/progress":
            self._take_progress(frame.params)
        else:
            self._observer.notice(frame.method, frame.params, about)

    def _take_answer(self, frame: Frame, about: RequestId | None) -> None:
        # A server that could not read a request refuses it without its id.
        names = _names(frame) if frame.id is None else frozenset[str]()
        number = self._answered_id(Trace(_whole_id(frame.id), names), about) if frame.id is not None or names else -1
        exchange = self._exchanges.pop(number, None)
        if exchange is None:
            self.ignored += 1
        else:
            exchange.settle(frame)

    def _take_request(self, request: ServerRequest, about: RequestId | None) -> None:
        if request.method == "ping":
            self.answer(request, {})
        else:
            self._observer.asked(request, about)

    def _take_progress(self, params: msgspec.Raw) -> None:
        progress = frames.decode_progress(params)
        token = None if progress is None else progress.progress_token
        exchange = self._exchanges.get(token) if isinstance(token, int) else None
        if exchange is None:
            self.ignored += 1
        else:
            exchange.progress = progress
            exchange.wake()

    def _send_quietly(self, outgoing: Outgoing) -> None:
        """Send what nobody waits for: if the server is gone, its end is told by other ways."""
        if self.loss is not None:
            return
        try:
            self.channel.send(outgoing)
        except Unreachable:
            self.ignored += 1


def _read(message: bytes | bytearray) -> list[Frame] | Salvaged:
    try:
        return frames.decode_frames(message)
    except NotAFrame:
        return salvage(message)


def _whole_id(given: float | str | None) -> int | str | None:
    """An id as we count them: some servers write 1 as 1.0."""
    if isinstance(given, float):
        return int(given) if given.is_integer() else None
    return given


def _names(frame: Frame) -> frozenset[str]:
    parts = {"method": frame.method is not None, "result": len(frame.result) > 0, "error": len(frame.error) > 0}
    return frozenset(name for name, is_there in parts.items() if is_there)
