"""Sessions over HTTP of the versions with a handshake: by id, each with one owner, until they are idle for too long."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol

from msgspec import Raw

from trysquare.net.rpc import PendingRequests
from trysquare.protocol.envelope import SESSION_HEADER
from trysquare.protocol.messages import Message, RequestId, error_of
from trysquare.protocol.versions import VERSIONS
from trysquare.server.caller import Session
from trysquare.server.http.exchange import JSON, Exchange, Headers
from trysquare.server.http.streams import EventBudget, EventStream

MAX_SESSIONS: Final = 10_000
_MAX_STREAMS: Final = 64
"""Streams of a session that can be resumed."""
_MAX_WAITING: Final = 256
"""Notifications that wait for a client without an open stream."""
_EVENT_ID: Final = re.compile(r"([0-9]{1,15})_([0-9]{1,15})", re.ASCII)


class Cancellable(Protocol):
    """Work that can be cancelled."""

    def cancel(self) -> None: ...


class HttpSession(Session):
    """One session: its owner, its open requests, its streams, and the questions that its client has not answered."""

    def __init__(self, owner: str | None, budget: EventBudget | None) -> None:
        super().__init__()
        is_kept = budget is not None
        self.id = secrets.token_hex(16)
        self.owner = owner
        """The principal of the token that opened the session; nobody else can use it."""
        self.headers: Headers = [(SESSION_HEADER.encode(), self.id.encode())] if is_kept else []
        self.json_headers: Headers = [JSON, *self.headers]
        self.can_ask = is_kept
        self.asked: PendingRequests[Raw] = PendingRequests()
        self.running: dict[RequestId, Cancellable] = {}
        self.closed = asyncio.Event()
        self._budget = budget
        self._streams: OrderedDict[str, EventStream] = OrderedDict()
        self.standalone: EventStream | None = None
        """The stream of notifications that belong to no request."""
        self._waiting: dict[bytes, None] = {}
        self._has_waiting = asyncio.Event()
        self._uses = 0
        self._last_use = time.monotonic()

    def begin_use(self) -> SessionUse:
        """Count a request or an open stream as use, until it ends."""
        self._uses += 1
        return SessionUse(self)

    def end_use(self) -> None:
        self._uses -= 1
        self._last_use = time.monotonic()

    def is_idle(self, seconds: float) -> bool:
        """Whether nothing was in use for so many seconds."""
        return self._uses == 0 and time.monotonic() - self._last_use >= seconds

    def open_stream(self, exchange: Exchange, *, is_standalone: bool = False) -> EventStream:
        """A stream of events in a response, which can be resumed while the session lives."""
        version = VERSIONS.get(self.version or "")
        primes = self._budget is not None and version is not None and version.primes_streams
        stream = EventStream(exchange, self.headers, self._budget, primes=primes, is_standalone=is_standalone)
        if self._budget is not None:
            self._streams[stream.name] = stream
            if len(self._streams) > _MAX_STREAMS:
                oldest = min(self._streams.values(), key=lambda each: not each.ended.is_set())
                self._streams.pop(oldest.name).forget(for_good=True)
        return stream

    def find_stream(self, event_id: str) -> tuple[EventStream, int] | None:
        """The stream that an event belongs to, and the number of the event."""
        known = _EVENT_ID.fullmatch(event_id)
        stream = None if known is None else self._streams.get(known[1])
        return None if known is None or stream is None or not stream.can_resume else (stream, int(known[2]))

    def takes_standalone(self, stream: EventStream | None) -> bool:
        """Whether a stream, or a new one, can be that of notifications: only one at a time is open."""
        current = self.standalone
        return current is None or current is stream or current.exchange is None

    def notify(self, message: bytes) -> None:
        """Queue a notification for the stream that the client opened for such; once, if it waits there already."""
        self._waiting[message] = None
        if len(self._waiting) > _MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]
        self._has_waiting.set()

    async def send_waiting(self, stream: EventStream) -> None:
        """Send queued notifications over a stream, until this is cancelled."""
        while True:
            while self._waiting:
                message = next(iter(self._waiting))
                del self._waiting[message]
                await stream.send(message)
            self._has_waiting.clear()
            await self._has_waiting.wait()

    def resolve(self, message: Message) -> None:
        """Take the client's response to a question."""
        answer = self.asked.take(message.id)
        if answer is not None and len(message.result):
            answer.set_result(message.result)
        elif answer is not None:
            answer.set_exception(error_of(message))

    def close(self, *, cancels: bool = True) -> None:
        """End the session. Open requests are cancelled, or may end by themselves."""
        self.closed.set()
        self.asked.disconnect("the session has ended")
        for running in [*self.running.values()] if cancels else ():
            running.cancel()
        for stream in self._streams.values():
            stream.forget(for_good=True)


class SessionUse:
    """A use of a session, which ends once: with its request or stream, or when its client hangs up before."""

    __slots__ = ("_is_over", "session")

    def __init__(self, session: HttpSession) -> None:
        self.session = session
        self._is_over = False

    def end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self.session.end_use()

    def __enter__(self) -> SessionUse:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class SessionRegistry:
    """Open sessions by id. One that is idle for too long ends; where there are too many, the longest idle one."""

    def __init__(self, idle_seconds: float, on_end: Callable[[HttpSession], None], limit: int = MAX_SESSIONS) -> None:
        self._idle_seconds = idle_seconds
        self._on_end = on_end
        self._limit = limit
        self._budget = EventBudget()
        self._sessions: OrderedDict[str, HttpSession] = OrderedDict()
        self._sweep: asyncio.TimerHandle | None = None

    def open(self, owner: str | None) -> HttpSession | None:
        """A new session; None where too many are in use."""
        if len(self._sessions) >= self._limit:
            unused = next((each for each in self._sessions.values() if each.is_idle(0)), None)
            if unused is None:
                return None
            self.end(unused)
        session = HttpSession(owner, self._budget)
        self._sessions[session.id] = session
        self._plan_sweep()
        return session

    def find(self, session_id: str, owner: str | None) -> HttpSession | None:
        """The session of that id, for its owner only."""
        session = self._sessions.get(session_id)
        if session is None or session.owner != owner:
            return None
        self._sessions.move_to_end(session_id)
        return session

    def end(self, session: HttpSession, *, cancels: bool = True) -> None:
        """End one session."""
        if self._sessions.pop(session.id, None) is not None:
            session.close(cancels=cancels)
            self._on_end(session)

    def close(self) -> None:
        """End all sessions. Their open requests have the time that the server gives them to end."""
        for session in [*self._sessions.values()]:
            self.end(session, cancels=False)
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None

    def _plan_sweep(self) -> None:
        if self._sweep is None and self._sessions:
            delay = min(self._idle_seconds / 2, 60.0)
            self._sweep = asyncio.get_running_loop().call_later(delay, self._end_idle)

    def _end_idle(self) -> None:
        self._sweep = None
        for session in [each for each in self._sessions.values() if each.is_idle(self._idle_seconds)]:
            self.end(session)
        self._plan_sweep()
