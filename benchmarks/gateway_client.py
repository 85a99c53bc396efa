"""The one raw client for every gateway: requests written by hand, over streamable HTTP or over a stream of events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any, Protocol

from benchmarks.workload import HANDSHAKE, opening, request

_ACCEPT = "application/json, text/event-stream"


class Refused(Exception):
    """The gateway does not take the request, or not yet."""


class Caller(Protocol):
    """One client of a gateway, with one call under way at a time."""

    async def open(self) -> None:
        """Connect and shake hands."""
        ...

    async def call(self, tool: str, arguments: dict[str, Any]) -> bytes:
        """The message that answers a call, unread."""
        ...

    def close(self) -> None:
        """Hang up."""
        ...


class Web:
    """One kept-alive connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def send(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
        """Write a request, and read the head of its response. Servers close connections that were not used a while."""
        is_reused = self._writer is not None
        try:
            return await self._exchanged(method, path, body, headers)
        except (asyncio.IncompleteReadError, ConnectionError):
            if not is_reused:
                raise
            self._writer = None
            return await self._exchanged(method, path, body, headers)

    async def _exchanged(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, dict[str, str]]:
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 24)
        assert self._reader is not None
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self._port}", f"Accept: {_ACCEPT}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if method == "POST":
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        self._writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        pairs = (line.partition(":") for line in head[1:] if line)
        return int(head[0].split(" ")[1]), {name.lower(): value.strip() for name, _, value in pairs}

    async def chunks(self, headers: dict[str, str]) -> AsyncGenerator[bytes]:
        """The body of a response, as it comes."""
        assert self._reader is not None
        if "chunked" not in headers.get("transfer-encoding", ""):
            yield await self._reader.readexactly(int(headers.get("content-length", "0")))
            return
        while size := int(await self._reader.readline(), 16):
            yield await self._reader.readexactly(size)
            await self._reader.readexactly(2)
        await self._reader.readexactly(2)

    def close(self) -> None:
        """Hang up."""
        if self._writer is not None:
            self._writer.close()


async def events(chunks: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """What the events of a stream say. Every byte is looked at once, however long an event is."""
    pieces: list[bytes] = []
    async for chunk in chunks:
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            pieces.append(line)
            whole = b"".join(pieces).rstrip(b"\r")
            pieces.clear()
            if whole.startswith(b"data:"):
                yield whole[5:].strip()
        pieces.append(rest)


class StreamableCaller:
    """A client over streamable HTTP, with a session where the gateway wants one."""

    def __init__(self, port: int, path: str = "/mcp") -> None:
        self._web = Web(port)
        self._path = path
        self._headers = {"MCP-Protocol-Version": HANDSHAKE}
        self._number = 0

    async def open(self) -> None:
        """Connect and shake hands."""
        initialize, initialized = opening(HANDSHAKE)
        body = json.dumps(initialize).encode()
        status, headers = await self._web.send("POST", self._path, body, {})
        data = b"".join([chunk async for chunk in self._web.chunks(headers)])
        if status != 200:
            raise Refused(f"{status}: {data[:300]!r}")
        if session := headers.get("mcp-session-id"):
            self._headers["Mcp-Session-Id"] = session
        await self._post(json.dumps(initialized).encode())

    async def call(self, tool: str, arguments: dict[str, Any]) -> bytes:
        """The message that answers a call, unread."""
        self._number += 1
        message = request(self._number, "tools/call", {"name": tool, "arguments": arguments}, HANDSHAKE)
        return await self._post(json.dumps(message, separators=(",", ":")).encode())

    async def _post(self, body: bytes) -> bytes:
        status, headers = await self._web.send("POST", self._path, body, self._headers)
        chunks, last = self._web.chunks(headers), b""
        if "event-stream" not in headers.get("content-type", ""):
            last = b"".join([chunk async for chunk in chunks])
        else:
            async for event in events(chunks):
                last = event if b'"method"' not in event[:80] else last
        if status >= 300:
            raise Refused(f"{status}: {last[:300]!r}")
        return last

    def close(self) -> None:
        """Hang up."""
        self._web.close()


class EventsCaller:
    """A client over the HTTP with one stream of events."""

    def __init__(self, port: int, path: str = "/mcp") -> None:
        self._stream, self._posts = Web(port), Web(port)
        self._path = path
        self._events: AsyncGenerator[bytes] | None = None
        self._endpoint = ""
        self._number = 0

    async def open(self) -> None:
        """Connect and shake hands."""
        status, headers = await self._stream.send("GET", self._path, b"", {})
        if status != 200:
            raise Refused(str(status))
        self._events = events(self._stream.chunks(headers))
        self._endpoint = (await anext(self._events)).decode()
        initialize, initialized = opening(HANDSHAKE)
        await self._post(initialize)
        await self._answer(0)
        await self._post(initialized)

    async def call(self, tool: str, arguments: dict[str, Any]) -> bytes:
        """The message that answers a call, unread."""
        self._number += 1
        await self._post(request(self._number, "tools/call", {"name": tool, "arguments": arguments}, HANDSHAKE))
        return await self._answer(self._number)

    async def _post(self, message: dict[str, Any]) -> None:
        body = json.dumps(message, separators=(",", ":")).encode()
        status, headers = await self._posts.send("POST", self._endpoint, body, {})
        async for _ in self._posts.chunks(headers):
            pass
        if status >= 300:
            raise Refused(str(status))

    async def _answer(self, number: int) -> bytes:
        assert self._events is not None
        mark = f'"id":{number}'.encode()
        async for event in self._events:
            if mark in event[:200] or mark in event[-200:]:
                return event
        raise Refused("the stream of events has ended")

    def close(self) -> None:
        """Hang up."""
        self._stream.close()
        self._posts.close()
