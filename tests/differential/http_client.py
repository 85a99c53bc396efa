"""A client that writes its own HTTP requests, and reads responses and event streams byte by byte."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

from tests.differential.material import Json
from tests.differential.model import (
    INITIALIZED,
    LEGACY,
    MODERN,
    NAMED_BY,
    Era,
    Exchange,
    Outcome,
    following_params,
    opening,
    response_to,
    sent_id,
    split_news,
)

SECONDS = 20
"""Until an exchange counts as not answered."""
LONGEST_LINE = 16 * 1024 * 1024


@dataclass(kw_only=True)
class Response:
    """The head of a response, and what follows it."""

    status: int
    headers: dict[str, str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    async def body(self) -> bytes:
        """All bytes of the body."""
        return b"".join([piece async for piece in self._pieces()])

    async def events(self) -> AsyncIterator[Json]:
        """The messages of an event stream, until it ends."""
        data: list[str] = []
        rest = b""
        async for piece in self._pieces():
            *lines, rest = (rest + piece).replace(b"\r\n", b"\n").split(b"\n")
            for line in lines:
                if line.startswith(b"data:"):
                    data.append(line.removeprefix(b"data:").strip().decode("utf-8"))
                elif not line and data:
                    written, data = "\n".join(data), []
                    if written:
                        yield json.loads(written)

    async def _pieces(self) -> AsyncIterator[bytes]:
        if self.headers.get("transfer-encoding") != "chunked":
            length = self.headers.get("content-length")
            yield await (self.reader.read() if length is None else self.reader.readexactly(int(length)))
            return
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            yield (await self.reader.readexactly(size + 2))[:-2]


class HttpConnection:
    """One client of the endpoint: its session, and the streams that it keeps open."""

    def __init__(self, port: int, era: Era, capabilities: Json) -> None:
        self._port = port
        self._era: Era = era
        self._capabilities = capabilities
        self._ids = itertools.count(1)
        self._session: str | None = None
        self._version: str = LEGACY
        self._news: list[Json] = []
        self._arrived = asyncio.Condition()
        self._readers: set[asyncio.Task[None]] = set()
        self._responses: list[Response] = []

    async def greet(self) -> None:
        """Make the handshake of 2025-11-25."""
        for exchange in (opening(self._capabilities), INITIALIZED):
            outcome = await self.play(exchange)
            if not set(outcome.statuses) <= {200, 202}:
                raise AssertionError(f"the handshake failed: {outcome}")

    async def close(self) -> None:
        """Close the streams that are still open."""
        for response in self._responses:
            response.writer.close()
        for task in self._readers:
            task.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)

    async def play(self, exchange: Exchange) -> Outcome:
        """Send an exchange and read until everything that belongs to it has come back."""
        messages: list[Json] = []
        sent: list[Any] = []
        self._news.clear()
        outcome = Outcome()
        try:
            async with asyncio.timeout(SECONDS):
                outcome = await self._converse(exchange, messages, sent)
                await self._await_news(exchange.until)
        except TimeoutError:
            outcome = replace(outcome, problem="no response in time")
        except (asyncio.IncompleteReadError, ConnectionError):
            outcome = replace(outcome, problem="the server closed the connection")
        except ValueError as error:
            outcome = replace(outcome, problem=f"not JSON: {error}")
        own, news = split_news([*messages, *self._news])
        return replace(outcome, messages=own, news=news, sent_ids=tuple(sent))

    async def _converse(self, exchange: Exchange, messages: list[Json], sent: list[Any]) -> Outcome:
        more: Json | None = {}
        outcome = Outcome()
        while more is not None:
            number = next(self._ids)
            frame = exchange.frame(self._era, number, self._capabilities, more)
            sent.append(sent_id(frame, exchange.given_id(number)))
            response = await self._send(exchange, frame)
            opened = response.headers.get("mcp-session-id")
            opens = opened is not None and exchange.method == "initialize"
            if opens and response.status == 200:
                self._session = opened
            outcome = Outcome(statuses=(*outcome.statuses, response.status), opens_session=opens)
            if exchange.stays_open and response.is_stream:
                self._keep(response)
                return outcome
            before = len(messages)
            await self._read(exchange, response, messages, number)
            response.writer.close()
            last = messages[-1] if len(messages) > before else {}
            if opens:
                self._version = last.get("result", {}).get("protocolVersion", LEGACY)
            more = following_params(last, exchange.answers) if exchange.follows else None
        return outcome

    async def _read(self, exchange: Exchange, response: Response, messages: list[Json], number: int) -> None:
        if not response.is_stream:
            body = b"" if exchange.verb == "HEAD" else await response.body()
            if response.headers.get("content-type", "").startswith("application/json") and body:
                messages.append(json.loads(body))
            return
        async for message in response.events():
            messages.append(message)
            if "method" in message and "id" in message:
                await self._post(response_to(message, exchange.answers))
            elif exchange.cancels and "method" in message:
                if self._era == MODERN:
                    # Closing the stream is how a client of 2026-07-28 cancels.
                    return
                params = {"requestId": number}
                await self._post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    async def _post(self, message: Json) -> None:
        """Post a message that gets no response."""
        exchange = Exchange(name="posted", raw=json.dumps(message).encode())
        response = await self._send(exchange, exchange.frame(self._era, 0, {}))
        await response.body()
        response.writer.close()

    def _keep(self, response: Response) -> None:
        self._responses.append(response)
        self._readers.add(asyncio.ensure_future(self._read_news(response)))

    async def _read_news(self, response: Response) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            async for message in response.events():
                async with self._arrived:
                    self._news.append(message)
                    self._arrived.notify_all()

    async def _await_news(self, methods: tuple[str, ...]) -> None:
        if not self._responses:
            return
        async with self._arrived:
            await self._arrived.wait_for(lambda: set(methods) <= {message.get("method") for message in self._news})

    async def _send(self, exchange: Exchange, frame: bytes) -> Response:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=LONGEST_LINE)
        with contextlib.suppress(ConnectionError):
            # A server may refuse a body before it has read it, and close.
            writer.write(self._head(exchange, frame) + frame)
            await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        return Response(status=int(head[0].split(" ")[1]), headers=headers, reader=reader, writer=writer)

    def _head(self, exchange: Exchange, frame: bytes) -> bytes:
        usual: dict[str, str | None] = {
            "Host": f"127.0.0.1:{self._port}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json" if exchange.verb == "POST" else None,
            "Content-Length": str(len(frame)) if exchange.verb == "POST" else None,
            "Connection": "close",
            **self._protocol_headers(exchange),
            **dict(exchange.headers),
        }
        pairs = [(name, value) for name, value in usual.items() if value is not None]
        lines = [f"{exchange.verb} {exchange.path} HTTP/1.1", *(f"{name}: {value}" for name, value in pairs)]
        lines += [f"{name}: {value}" for name, value in exchange.doubled]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"

    def _protocol_headers(self, exchange: Exchange) -> dict[str, str | None]:
        if self._era == LEGACY:
            opens = exchange.method == "initialize" and self._session is None
            return {} if opens else {"MCP-Protocol-Version": self._version, "Mcp-Session-Id": self._session}
        params: Any = exchange.params
        key = NAMED_BY.get(exchange.method) if isinstance(exchange.method, str) else None
        named = params.get(key) if key is not None and isinstance(params, dict) else None
        return {
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": exchange.method if isinstance(exchange.method, str) else None,
            "Mcp-Name": _header_value(named) if isinstance(named, str) else None,
        }


def _header_value(text: str) -> str:
    """A value as a header carries it: as it is, or base64 between marks."""
    if text.isascii() and text.isprintable() and text == text.strip():
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


@contextlib.asynccontextmanager
async def connected(port: int, era: Era, capabilities: Json, *, greets: bool) -> AsyncGenerator[HttpConnection]:
    """A fresh client, in a session of its own where the server has sessions."""
    connection = HttpConnection(port, era, capabilities)
    try:
        if greets and era == LEGACY:
            await connection.greet()
        yield connection
    finally:
        await connection.close()
