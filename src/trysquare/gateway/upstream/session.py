"""Session: one connection to a server that has said who it is and is ready for calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from trysquare.core.alarms import Alarms
from trysquare.core.client_requests import Capability
from trysquare.core.context import CallContext
from trysquare.core.types import JsonObject
from trysquare.gateway.server import ServerConfig
from trysquare.gateway.upstream import frames
from trysquare.gateway.upstream.channel import Channel, Loss, RequestId, Unreachable
from trysquare.gateway.upstream.connection import Connection, Exchange, Lost, Refused, ServerRequest
from trysquare.gateway.upstream.handshake import LOG_LEVEL, Greeting, Introduction, shake_hands, stamp

CAPABILITIES: Final[tuple[Capability, ...]] = ("elicitation", "elicitation.url", "sampling", "roots")
_LISTS: Final = ("tools", "prompts", "resources")
_LIST_CHANGES: Final = {f"notifications/{kind}/list_changed": kind for kind in _LISTS}
_MAX_EARLY = 16
_LONGEST_LOG = 64 * 1024
_ALIVE_SECONDS = 5.0
"""How long a server that let a call run out of time has to show that it is alive."""


class UnderWay(Protocol):
    """A call as its session sees it."""

    @property
    def exchange(self) -> Exchange:
        """The request under way."""
        ...

    @property
    def context(self) -> CallContext | None:
        """Whose call it is."""
        ...

    @property
    def may_ask(self) -> bool:
        """Whether a question of the server can belong to it."""
        ...

    @property
    def notes(self) -> list[str]:
        """What its caller should know of how the answer came about."""
        ...

    def ask(self, request: ServerRequest) -> None:
        """Have the caller asked."""
        ...


class Session:
    """One connection, its greeting and the calls that are under way on it."""

    def __init__(
        self,
        config: ServerConfig,
        channel: Channel,
        own: Introduction,
        *,
        on_change: Callable[[str], None],
        on_lost: Callable[[Session, Loss], None],
    ) -> None:
        self.config = config
        self.connection = Connection(channel, self, server=config.name)
        self.greeting = Greeting(version="")
        self.last_used = self.began = asyncio.get_running_loop().time()
        self.answered = 0
        """Calls that have come to an end."""
        self.alarms = Alarms()
        """When calls run out of time."""
        self._own = own
        self._on_change = on_change
        self._on_lost = on_lost
        self._calls: dict[RequestId, UnderWay] = {}
        self._early: list[ServerRequest] = []
        """What the server asked its only caller before there was a call."""
        self._stamps: dict[tuple[bool | str | None, ...], bytes] = {}
        self._tells_logs = False
        self._listening: Exchange | None = None
        self._subscribed: set[str] = set()
        self._suspicion: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def is_usable(self) -> bool:
        """Whether a new call may go over it."""
        return self.connection.loss is None and not self._closed

    @property
    def is_free(self) -> bool:
        """Whether no request is under way, but for the one that is never answered."""
        is_listening = self._listening is not None and self.connection.awaits(self._listening.id)
        return self.connection.under_way <= is_listening

    async def start(self, version: str | None) -> None:
        """Open the channel and shake hands. Raises `Unreachable`."""
        await self.connection.open()
        self.greeting = await shake_hands(
            self.connection, self._own, version=version, seconds=self.config.start_timeout
        )
        self.last_used = self.began = asyncio.get_running_loop().time()
        self._tells_logs = self.greeting.offers("logging")
        if self.greeting.is_modern:
            self._listen()

    async def close(self) -> None:
        """End the connection; calls that are still under way learn that they get no answer."""
        if self._closed:
            return
        self._closed = True
        if self._suspicion is not None:
            self._suspicion.cancel()
        self.connection.lose(Loss(reason="The gateway has ended its connection."))
        await self.connection.channel.close()

    def begin(self, call: UnderWay, method: str, params: bytes, about: str | None) -> Exchange:
        """Send a call's request. Raises `Unreachable` where nothing was sent."""
        exchange = self.connection.begin(method, params, name=about)
        self._calls[exchange.id] = call
        if call.may_ask:
            exchange.questions.extend(self._early)
            self._early.clear()
        return exchange

    def end(self, call: UnderWay) -> None:
        """Wait no more for a call."""
        self.last_used = asyncio.get_running_loop().time()
        self.answered += 1
        self._calls.pop(call.exchange.id, None)
        self.connection.end(call.exchange)

    def suspect(self, call: UnderWay) -> None:
        """Take back a call that ran out of time, and have the server show that it is alive."""
        self.end(call)
        if self.config.transport == "stdio" and self._suspicion is None:
            self._suspicion = asyncio.ensure_future(self._prove_alive())

    def stamp_for(self, context: CallContext) -> bytes:
        """What a request has to say of its sender in `_meta`: nothing in the earlier era."""
        if not self.greeting.is_modern:
            return b""
        level = context.lowest_log_level() if self._tells_logs else None
        offered = (*(context.offers(capability) for capability in CAPABILITIES), level)
        found = self._stamps.get(offered)
        if found is None:
            names = [name for name, is_offered in zip(CAPABILITIES, offered, strict=False) if is_offered]
            said = stamp(self._own, capability_object(names))
            told = said if level is None else {**said, LOG_LEVEL: level}
            found = self._stamps[offered] = frames.encode(told)[1:-1]
        return found

    async def subscribe(self, uri: str) -> None:
        """Have the server tell when a resource changes."""
        self._subscribed.add(uri)
        await self._subscription_changed("resources/subscribe", uri)

    async def unsubscribe(self, uri: str) -> None:
        """Have it told no more."""
        self._subscribed.discard(uri)
        await self._subscription_changed("resources/unsubscribe", uri)

    async def _subscription_changed(self, method: str, uri: str) -> None:
        self.last_used = asyncio.get_running_loop().time()
        if self.greeting.is_modern:
            self._listen()
        else:
            await self.connection.request(method, {"uri": uri}, seconds=self.config.timeout)

    def notice(self, method: str, params: msgspec.Raw, about: RequestId | None = None) -> None:
        if method == "notifications/message":
            self._take_log(params, about)
        elif method in _LIST_CHANGES:
            self._on_change(_LIST_CHANGES[method])
        elif method == "notifications/resources/updated":
            uri = frames.decode_object(params).get("uri")
            if isinstance(uri, str):
                self._on_change(uri)

    def asked(self, request: ServerRequest, about: RequestId | None) -> None:
        possible = [self._calls[about]] if about in self._calls else self._calls.values()
        calls = [call for call in possible if call.may_ask]
        subjects = {call.context.principal.subject for call in calls if call.context is not None}
        if len(subjects) == 1:
            calls[-1].ask(request)
            return
        if not calls and self.config.sharing == "caller" and len(self._early) < _MAX_EARLY:
            self._early.append(request)
            return
        why = "No call is under way that the question could belong to." if not calls else _AMBIGUOUS
        for call in calls:
            call.notes.append(f"A question of the server was declined. {why}")
        self.connection.refuse(request, frames.INTERNAL_ERROR, why)

    def _take_log(self, params: msgspec.Raw, about: RequestId | None) -> None:
        """Give a log message to the call that it belongs to; one that could be of several callers is nobody's."""
        possible = [self._calls[about]] if about in self._calls else list(self._calls.values())
        subjects = {call.context.principal.subject for call in possible if call.context is not None}
        if len(subjects) != 1:
            return
        is_long = len(params) > _LONGEST_LOG
        told: JsonObject = {"level": "warning", "data": f"A log message of {len(params)} bytes was left out."}
        possible[-1].exchange.logs.append(told if is_long else frames.decode_object(params))
        possible[-1].exchange.wake()

    def lost(self, loss: Loss) -> None:
        self._on_lost(self, loss)

    def _listen(self) -> None:
        """Ask a server of the modern era to tell what changes; an earlier request for it is withdrawn."""
        wanted: JsonObject = {
            f"{kind}ListChanged": True for kind in _LISTS if self.greeting.offers(kind, "listChanged")
        }
        if self._subscribed:
            wanted["resourceSubscriptions"] = sorted(self._subscribed)
        before, self._listening = self._listening, None
        if wanted:
            params = {"notifications": wanted, "_meta": stamp(self._own, self._own.capabilities)}
            self._listening = self.connection.begin("subscriptions/listen", frames.encode(params))
        if before is not None:
            self.connection.end(before)

    async def _prove_alive(self) -> None:
        """A server that says nothing at all any more is given up, so that the next call gets a new one."""
        heard = self.connection.heard
        method = "server/discover" if self.greeting.is_modern else "ping"
        params = {"_meta": stamp(self._own, self._own.capabilities)} if self.greeting.is_modern else {}
        try:
            await self.connection.request(method, params, seconds=_ALIVE_SECONDS)
        except (Refused, Lost, Unreachable):
            return
        except TimeoutError:
            if self.connection.heard == heard:
                self.connection.lose(Loss(reason="The server has stopped answering."))
        finally:
            self._suspicion = None


def capability_object(names: Sequence[str]) -> JsonObject:
    """What we can do for a server, as the protocol has it."""
    found: JsonObject = {name: {} for name in names if "." not in name}
    if "elicitation.url" in names:
        found["elicitation"] = {"form": {}, "url": {}} if "elicitation" in names else {"url": {}}
    return found


_AMBIGUOUS = (
    "Several callers have calls under way on this connection, and whose question it is cannot be known. "
    'With `"x-trysquare": {"sharing": "caller"}` in its entry each caller has a connection of its own.'
)
