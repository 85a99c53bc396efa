"""Lifecycle of one upstream server: start, reuse, idle shutdown, restart, circuit breaker, suspended calls."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple, TypeAlias

import msgspec

from trysquare.core.concurrency import BackgroundTasks
from trysquare.core.context import CallContext
from trysquare.core.errors import InputRequired, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.threads import run_in_thread
from trysquare.gateway.models import ServerConfig, ServerState, ServerStatus, UpstreamResult
from trysquare.gateway.sender import pause_of_unsent
from trysquare.gateway.upstream import errors as failures
from trysquare.gateway.upstream.connection import Disconnected
from trysquare.gateway.upstream.request import ServerTask, UpstreamCall, UpstreamRequest
from trysquare.gateway.upstream.session import (
    CAPABILITIES,
    ClientInfo,
    ServerInfo,
    UnsupportedProtocol,
    UpstreamSession,
    capability_object,
)
from trysquare.gateway.upstream.tasks import FollowedTask
from trysquare.gateway.upstream.transport import DisconnectReason, Transport, TransportError
from trysquare.protocol.messages import RpcError
from trysquare.protocol.versions import LATEST_HANDSHAKE

OpenTransport: TypeAlias = Callable[[ServerConfig], Transport]
Admit: TypeAlias = Callable[[ServerConfig], None]
"""Raises a `ToolError` for a server that must not be started or reached as it is. Runs in a thread."""
FIRST_REST = 1.0
LONGEST_REST = 60.0
SUSPEND_SECONDS = 900.0
"""Seconds that the user has to answer a server's question until the call is cancelled."""
_SHORT_LIFE = 1.0
"""A server that ends sooner than this without having answered anything counts as failed to start."""
_RESTART_SECONDS = 0.5
_ANY_CALLER = ""
_TOO_MANY = 429
_NO_RESPONSE = (RpcError, Disconnected, TransportError, TimeoutError)


@dataclass(slots=True)
class CircuitBreaker:
    """Consecutive failures. The first allows an immediate retry; each further one doubles the wait."""

    failures: int = 0
    reason: str = ""
    until: float = 0.0

    def record_failure(self, now: float, reason: str) -> None:
        self.failures += 1
        self.reason = reason
        rest = 0.0 if self.failures == 1 else min(FIRST_REST * 2 ** min(self.failures - 2, 16), LONGEST_REST)
        self.until = now + rest

    def record_success(self) -> None:
        self.failures, self.reason, self.until = 0, "", 0.0

    def retry_after(self, now: float) -> float:
        """Seconds until the next attempt is allowed; 0 if it is allowed now."""
        return max(0.0, self.until - now)


class _Suspended(NamedTuple):
    key: bytes
    call: UpstreamCall | FollowedTask
    timer: asyncio.TimerHandle


class SuspendedCalls:
    """Calls that wait for user input, by their key. A call is resumed when the client sends it again."""

    def __init__(self) -> None:
        self._calls: list[_Suspended] = []

    @property
    def is_empty(self) -> bool:
        return not self._calls

    def suspend(self, key: bytes, call: UpstreamCall | FollowedTask) -> None:
        timer = asyncio.get_running_loop().call_later(SUSPEND_SECONDS, self._expire, call)
        self._calls.append(_Suspended(key, call, timer))

    def resume(self, key: bytes) -> UpstreamCall | FollowedTask | None:
        """Remove and return the oldest call of this key, if there is one."""
        found = next((one for one in self._calls if one.key == key), None)
        if found is None:
            return None
        self._calls.remove(found)
        found.timer.cancel()
        return found.call

    def clear(self) -> None:
        for one in self._calls:
            one.timer.cancel()
        self._calls.clear()

    def _expire(self, call: UpstreamCall | FollowedTask) -> None:
        self._calls = [one for one in self._calls if one.call is not call]
        call.cancel()


