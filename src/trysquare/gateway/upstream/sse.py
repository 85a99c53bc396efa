"""The channel to a server over HTTP with server-sent events, as it was before streamable HTTP."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final
from urllib.parse import urljoin, urlsplit

import httpx2

from trysquare.gateway.configuration.secrets import Secrets
from trysquare.gateway.server import ServerConfig
from trysquare.gateway.upstream.channel import Listener, Loss, Outgoing, RequestId, Unreachable
from trysquare.gateway.upstream.errands import Errands
from trysquare.gateway.upstream.events import Event, EventReader, TooLong
from trysquare.gateway.upstream.oauth import LoginLost
from trysquare.gateway.upstream.web import Web, kind_of

_GET_HEADERS: Final = {"accept": "text/event-stream", "cache-control": "no-store"}
_POST_HEADERS: Final = {"content-type": "application/json"}
_BROKEN = (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, LoginLost)


class SseChannel:
    """One stream of everything that the server says, and a POST for everything that we say."""

    def __init__(self, config: ServerConfig, secrets: Secrets | None = None) -> None:
        self._config = config
        self._web = Web(config, secrets)
        self._listener: Listener | None = None
        self._endpoint: asyncio.Future[str] | None = None
        self._errands = Errands(self._crash)
        self._ready: asyncio.Task[None] | None = None
        self._version: str | None = None

    async def open(self, listener: Listener) -> None:
        await self._web.open()
        self._listener = listener
        self._endpoint = asyncio.get_running_loop().create_future()
        self._errands.begin(self._listen(self._endpoint))
        try:
            async with asyncio.timeout(self._config.start_timeout):
                await asyncio.shield(self._endpoint)
        except TimeoutError:
            seconds = f"{self._config.start_timeout:g}"
            reason = f"The server did not say within {seconds} seconds where to send messages."
            raise Unreachable(Loss(reason=reason, was_sent=False)) from None

    def send(self, outgoing: Outgoing) -> None:
        if self._listener is None:
            raise Unreachable(Loss(reason="The connection to the server has ended.", was_sent=False))
        task = self._errands.begin(self._post(outgoing))
        if outgoing.method == "notifications/initialized":
            self._ready = task

    def settle(self, version: str) -> None:
        self._version = version

    def abandon(self, request_id: RequestId) -> None:
        return None

    def last_words(self) -> str:
        return ""

    async def close(self) -> None:
        self._listener = None
        await self._errands.end()
        await self._web.close()

    def _crash(self, reason: str) -> None:
        assert self._endpoint is not None
        self._end(self._endpoint, Loss(reason=reason))

    async def _listen(self, endpoint: asyncio.Future[str]) -> None:
        try:
            async with self._web.stream("GET", self._config.url, headers=_GET_HEADERS) as response:
                loss = await self._heard(endpoint, response)
        except _BROKEN as error:
            loss = self._web.failure(error)
        except TooLong:
            loss = Loss(reason=f"The server sent a message of more than {self._config.max_line} bytes.")
        self._end(endpoint, loss)

    async def _heard(self, endpoint: asyncio.Future[str], response: httpx2.Response) -> Loss:
        if response.status_code >= 300:
            return self._web.refusal(response)
        if kind_of(response) != "text/event-stream":
            return Loss(reason="The server answered with something else than a stream of events.", was_sent=False)
        reader = EventReader(self._config.max_line)
        async for chunk in response.aiter_bytes():
            for event in reader.feed(chunk):
                self._take(endpoint, event)
        return Loss(reason="The server ended its stream.")

    def _take(self, endpoint: asyncio.Future[str], event: Event) -> None:
        if event.name == "endpoint" and not endpoint.done():
            address = urljoin(self._config.url, event.data.decode("utf-8", "replace"))
            if _origin(address) == _origin(self._config.url):
                endpoint.set_result(address)
            else:
                reason = "The server wants its messages sent to another host, which is not done with its headers."
                endpoint.set_exception(Unreachable(Loss(reason=reason, was_sent=False)))
        elif event.name == "message" and event.data and self._listener is not None:
            self._listener.hear(event.data)

    def _end(self, endpoint: asyncio.Future[str], loss: Loss) -> None:
        listener, self._listener = self._listener, None
        if not endpoint.done():
            endpoint.set_exception(Unreachable(replace(loss, was_sent=False)))
        elif listener is not None:
            listener.lose(loss)

    async def _post(self, outgoing: Outgoing) -> None:
        if self._ready is not None and outgoing.method != "notifications/initialized":
            await asyncio.wait({self._ready})
        loss = await self._posted(outgoing)
        if loss is not None and outgoing.request_id is not None and self._listener is not None:
            self._listener.lose(loss, outgoing.request_id)

    async def _posted(self, outgoing: Outgoing) -> Loss | None:
        """Send a message. Returns why it did not arrive, if it did not; the answer comes over the stream."""
        assert self._endpoint is not None
        headers = {**_POST_HEADERS, **({} if self._version is None else {"mcp-protocol-version": self._version})}
        try:
            async with self._web.stream(
                "POST", self._endpoint.result(), headers=headers, content=outgoing.body
            ) as response:
                return self._web.refusal(response) if response.status_code >= 300 else None
        except _BROKEN as error:
            return self._web.failure(error)


def _origin(address: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(address)
        return parts.scheme, parts.hostname, parts.port
    except ValueError:
        return "", None, None
