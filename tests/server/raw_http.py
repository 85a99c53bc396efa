"""A client that writes the bytes of its requests itself, for what no HTTP library would send."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.server.clients import MODERN_META

SECONDS = 20
Fields = Iterable[tuple[str, str]]


@dataclass(kw_only=True)
class Response:
    """One response: its status, its headers by lower-case name, and its body."""

    status: int
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class RawConnection:
    """One connection, on which anything can be written."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        """Write and wait until the system has taken it; a server that has closed the connection takes nothing."""
        try:
            self.writer.write(data)
            await self.writer.drain()
        except ConnectionError:
            pass

    async def response(self) -> Response:
        """The next whole response. Raises `EOFError` if the connection ended before it."""
        async with asyncio.timeout(SECONDS):
            response = await self.head()
            if response.headers.get("transfer-encoding") == "chunked":
                while chunk := await self.chunk():
                    response.body += chunk
            else:
                response.body = await self.reader.readexactly(int(response.headers.get("content-length", 0)))
        return response

    async def head(self) -> Response:
        """The status and headers of the next response."""
        async with asyncio.timeout(SECONDS):
            lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        named = (line.partition(":") for line in lines[1:] if line)
        return Response(
            status=int(lines[0].split()[1]), headers={name.lower(): value.strip() for name, _, value in named}
        )

    async def chunk(self) -> bytes:
        """The next chunk of a body in chunks; empty at its end."""
        async with asyncio.timeout(SECONDS):
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            return (await self.reader.readexactly(size + 2))[:-2]

    async def event(self) -> tuple[str | None, str]:
        """The id and the data of the next server-sent event in a body in chunks, each of which is one event."""
        while (text := (await self.chunk()).decode()).startswith(":"):
            pass
        if not text:
            raise EOFError
        lines = dict(line.split(": ", 1) for line in text.splitlines() if line)
        return lines.get("id"), lines.get("data", "")

    async def closed(self) -> bytes:
        """Whatever else comes until the server closes the connection."""
        async with asyncio.timeout(SECONDS):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


@asynccontextmanager
async def connected(base: str) -> AsyncGenerator[RawConnection]:
    """A connection to the server at an address."""
    parts = urlsplit(base)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    connection = RawConnection(reader, writer)
    try:
        yield connection
    finally:
        await connection.close()


def head_of(fields: Fields, method: str = "POST", path: str = "/mcp") -> bytes:
    """The head of a request with exactly these headers."""
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def usual_fields(method: str = "tools/list", name: str | None = None) -> list[tuple[str, str]]:
    """The headers of a request of 2026-07-28, but for those about its body."""
    fields = [
        ("Host", "127.0.0.1"),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", method),
    ]
    return fields if name is None else [*fields, ("Mcp-Name", name)]


def modern(method: str, request_id: int = 1, **params: Any) -> bytes:
    """The body of a request of 2026-07-28."""
    whole = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**params, "_meta": MODERN_META}}
    return json.dumps(whole).encode()


def listing(request_id: int = 1) -> bytes:
    """A whole request that lists tools."""
    return whole_request(usual_fields(), modern("tools/list", request_id))


def whole_request(fields: Fields, body: bytes) -> bytes:
    """A request with its length."""
    return head_of([*fields, ("Content-Length", str(len(body)))]) + body
