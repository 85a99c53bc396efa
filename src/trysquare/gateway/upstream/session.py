"""Session with an upstream server: protocol negotiation, pending calls, subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, cast

import msgspec

from trysquare.core.concurrency import BackgroundTasks, TimeoutScheduler
from trysquare.core.context import CallContext, Capability
from trysquare.core.json import JsonObject, as_object
from trysquare.core.metadata import APP_MIME_TYPE, UI_EXTENSION
from trysquare.gateway.models import ServerConfig
from trysquare.gateway.upstream.codec import InvalidFrame, decode_object
from trysquare.gateway.upstream.connection import Connection, Disconnected, PendingRequest, ServerRequest
from trysquare.gateway.upstream.transport import DisconnectReason, RequestId, Transport, TransportError
from trysquare.protocol.messages import INTERNAL_ERROR, METHOD_NOT_FOUND, UNSUPPORTED_VERSION, RpcError, encode
from trysquare.protocol.versions import (
    CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    HANDSHAKE_VERSIONS,
    LATEST_HANDSHAKE,
    LATEST_STATELESS,
    LOG_LEVEL_KEY,
    SERVER_INFO_KEY,
    TASKS_EXTENSION,
    VERSION_KEY,
    VERSIONS,
    has_extension,
    is_stateless,
)

_PROBE_SECONDS = 2.0
"""Seconds to wait for the probe alone; then a server that ignores unknown methods gets `initialize` too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientInfo:
    """Our name, version and capabilities, as sent to a server."""

    name: str
    version: str
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def implementation(self) -> JsonObject:
        return {"name": self.name, "version": self.version}


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerInfo:
    """A server's name, versions, instructions and capabilities."""

    version: str
    """The negotiated protocol version."""
    is_stateless: bool = False
    """Whether every request carries the client info, and questions come as results."""
    name: str = ""
    server_version: str = ""
    instructions: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def offers(self, capability: str, option: str | None = None) -> bool:
        found = self.capabilities.get(capability)
        if option is None or not isinstance(found, dict):
            return isinstance(found, dict)
        return bool(cast(JsonObject, found).get(option))


class UnsupportedProtocol(TransportError):
    """The server responded, but with no protocol version that we support."""


async def negotiate(connection: Connection, client: ClientInfo, *, version: str | None, seconds: float) -> ServerInfo:
    """Negotiate a protocol version; a remembered one needs no probe.

    Raises `TransportError` if the server does not respond in time, or not as an MCP server.
    """
    try:
        async with asyncio.timeout(seconds):
            server_info = await _negotiate(connection, client, version)
    except TimeoutError:
        raise TransportError(_failed(f"Timeout: no response to the handshake within {seconds:g} seconds.")) from None
    except Disconnected as error:
        raise TransportError(replace(error.disconnect, was_sent=False)) from None
    except RpcError as error:
        raise UnsupportedProtocol(_failed(f"The server rejected the handshake: {error.message}")) from None
    except InvalidFrame as error:
        raise UnsupportedProtocol(_failed(f"Invalid response to the handshake: {error}")) from None
    connection.transport.set_version(server_info.version)
    if not server_info.is_stateless:
        connection.notify("notifications/initialized", {})
    return server_info


def client_meta(client: ClientInfo, capabilities: Mapping[str, Any] | None = None) -> JsonObject:
    """The client info in the `_meta` of every request to a stateless server."""
    return {
        VERSION_KEY: LATEST_STATELESS,
        CLIENT_INFO_KEY: client.implementation,
        CAPABILITIES_KEY: dict(client.capabilities if capabilities is None else capabilities),
    }


async def _negotiate(connection: Connection, client: ClientInfo, version: str | None) -> ServerInfo:
    if version is not None and not is_stateless(version):
        return _initialized(await _begin_initialize(connection, client).wait_result())
    probe = connection.begin("server/discover", encode({"_meta": client_meta(client)}))
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            await probe.wait()
    except TimeoutError:
        return await _first_response(connection, client, probe)
    return _discovered(probe) or _initialized(await _begin_initialize(connection, client).wait_result())


