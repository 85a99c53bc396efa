"""Member: one server of the fleet, from its first call to its last: started, kept, put to sleep, started anew."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeAlias

from trysquare.core.context import CallContext
from trysquare.core.errors import InputRequired, ToolError
from trysquare.core.threads import run_in_thread
from trysquare.gateway.answers.answer import Answer
from trysquare.gateway.calls.retrying import pause_of_unsent
from trysquare.gateway.fleet.breaker import Breaker
from trysquare.gateway.fleet.parking import ParkingLot, call_key
from trysquare.gateway.fleet.places import Places
from trysquare.gateway.server import ServerConfig, ServerState, ServerStatus
from trysquare.gateway.upstream import failures
from trysquare.gateway.upstream.call import Call, Request
from trysquare.gateway.upstream.channel import Channel, Loss, Unreachable
from trysquare.gateway.upstream.connection import Lost, Refused
from trysquare.gateway.upstream.handshake import HANDSHAKE_VERSIONS, Greeting, Incompatible, Introduction
from trysquare.gateway.upstream.session import CAPABILITIES, Session, capability_object

OpenChannel: TypeAlias = Callable[[ServerConfig], Channel]
Admit: TypeAlias = Callable[[ServerConfig], None]
"""Raises a `ToolError` for a server that must not be started or reached as it is. May take its time."""
_SHORT_LIFE = 1.0
"""A server that ends sooner than this after its start without having answered anything has failed to start."""
_REVIVE_SECONDS = 0.5
_ANYBODY = ""
_TOO_MANY = 429
_UNANSWERED = (Refused, Lost, Unreachable, TimeoutError)


class Member:
    """One server: its sessions, shared or one for each caller, and what happens to them."""

    def __init__(
        self,
        config: ServerConfig,
        *,
        open_channel: OpenChannel,
        admit: Admit,
        lot: ParkingLot,
        on_change: Callable[[str, str], None],
        keep: Callable[[Coroutine[Any, Any, None]], None],
        version: str | None = None,
    ) -> None:
        self.config = config
        self.version = version
        """The version that the server spoke last, so that its next start needs no probe."""
        self.greeting: Greeting | None = None
        """What the server said of itself at its last start."""
        self.begun = asyncio.Event()
        """Set once the server was started, or could not be."""
        self._open_channel = open_channel
        self._admit = admit
        self._lot = lot
        self._on_change = on_change
        self._keep = keep
        self._sessions: dict[str, Session] = {}
        self._starting: dict[str, asyncio.Task[Session]] = {}
        self._breaker = Breaker()
        self._places = Places(config.concurrency)
        self._under_way = 0
        self._subscribed: set[str] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._closed = asyncio.Event()

    def status(self) -> ServerStatus:
        """How it is doing."""
        rest = self._breaker.rest(asyncio.get_running_loop().time())
        usable = [session for session in self._sessions.values() if session.is_usable]
        state: ServerState = "running" if usable else "starting" if self._starting else "resting" if rest else "asleep"
        return ServerStatus(
            state=state,
            connections=len(usable),
            under_way=self._under_way,
            version=self.version,
            failures=self._breaker.failures,
            reason=self._breaker.reason,
            retry_seconds=rest,
            noise=sum(session.connection.noise for session in usable),
        )

    async def call(
        self, request: Request, context: CallContext, on_sent: Callable[[], None], *, tries: int = 1
    ) -> Answer:
        """Send a request and wait for its answer; one that was left with a question open is taken up instead.

        What a busy server refused unread is sent again when it wants, if that is soon enough.
        """
        try:
            return await self._called(request, context, on_sent)
        except ToolError as error:
            pause = pause_of_unsent(error, tries, context)
            if pause is None or pause >= self.config.timeout:
                raise
        await asyncio.sleep(pause)
        return await self.call(request, context, on_sent, tries=tries + 1)

    async def _called(self, request: Request, context: CallContext, on_sent: Callable[[], None]) -> Answer:
        self._under_way += 1
        if not self._places.take_free():
            await self._wait_for_place(context)
        try:
            call = None if self._lot.is_empty else await self._resumed(request, context)
            if call is not None:
                return await self._finished(call, context)
            return await self._answered(request, context, on_sent)
        finally:
            self._leave()

    async def session(self, context: CallContext) -> Session:
        """The session for this caller; started, if there is none. Raises a `ToolError` where it cannot be."""
        return self._usable(context) or await self._started(self._session_key(context), context)

    async def subscribe(self, uri: str, context: CallContext) -> None:
        """Have changes of a resource told, from now on and after every new start."""
        session = await self.session(context)
        try:
            await session.subscribe(uri)
        except _UNANSWERED as error:
            raise failures.not_sent(self.config.name, Loss(reason=str(error) or "It did not answer.")) from None
        self._subscribed.add(uri)

    async def unsubscribe(self, uri: str) -> None:
        """Have them told no more."""
        self._subscribed.discard(uri)
        for session in list(self._sessions.values()):
            if session.is_usable:
                # A server that cannot be told either has gone or knows nothing of it.
                with suppress(*_UNANSWERED):
                    await session.unsubscribe(uri)

    def succeed(self, other: Member) -> None:
        """Take the place of another, whose entry has changed: those who listened to it listen to this one."""
        self._subscribed, other._subscribed = other._subscribed, set()
        if self._subscribed:
            self._keep(self._revive())

    async def retire(self) -> None:
        """End it once the calls that are under way have come to their end."""
        self._subscribed.clear()
        while self._under_way or any(not session.is_free for session in self._sessions.values()):
            self._quiet.clear()
            if not self._under_way:
                self._watch_parked()
            await self._quiet.wait()
        await self.close()

    async def close(self) -> None:
        """End it now."""
        self._closed.set()
        starting, self._starting = self._starting, {}
        for task in starting.values():
            task.cancel()
        await asyncio.gather(*starting.values(), return_exceptions=True)
        sessions, self._sessions = self._sessions, {}
        await asyncio.gather(*(session.close() for session in sessions.values()))

    def _session_key(self, context: CallContext) -> str:
        return context.principal.subject if self.config.sharing == "caller" else _ANYBODY

    def _usable(self, context: CallContext) -> Session | None:
        """The session for this caller, if there is one to use."""
        session = self._sessions.get(self._session_key(context))
        return session if session is not None and session.is_usable else None

    async def _resumed(self, request: Request, context: CallContext) -> Call | None:
        """The same call of the same caller, if it waits for an answer that may have come now."""
        call = self._lot.take(self._key(request, context))
        if call is not None and call.is_answered and not call.session.is_usable:
            call.session = await self.session(context)
        return call

    def _key(self, request: Request, context: CallContext) -> bytes:
        return call_key(self.config.name, context.principal.subject, request)

    async def _answered(self, request: Request, context: CallContext, on_sent: Callable[[], None]) -> Answer:
        """The answer to a new request. A session that turns out to have died before it is replaced once."""
        came = asyncio.get_running_loop().time()
        for is_last in (False, True):
            session = self._usable(context) or await self.session(context)
            call = Call(session, request)
            try:
                call.begin(context, on_sent)
                return await call.finish(context)
            except InputRequired:
                self._lot.park(self._key(request, context), call)
                raise
            except Unreachable as error:
                if error.loss.status == _TOO_MANY:
                    # The session is well, and the server wants to be left alone.
                    raise self._not_sent(error, session) from None
                self._set_aside(session)
                if is_last or session.began >= came:
                    raise self._not_sent(error, session) from None
        raise AssertionError("the last try returns or raises")

    async def _finished(self, call: Call, context: CallContext) -> Answer:
        try:
            return await call.finish(context)
        except InputRequired:
            self._lot.park(self._key(call.request, context), call)
            raise

    async def _wait_for_place(self, context: CallContext) -> None:
        try:
            rest = context.remaining()
            async with asyncio.timeout(self.config.timeout if rest is None else min(rest, self.config.timeout)):
                await self._places.take()
        except BaseException as error:
            self._under_way -= 1
            if isinstance(error, TimeoutError):
                raise failures.crowded(self.config.name, self.config.concurrency) from None
            raise

    def _leave(self) -> None:
        self._places.leave()
        self._under_way -= 1
        self._quiet.set()

    async def _started(self, key: str, context: CallContext) -> Session:
        task = self._starting.get(key)
        if task is None:
            rest = self._breaker.rest(asyncio.get_running_loop().time())
            if rest:
                raise failures.resting(
                    self.config.name, self._breaker.reason, failures=self._breaker.failures, seconds=rest
                )
            task = self._starting[key] = asyncio.ensure_future(self._start(key, _introduction(self.config, context)))
            task.add_done_callback(lambda done: self._start_ended(key, done))
        try:
            async with asyncio.timeout(context.remaining()):
                # Others may wait for the same start, so that it goes on when this caller no longer does.
                return await asyncio.shield(task)
        except TimeoutError:
            raise self._not_sent(Unreachable(Loss(reason="It was still starting when the time was up."))) from None

    def _start_ended(self, key: str, task: asyncio.Task[Session]) -> None:
        self.begun.set()
        if self._starting.get(key) is task:
            del self._starting[key]
        if not task.cancelled():
            # Whoever waited has been told; if nobody did, it is in the status.
            task.exception()

    async def _start(self, key: str, own: Introduction) -> Session:
        await run_in_thread(lambda: self._admit(self.config))
        try:
            session = await self._connected(own)
        except _CannotConnect as failed:
            self._breaker.fail(asyncio.get_running_loop().time(), failed.reason)
            raise failures.not_sent(self.config.name, failed.loss, last_words=failed.last_words) from None
        self._breaker.succeed()
        self.version, self.greeting = session.greeting.version, session.greeting
        self._sessions[key] = session
        for uri in sorted(self._subscribed):
            # What is no longer there to be subscribed to must not keep the server from being used.
            with suppress(*_UNANSWERED):
                await session.subscribe(uri)
        self._sleep_later(key, session)
        self._on_change(self.config.name, "connected")
        return session

    async def _connected(self, own: Introduction) -> Session:
        """A session. A server that the probe ends, or that speaks another version than last time, gets a second try."""
        try:
            return await self._attempt(own, self.version)
        except _CannotConnect as failed:
            is_hopeful = failed.ended if self.version is None else failed.is_incompatible
            if failed.loss.instruction is not None or not is_hopeful:
                # Where somebody has to do something first, trying again is no use.
                raise
        return await self._attempt(own, HANDSHAKE_VERSIONS[-1] if self.version is None else None)

    async def _attempt(self, own: Introduction, version: str | None) -> Session:
        session = Session(
            self.config,
            self._open_channel(self.config),
            own,
            on_change=lambda kind: self._on_change(self.config.name, kind),
            on_lost=self._lost,
        )
        # Whoever waits for it is not woken before the start itself first waits.
        self.begun.set()
        try:
            await session.start(version)
        except Unreachable as error:
            failed = _CannotConnect(error, session)
            await session.close()
            raise failed from None
        except BaseException:
            await session.close()
            raise
        return session

    def _not_sent(self, error: Unreachable, session: Session | None = None) -> ToolError:
        words = "" if session is None else session.connection.channel.last_words()
        return failures.not_sent(self.config.name, error.loss, last_words=words)

    def _lost(self, session: Session, loss: Loss) -> None:
        if session in self._sessions.values():
            now = asyncio.get_running_loop().time()
            if not session.answered and now - session.began < _SHORT_LIFE:
                self._breaker.fail(now, loss.reason)
            self._drop(session)
            if self._subscribed:
                self._keep(self._revive())

    async def _revive(self) -> None:
        """Start a server again that somebody listens to, as often as it takes."""
        while self._subscribed and not self._sessions:
            rest = self._breaker.rest(asyncio.get_running_loop().time())
            with suppress(TimeoutError):
                async with asyncio.timeout(max(rest, _REVIVE_SECONDS)):
                    await self._closed.wait()
                    return
            with suppress(ToolError):
                await self.session(CallContext())

    def _set_aside(self, session: Session) -> None:
        """Use a session no more, and end it when the calls of others that are under way on it have ended."""
        if session.is_usable and not session.is_free:
            self._sessions = {key: other for key, other in self._sessions.items() if other is not session}
            self._keep(self._close_when_free(session))
        else:
            self._drop(session)

    async def _close_when_free(self, session: Session) -> None:
        while session.is_usable and not session.is_free and not self._closed.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_REVIVE_SECONDS):
                    await self._closed.wait()
        await session.close()

    def _drop(self, session: Session) -> None:
        self._sessions = {key: other for key, other in self._sessions.items() if other is not session}
        self._keep(session.close())

    def _sleep_later(self, key: str, session: Session) -> None:
        """Put a session to sleep once it has not been used for long; looks again as late as that may be."""
        if not self.config.idle or self._sessions.get(key) is not session:
            return
        loop = asyncio.get_running_loop()
        due = session.last_used + self.config.idle
        if loop.time() >= due and session.is_free and not self._subscribed:
            self._drop(session)
        else:
            loop.call_at(max(due, loop.time() + self.config.idle / 4), self._sleep_later, key, session)

    def _watch_parked(self) -> None:
        """Look again later: parked calls end by themselves, and tell nobody."""
        asyncio.get_running_loop().call_later(_SHORT_LIFE, self._quiet.set)


class _CannotConnect(Exception):
    """No session came about."""

    def __init__(self, error: Unreachable, session: Session) -> None:
        self.loss = error.loss
        self.last_words = session.connection.channel.last_words()
        self.ended = session.connection.loss is not None
        """Whether the server was there and ended."""
        self.is_incompatible = isinstance(error, Incompatible)
        said = f" Its last words: {self.last_words}" if self.last_words else ""
        self.reason = f"{error.loss.reason}{said}"
        super().__init__(self.reason)


def _introduction(config: ServerConfig, context: CallContext) -> Introduction:
    """What we say that we can do. A connection that callers share cannot tell the folders of one of them.

    A server asks during a call; one whose client cannot answer is told so then. Pages to open are said to be possible
    only where they are, since a server that may choose would do without a form then.
    """
    from trysquare import __version__

    left_out = {"roots"} if config.sharing != "caller" else set[str]()
    if not context.offers("elicitation.url"):
        left_out.add("elicitation.url")
    names = [name for name in CAPABILITIES if name not in left_out]
    return Introduction(name="trysquare", version=__version__, capabilities=capability_object(names))