class ManagedServer:
    """One server and its sessions, shared by all callers or one for each."""

    def __init__(
        self,
        config: ServerConfig,
        *,
        open_transport: OpenTransport,
        admit: Admit,
        suspended: SuspendedCalls,
        on_change: Callable[[str, str], None],
        background: BackgroundTasks,
    ) -> None:
        self.config = config
        self.version: str | None = None
        """The last negotiated version, so that the next start needs no probe."""
        self.server_info: ServerInfo | None = None
        """From the last start."""
        self._open_transport = open_transport
        self._admit = admit
        self._suspended = suspended
        self._on_change = on_change
        self._background = background
        self._sessions: dict[str, UpstreamSession] = {}
        self._starting: dict[str, asyncio.Task[UpstreamSession]] = {}
        self._breaker = CircuitBreaker()
        self._slots = asyncio.Semaphore(config.concurrency)
        self._under_way = 0
        self._subscribed: set[str] = set()
        self._call_ended = asyncio.Event()
        self._closed = asyncio.Event()
        self._lost = self._last_words = ""

    def status(self) -> ServerStatus:
        rest = self._breaker.retry_after(asyncio.get_running_loop().time())
        usable = [session for session in self._sessions.values() if session.is_usable]
        state: ServerState = "running" if usable else "starting" if self._starting else "resting" if rest else "asleep"
        return ServerStatus(
            state=state,
            connections=len(usable),
            under_way=self._under_way,
            version=self.version,
            software="" if (info := self.server_info) is None else f"{info.name} {info.server_version}".strip(),
            failures=self._breaker.failures,
            noise=sum(session.connection.noise for session in usable),
            lost=self._lost,
        )

    def stderr_tail(self) -> str:
        """The last output on stderr of the sessions that run, else of the one that ended by itself."""
        tails = (session.connection.transport.stderr_tail() for session in self._sessions.values())
        return "\n".join(tail for tail in tails if tail) or (self._last_words if self._lost else "")

    async def call(
        self,
        request: UpstreamRequest,
        context: CallContext,
        on_sent: Callable[[], None],
        checkpoint: Mapping[str, Any] | None = None,
    ) -> UpstreamResult:
        """Send a request and wait for its result; a suspended call is resumed instead.

        A request that a busy server rejected unread is sent again after its `Retry-After`, within the time limit. Where
        the server answers with a task, and the call is a task of this server too, `checkpoint` is stored with its id.
        """
        if context.checkpoints and (kept := context.checkpoints.get(request.checkpoint_key(self.config.name))):
            return await self._follow(self._followed(ServerTask(kept["task"], kept["pause"]), request), context)
        found = await self._answer(request, context, on_sent)
        if isinstance(found, UpstreamResult):
            return found
        if isinstance(found, ServerTask):
            if await context.become_task():
                kept = {**(checkpoint or {}), "server": self.config.name, "task": found.id, "pause": found.pause}
                await context.checkpoint(request.checkpoint_key(self.config.name), kept)
            found = self._followed(found, request)
        return await self._follow(found, context)

    async def cancel_task(self, id: str, context: CallContext) -> None:
        """Cancel a task that an earlier call was answered with."""
        await self._followed(ServerTask(id), UpstreamRequest("tools/call", "", b"")).cancel_now(context)

    async def _answer(
        self, request: UpstreamRequest, context: CallContext, on_sent: Callable[[], None]
    ) -> UpstreamResult | ServerTask | FollowedTask:
        """What a request is answered with, or the task of a suspended one."""
        for tries in count(1):
            self._under_way += 1
            try:
                await (self._wait_for_slot(context) if self._slots.locked() else self._slots.acquire())
                try:
                    return await self._send(request, context, on_sent)
                finally:
                    self._slots.release()
            except ToolError as error:
                pause = pause_of_unsent(error, tries, context)
                if pause is None or pause >= self.config.timeout:
                    raise
            finally:
                self._under_way -= 1
                self._call_ended.set()
            await asyncio.sleep(pause)
        raise AssertionError("the loop returns or raises")

    def _followed(self, task: ServerTask, request: UpstreamRequest) -> FollowedTask:
        return FollowedTask(task, request, self.config, self._ask_of_task, self._background)

    async def _ask_of_task(self, method: str, params: JsonObject, context: CallContext) -> msgspec.Raw:
        if self._closed.is_set():
            raise TransportError(DisconnectReason(reason="The gateway closed the connection."))
        return await (await self.session(context)).ask_of_task(method, params, context)

    async def _follow(self, task: FollowedTask, context: CallContext) -> UpstreamResult:
        """The result of a task, which takes none of the places for calls."""
        self._under_way += 1
        try:
            return await task.finish(context)
        except InputRequired:
            if task.request.checkpoint_key(self.config.name) not in context.checkpoints:
                self._suspended.suspend(self._call_key(task.request, context), task)
            raise
        finally:
            self._under_way -= 1
            self._call_ended.set()

    async def session(self, context: CallContext) -> UpstreamSession:
        """The session of this caller, started if necessary. Raises a `ToolError` if it cannot be started."""
        return self._usable(context) or await self._started(self._session_key(context), context)

    async def subscribe(self, uri: str) -> None:
        """Subscribe to a resource, also after every restart."""
        session = await self.session(CallContext())
        try:
            await session.subscribe(uri)
        except _NO_RESPONSE as error:
            reason = DisconnectReason(reason=str(error) or "The server did not respond.")
            raise failures.not_sent(self.config.name, reason) from None
        self._subscribed.add(uri)

    def take_over_from(self, other: ManagedServer) -> None:
        """Continue the subscriptions of a server whose entry has changed."""
        self._subscribed, other._subscribed = other._subscribed, set()
        if self._subscribed:
            self._background.start(self._restart())

    async def retire(self) -> None:
        """Close it once its pending calls have ended."""
        self._subscribed.clear()
        while self._under_way or any(not session.is_free for session in self._sessions.values()):
            self._call_ended.clear()
            if not self._under_way:
                # Suspended calls end without an event.
                asyncio.get_running_loop().call_later(_SHORT_LIFE, self._call_ended.set)
            await self._call_ended.wait()
        await self.close()

    async def close(self) -> None:
        self._closed.set()
        starting, self._starting = self._starting, {}
        for task in starting.values():
            task.cancel()
        await asyncio.gather(*starting.values(), return_exceptions=True)
        sessions, self._sessions = self._sessions, {}
        await asyncio.gather(*(session.close() for session in sessions.values()))

    def _session_key(self, context: CallContext) -> str:
        return context.principal.subject if self.config.sharing == "caller" else _ANY_CALLER

    def _usable(self, context: CallContext) -> UpstreamSession | None:
        session = self._sessions.get(self._session_key(context))
        return session if session is not None and session.is_usable else None

    async def _send(
        self, request: UpstreamRequest, context: CallContext, on_sent: Callable[[], None]
    ) -> UpstreamResult | ServerTask | FollowedTask:
        """The result of a resumed or new call. A session that turns out to have ended before it is replaced once."""
        if not self._suspended.is_empty:
            call = self._suspended.resume(self._call_key(request, context))
            if isinstance(call, FollowedTask):
                return call
            if call is not None:
                if call.is_answered and not call.session.is_usable:
                    call.session = await self.session(context)
                return await self._finish(call, context)
        started = asyncio.get_running_loop().time()
        for is_last in (False, True):
            session = self._usable(context) or await self.session(context)
            call = UpstreamCall(session, request)
            try:
                call.begin(context, on_sent)
                return await self._finish(call, context)
            except TransportError as error:
                if error.disconnect.status == _TOO_MANY:
                    # The session works; the server asked to be called later.
                    raise self._not_sent(error, session) from None
                self._drop(session)
                if is_last or session.began >= started:
                    raise self._not_sent(error, session) from None
        raise AssertionError("the last attempt returns or raises")

    async def _finish(self, call: UpstreamCall, context: CallContext) -> UpstreamResult | ServerTask:
        try:
            return await call.finish(context)
        except InputRequired:
            self._suspended.suspend(self._call_key(call.request, context), call)
            raise

    def _call_key(self, request: UpstreamRequest, context: CallContext) -> bytes:
        """Digest that identifies a call when the client sends it again."""
        subject = context.principal.subject.encode("utf-8", "surrogatepass")
        parts = (self.config.name.encode(), subject, request.method.encode(), request.fields)
        return hashlib.sha256(b"".join(b"%d:%s" % (len(part), part) for part in parts)).digest()

    async def _wait_for_slot(self, context: CallContext) -> None:
        rest = context.remaining()
        try:
            async with asyncio.timeout(self.config.timeout if rest is None else min(rest, self.config.timeout)):
                await self._slots.acquire()
        except TimeoutError:
            raise failures.too_many_calls(self.config.name, self.config.concurrency) from None

    async def _started(self, key: str, context: CallContext) -> UpstreamSession:
        task = self._starting.get(key)
        if task is None:
            rest = self._breaker.retry_after(asyncio.get_running_loop().time())
            if rest:
                raise failures.circuit_open(
                    self.config.name, self._breaker.reason, failures=self._breaker.failures, seconds=rest
                )
            task = self._starting[key] = asyncio.ensure_future(self._start(key, _client_info(self.config, context)))
            task.add_done_callback(lambda done: self._start_ended(key, done))
        try:
            async with asyncio.timeout(context.remaining()):
                # Others may wait for the same start, so it continues when this caller is cancelled.
                return await asyncio.shield(task)
        except TimeoutError:
            reason = DisconnectReason(reason="It was still starting at the call's deadline.")
            raise failures.not_sent(self.config.name, reason) from None

    def _start_ended(self, key: str, task: asyncio.Task[UpstreamSession]) -> None:
        if self._starting.get(key) is task:
            del self._starting[key]
        if not task.cancelled():
            # Retrieved here, in case no caller waits any more; the reason is in the status.
            task.exception()

    async def _start(self, key: str, client: ClientInfo) -> UpstreamSession:
        await run_in_thread(lambda: self._admit(self.config))
        try:
            session = await self._connect(client)
        except _StartFailed as failed:
            self._breaker.record_failure(asyncio.get_running_loop().time(), str(failed))
            self._lost, self._last_words = failed.disconnect.reason, failed.stderr_tail
            raise failures.not_sent(self.config.name, failed.disconnect, stderr_tail=failed.stderr_tail) from None
        self._breaker.record_success()
        self.version, self.server_info = session.server_info.version, session.server_info
        self._sessions[key], self._lost = session, ""
        for uri in sorted(self._subscribed):
            # A resource that no longer exists must not keep the server from being used.
            with suppress(*_NO_RESPONSE):
                await session.subscribe(uri)
        self._schedule_shutdown(key, session)
        self._on_change(self.config.name, "connected")
        return session

    async def _connect(self, client: ClientInfo) -> UpstreamSession:
        """A session. A server that the probe ends, or whose version has changed, gets a second attempt."""
        try:
            return await self._attempt(client, self.version)
        except _StartFailed as failed:
            may_retry = failed.ended if self.version is None else failed.is_incompatible
            if failed.disconnect.instruction is not None or not may_retry:
                # Where the user has to act first, a retry is useless.
                raise
        return await self._attempt(client, LATEST_HANDSHAKE if self.version is None else None)

    async def _attempt(self, client: ClientInfo, version: str | None) -> UpstreamSession:
        session = UpstreamSession(
            self.config,
            self._open_transport(self.config),
            client,
            on_change=lambda kind: self._on_change(self.config.name, kind),
            on_lost=self._on_lost,
        )
        try:
            await session.start(version)
        except TransportError as error:
            failed = _StartFailed(error, session)
            await session.close()
            raise failed from None
        except BaseException:
            await session.close()
            raise
        return session

    def _not_sent(self, error: TransportError, session: UpstreamSession) -> ToolError:
        stderr_tail = session.connection.transport.stderr_tail()
        return failures.not_sent(self.config.name, error.disconnect, stderr_tail=stderr_tail)

    def _on_lost(self, session: UpstreamSession, disconnect: DisconnectReason) -> None:
        if session in self._sessions.values():
            now, self._lost = asyncio.get_running_loop().time(), disconnect.reason
            self._last_words = session.connection.transport.stderr_tail()
            if not session.answered and now - session.began < _SHORT_LIFE:
                self._breaker.record_failure(now, disconnect.reason)
            self._drop(session)
            if self._subscribed:
                self._background.start(self._restart())

    async def _restart(self) -> None:
        """Start a server with subscriptions again, as often as it takes."""
        while self._subscribed and not self._sessions:
            if await self._wait_closed(self._breaker.retry_after(asyncio.get_running_loop().time())):
                return
            with suppress(ToolError):
                await self.session(CallContext())

    async def _wait_closed(self, seconds: float = 0.0) -> bool:
        """Wait a moment for `close`; whether it came."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, _RESTART_SECONDS)):
                await self._closed.wait()
        return self._closed.is_set()

    def _drop(self, session: UpstreamSession) -> None:
        """Use a session no more, and close it when the calls of others on it have ended."""
        self._sessions = {key: other for key, other in self._sessions.items() if other is not session}
        self._background.start(self._close_when_free(session))

    async def _close_when_free(self, session: UpstreamSession) -> None:
        while session.is_usable and not session.is_free and not await self._wait_closed():
            pass
        await session.close()

    def _schedule_shutdown(self, key: str, session: UpstreamSession) -> None:
        """Close a session after its idle time; checked again as late as that can be."""
        if not self.config.idle or self._sessions.get(key) is not session:
            return
        loop = asyncio.get_running_loop()
        due = session.last_used + self.config.idle
        if loop.time() >= due and session.is_free and not self._subscribed:
            self._drop(session)
        else:
            loop.call_at(max(due, loop.time() + self.config.idle / 4), self._schedule_shutdown, key, session)


class _StartFailed(Exception):
    """A session could not be started."""

    def __init__(self, error: TransportError, session: UpstreamSession) -> None:
        self.disconnect = error.disconnect
        self.stderr_tail = session.connection.transport.stderr_tail()
        self.ended = session.connection.disconnect is not None
        """Whether the server was there and ended."""
        self.is_incompatible = isinstance(error, UnsupportedProtocol)
        super().__init__(f"{error.disconnect.reason}{failures.quote_stderr(self.stderr_tail)}")


def _client_info(config: ServerConfig, context: CallContext) -> ClientInfo:
    """Our name and capabilities. A connection that callers share offers no roots of one of them.

    `elicitation.url` is offered only where the client supports it: a server that may choose would not send a form
    otherwise.
    """
    from trysquare import __version__

    left_out = {"roots"} if config.sharing != "caller" else set[str]()
    if not context.offers("elicitation.url"):
        left_out.add("elicitation.url")
    names = [name for name in CAPABILITIES if name not in left_out]
    return ClientInfo(name="trysquare", version=__version__, capabilities=capability_object(names))