def _discovered(probe: PendingRequest) -> ServerInfo | None:
    """The server info in the response to the probe, or None for a session server."""
    try:
        answer = decode_object(probe.result())
    except RpcError as error:
        _require_known_version(error)
        return None
    except Disconnected as error:
        status = error.disconnect.status
        if status is not None and 400 <= status < 500 and status not in (401, 403, 429):
            return None
        raise
    supported = answer.get("supportedVersions")
    if not isinstance(supported, list) or LATEST_STATELESS not in supported:
        return None
    info = as_object(as_object(answer.get("_meta")).get(SERVER_INFO_KEY))
    return _server_info(LATEST_STATELESS, info, answer)


def _require_known_version(refused: RpcError) -> None:
    """Raise for a server that names its versions, none of which we support."""
    supported = as_object(refused.data).get("supported")
    if refused.code == UNSUPPORTED_VERSION and isinstance(supported, list):
        names = [str(name) for name in cast(list[Any], supported)]
        if not VERSIONS.keys() & set(names):
            raise refused


async def _first_response(connection: Connection, client: ClientInfo, probe: PendingRequest) -> ServerInfo:
    """A slow server responds to the probe first; one that ignores the probe responds to `initialize`."""
    handshake = _begin_initialize(connection, client)
    waits = {asyncio.ensure_future(pending.wait()) for pending in (probe, handshake)}
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    server_info = None if probe.outcome is None else _discovered(probe)
    try:
        return server_info or _initialized(await handshake.wait_result())
    except RpcError as error:
        if probe.outcome is not None or error.code not in (UNSUPPORTED_VERSION, METHOD_NOT_FOUND):
            raise
    # A stateless server rejects a handshake at once, perhaps before it has answered the probe.
    await probe.wait()
    return _discovered(probe) or _initialized(await handshake.wait_result())


def _begin_initialize(connection: Connection, client: ClientInfo) -> PendingRequest:
    params: JsonObject = {
        "protocolVersion": LATEST_HANDSHAKE,
        "capabilities": dict(client.capabilities),
        "clientInfo": client.implementation,
    }
    return connection.begin("initialize", encode(params))


def _initialized(raw: msgspec.Raw) -> ServerInfo:
    answer = decode_object(raw)
    version = answer.get("protocolVersion")
    if version not in HANDSHAKE_VERSIONS:
        raise InvalidFrame(f"unsupported protocol version {version!r}; supported: {', '.join(VERSIONS)}")
    return _server_info(version, as_object(answer.get("serverInfo")), answer)


def _server_info(version: str, info: JsonObject, answer: JsonObject) -> ServerInfo:
    return ServerInfo(
        version=version,
        is_stateless=is_stateless(version),
        name=str(info.get("name") or ""),
        server_version=str(info.get("version") or ""),
        instructions=str(answer.get("instructions") or ""),
        capabilities=as_object(answer.get("capabilities")),
    )


def _failed(reason: str) -> DisconnectReason:
    return DisconnectReason(reason=reason, was_sent=False)


CAPABILITIES: Final[tuple[Capability, ...]] = ("elicitation", "elicitation.url", "sampling", "roots")
_LISTS: Final = ("tools", "prompts", "resources")
_LIST_CHANGES: Final = {f"notifications/{kind}/list_changed": kind for kind in _LISTS}
_MAX_EARLY_REQUESTS = 16
_LONGEST_LOG = 64 * 1024
_ALIVE_SECONDS = 5.0
"""Seconds for a server to respond to a ping after a timeout."""


class ActiveCall(Protocol):
    """The part of a call that its session uses."""

    @property
    def pending(self) -> PendingRequest: ...

    @property
    def context(self) -> CallContext | None: ...

    @property
    def may_ask(self) -> bool: ...

    @property
    def notes(self) -> list[str]: ...

    def ask(self, request: ServerRequest) -> None:
        """Relay a request of the server to the caller."""


