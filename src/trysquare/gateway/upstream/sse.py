"""HTTP with SSE transport, the predecessor of streamable HTTP."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final
from urllib.parse import urljoin, urlsplit

import httpx2

from trysquare.core.concurrency import BackgroundTasks
from trysquare.gateway.models import ServerConfig
from trysquare.gateway.upstream.http_client import BROKEN, OriginClient
from trysquare.gateway.upstream.transport import (
    DisconnectReason,
    OutgoingMessage,
    Transport,
    TransportError,
    TransportListener,
    message_too_long,
)
from trysquare.net.http import content_type
from trysquare.net.sse import Event, EventReader, EventTooLong
from trysquare.processes.supervisor import ProcessSupervisor
from trysquare.protocol.envelope import VERSION_HEADER
from trysquare.store import Secrets

_GET_HEADERS: Final = {"accept": "text/event-stream", "cache-control": "no-store"}
_POST_HEADERS: Final = {"content-type": "application/json"}


def create_transport(config: ServerConfig, supervisor: ProcessSupervisor) -> SseTransport:
    """The transport of a server; nothing is opened yet."""
    return SseTransport(config)


class SseTransport(Transport):
    """HTTP with SSE (2024-11-05): one event stream from the server, and a POST for each message to it."""

    def __init__(self, config: ServerConfig, secrets: Secrets | None = None) -> None:
        self._config = config
        self._client = OriginClient(config, secrets)
        self._listener: TransportListener | None = None
        self._endpoint: asyncio.Future[str] | None = None
        self._background = BackgroundTasks(self._crash)
        self._ready: asyncio.Task[None] | None = None
        self._version: str | None = None

    async def open(self, listener: TransportListener) -> None:
        await self._client.open()
        self._listener = listener
        self._endpoint = asyncio.get_running_loop().create_future()
        self._background.start(self._listen(self._endpoint))
        try:
            async with asyncio.timeout(self._config.start_timeout):
                await asyncio.shield(self._endpoint)
        except TimeoutError:
            reason = f"Timeout: no `endpoint` event within {self._config.start_timeout:g} seconds."
            raise TransportError(DisconnectReason(reason=reason, was_sent=False)) from None

    def send(self, outgoing: OutgoingMessage) -> None:
        if self._listener is None:
            raise TransportError(DisconnectReason(reason="The connection was closed.", was_sent=False))
        task = self._background.start(self._post(outgoing))
        if outgoing.method == "notifications/initialized":
            self._ready = task

    def set_version(self, version: str) -> None:
        self._version = version

    async def close(self) -> None:
        self._listener = None
        await self._background.close()
        await self._client.close()

    def _crash(self, error: BaseException) -> None:
        assert self._endpoint is not None
        self._end(self._endpoint, DisconnectReason(reason=f"The connection failed ({type(error).__name__})."))

    async def _listen(self, endpoint: asyncio.Future[str]) -> None:
        try:
            async with self._client.stream("GET", self._config.url, headers=_GET_HEADERS) as response:
                disconnect = await self._read(endpoint, response)
        except BROKEN as error:
            disconnect = self._client.failure(error)
        except EventTooLong:
            disconnect = message_too_long(self._config.max_line)
        self._end(endpoint, disconnect)

    async def _read(self, endpoint: asyncio.Future[str], response: httpx2.Response) -> DisconnectReason:
        if response.status_code >= 300:
            return self._client.refusal(response)
        if content_type(response) != "text/event-stream":
            return DisconnectReason(reason="The server did not respond with an event stream.", was_sent=False)
        reader = EventReader(self._config.max_line)
        async for chunk in response.aiter_bytes():
            for event in reader.feed(chunk):
                self._receive(endpoint, event)
        return DisconnectReason(reason="The server closed the stream.")

    def _receive(self, endpoint: asyncio.Future[str], event: Event) -> None:
        if event.name == "endpoint" and not endpoint.done():
            address = urljoin(self._config.url, event.data.decode("utf-8", "replace"))
            if _origin(address) == _origin(self._config.url):
                endpoint.set_result(address)
            else:
                reason = "The `endpoint` is on another host, which must not get this server's headers."
                endpoint.set_exception(TransportError(DisconnectReason(reason=reason, was_sent=False)))
        elif event.name == "message" and event.data and self._listener is not None:
            self._listener.receive(event.data)

    def _end(self, endpoint: asyncio.Future[str], disconnect: DisconnectReason) -> None:
        listener, self._listener = self._listener, None
        if not endpoint.done():
            endpoint.set_exception(TransportError(replace(disconnect, was_sent=False)))
        elif listener is not None:
            listener.on_disconnect(disconnect)

    async def _post(self, outgoing: OutgoingMessage) -> None:
        if self._ready is not None and outgoing.method != "notifications/initialized":
            await asyncio.wait({self._ready})
        disconnect = await self._send(outgoing)
        if disconnect is not None and outgoing.request_id is not None and self._listener is not None:
            self._listener.on_disconnect(disconnect, outgoing.request_id)

    async def _send(self, outgoing: OutgoingMessage) -> DisconnectReason | None:
        """Send a message. Returns why it did not arrive, if it did not."""
        assert self._endpoint is not None
        headers = {**_POST_HEADERS, **({} if self._version is None else {VERSION_HEADER: self._version})}
        try:
            async with self._client.stream(
                "POST", self._endpoint.result(), headers=headers, content=outgoing.body
            ) as response:
                return self._client.refusal(response) if response.status_code >= 300 else None
        except BROKEN as error:
            return self._client.failure(error)


def _origin(address: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(address)
        return parts.scheme, parts.hostname, parts.port
    except ValueError:
        return "", None, None