class UpstreamSession:
    """One negotiated connection and its pending calls."""

    def __init__(
        self,
        config: ServerConfig,
        transport: Transport,
        client: ClientInfo,
        *,
        on_change: Callable[[str], None],
        on_lost: Callable[[UpstreamSession, DisconnectReason], None],
    ) -> None:
        self.config = config
        keeps_progress = config.keeps_progress
        self.connection = Connection(transport, self, server=config.name, keeps_progress=keeps_progress)
        self.server_info = ServerInfo(version="")
        self.last_used = self.began = asyncio.get_running_loop().time()
        self.answered = 0
        """Number of ended calls."""
        self.timeouts = TimeoutScheduler()
        self._client = client
        self._on_change = on_change
        self._on_lost = on_lost
        self._calls: dict[RequestId, ActiveCall] = {}
        self._early: list[ServerRequest] = []
        """Requests that the server sent its only caller before the first call."""
        self._client_metas: dict[tuple[bool | str | None, ...], bytes] = {}
        self._sends_logs = False
        self._listening: PendingRequest | None = None
        self._subscribed: set[str] = set()
        self._background = BackgroundTasks()
        self._is_pinging = False
        self._closed = False

    @property
    def is_usable(self) -> bool:
        """Whether a new call may be sent."""
        return self.connection.disconnect is None and not self._closed

    @property
    def offers_tasks(self) -> bool:
        """Whether the server may answer a call with a task."""
        return self.server_info.is_stateless and has_extension(dict(self.server_info.capabilities), TASKS_EXTENSION)

    @property
    def is_free(self) -> bool:
        """Whether no request is pending except `subscriptions/listen`."""
        is_listening = self._listening is not None and self.connection.is_pending(self._listening.id)
        return self.connection.under_way <= is_listening

    async def start(self, version: str | None) -> None:
        """Open the transport and negotiate. Raises `TransportError`."""
        await self.connection.open()
        if self.config.protocol != "auto":
            version = self.config.protocol
        self.server_info = await negotiate(
            self.connection, self._client, version=version, seconds=self.config.start_timeout
        )
        self.last_used = self.began = asyncio.get_running_loop().time()
        self._sends_logs = self.server_info.offers("logging")
        if self.server_info.is_stateless:
            self._listen()

    async def close(self) -> None:
        """Close the connection; pending calls fail."""
        if self._closed:
            return
        self._closed = True
        self._background.cancel()
        self.connection.on_disconnect(DisconnectReason(reason="The gateway closed the connection."))
        await self.connection.transport.close()

    def begin(self, call: ActiveCall, method: str, params: bytes, about: str | None) -> PendingRequest:
        """Send a call's request. Raises `TransportError` where nothing was sent."""
        pending = self.connection.begin(method, params, name=about)
        self._calls[pending.id] = call
        if call.may_ask:
            pending.questions.extend(self._early)
            self._early.clear()
        return pending

    def end(self, call: ActiveCall) -> None:
        """Stop waiting for a call."""
        self.last_used = asyncio.get_running_loop().time()
        self.answered += 1
        self._calls.pop(call.pending.id, None)
        self.connection.end(call.pending)

    def on_timeout(self, call: ActiveCall) -> None:
        """Cancel a call that timed out, and ping a child process, which may hang."""
        self.end(call)
        if self.connection.transport.owns_process and not self._is_pinging:
            self._is_pinging = True
            self._background.start(self._ping())

    def client_meta_for(self, context: CallContext) -> bytes:
        """The `_meta` members with the client info of a call; empty for a session server."""
        if not self.server_info.is_stateless:
            return b""
        level = context.lowest_log_level() if self._sends_logs else None
        offered = (self.offers_tasks, *(context.offers(capability) for capability in CAPABILITIES), level)
        found = self._client_metas.get(offered)
        if found is None:
            names = [name for name, is_offered in zip(CAPABILITIES, offered[1:], strict=False) if is_offered]
            meta = client_meta(self._client, capability_object(names, tasks=self.offers_tasks))
            found = encode(meta if level is None else {**meta, LOG_LEVEL_KEY: level})[1:-1]
            self._client_metas[offered] = found
        return found

    async def ask_of_task(self, method: str, params: JsonObject, context: CallContext) -> msgspec.Raw:
        """Send a request about a task. Raises `RpcError`, `Disconnected`, `TransportError` or `TimeoutError`."""
        self.last_used = asyncio.get_running_loop().time()
        body = b'%s,"_meta":{%s}}' % (encode(params)[:-1], self.client_meta_for(context))
        pending = self.connection.begin(method, body, name=str(params["taskId"]))
        try:
            async with asyncio.timeout(self.config.timeout):
                return await pending.wait_result()
        finally:
            self.connection.end(pending)

    async def subscribe(self, uri: str) -> None:
        """Subscribe to a resource."""
        self._subscribed.add(uri)
        await self._change_subscription("resources/subscribe", uri)

    async def unsubscribe(self, uri: str) -> None:
        """Unsubscribe from a resource."""
        self._subscribed.discard(uri)
        await self._change_subscription("resources/unsubscribe", uri)

    async def _change_subscription(self, method: str, uri: str) -> None:
        self.last_used = asyncio.get_running_loop().time()
        if self.server_info.is_stateless:
            self._listen()
        else:
            await self.connection.request(method, {"uri": uri}, seconds=self.config.timeout)

    def on_notification(self, method: str, params: msgspec.Raw, about: RequestId | None = None) -> None:
        if method == "notifications/message":
            self._on_log(params, about)
        elif method in _LIST_CHANGES:
            self._on_change(_LIST_CHANGES[method])
        elif method == "notifications/resources/updated":
            uri = decode_object(params).get("uri")
            if isinstance(uri, str):
                self._on_change(uri)

    def on_request(self, request: ServerRequest, about: RequestId | None) -> None:
        possible = [self._calls[about]] if about in self._calls else self._calls.values()
        calls = [call for call in possible if call.may_ask]
        subjects = {call.context.principal.subject for call in calls if call.context is not None}
        if len(subjects) == 1:
            calls[-1].ask(request)
            return
        if not calls and self.config.sharing == "caller" and len(self._early) < _MAX_EARLY_REQUESTS:
            self._early.append(request)
            return
        why = "No pending call to which the request could belong." if not calls else _AMBIGUOUS
        for call in calls:
            call.notes.append(f"A request of the server was declined. {why}")
        self.connection.refuse(request, INTERNAL_ERROR, why)

    def _on_log(self, params: msgspec.Raw, about: RequestId | None) -> None:
        """Give a log message to its call; one that could be of several callers is dropped."""
        possible = [self._calls[about]] if about in self._calls else list(self._calls.values())
        subjects = {call.context.principal.subject for call in possible if call.context is not None}
        if len(subjects) != 1:
            return
        is_long = len(params) > _LONGEST_LOG
        omitted: JsonObject = {"level": "warning", "data": f"A log message of {len(params)} bytes was omitted."}
        possible[-1].pending.logs.append(omitted if is_long else decode_object(params))
        possible[-1].pending.wake()

    def on_disconnect(self, disconnect: DisconnectReason) -> None:
        self._on_lost(self, disconnect)

    def _listen(self) -> None:
        """Send `subscriptions/listen` to a stateless server, in place of an earlier one."""
        wanted: JsonObject = {
            f"{kind}ListChanged": True for kind in _LISTS if self.server_info.offers(kind, "listChanged")
        }
        if self._subscribed:
            wanted["resourceSubscriptions"] = sorted(self._subscribed)
        before, self._listening = self._listening, None
        if wanted:
            params = {"notifications": wanted, "_meta": client_meta(self._client)}
            self._listening = self.connection.begin("subscriptions/listen", encode(params))
        if before is not None:
            self.connection.end(before)

    async def _ping(self) -> None:
        """Disconnect a server that sends nothing at all any more, so that the next call starts a new one."""
        received = self.connection.received
        method = "server/discover" if self.server_info.is_stateless else "ping"
        params = {"_meta": client_meta(self._client)} if self.server_info.is_stateless else {}
        try:
            await self.connection.request(method, params, seconds=_ALIVE_SECONDS)
        except (RpcError, Disconnected, TransportError):
            return
        except TimeoutError:
            if self.connection.received == received:
                self.connection.on_disconnect(DisconnectReason(reason="The server stopped responding."))
        finally:
            self._is_pinging = False


def capability_object(names: Sequence[str], *, tasks: bool = False) -> JsonObject:
    """Our capabilities. We read what the pages of a server's tools are, for clients that show them."""
    extensions: JsonObject = {UI_EXTENSION: {"mimeTypes": [APP_MIME_TYPE]}}
    found: JsonObject = {name: {} for name in names if "." not in name}
    found["extensions"] = {**extensions, TASKS_EXTENSION: {}} if tasks else extensions
    if "elicitation.url" in names:
        found["elicitation"] = {"form": {}, "url": {}} if "elicitation" in names else {"url": {}}
    return found


_AMBIGUOUS = (
    "Several callers have pending calls on this connection, so the request cannot be assigned to one. "
    'Set `"x-trysquare": {"sharing": "caller"}` in its entry to give each caller its own connection.'
)
