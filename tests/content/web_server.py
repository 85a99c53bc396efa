"""A small HTTP server on this machine, which a test gives its answers. It keeps what it was asked."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request as it came."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.target).query).items()}

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What to answer."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def answer_json(value: object, status: int = 200) -> Answered:
    """An answer whose body is JSON."""
    return Answered(status=status, body=json.dumps(value).encode(), headers={"Content-Type": "application/json"})


Answer: TypeAlias = Callable[[Asked], Answered | None]
"""None closes the connection without an answer."""


@dataclass(kw_only=True)
class WebServer:
    """The running server."""

    port: int
    requests: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"


@asynccontextmanager
async def web_server(answer: Answer, *, tls: ssl.SSLContext | None = None) -> AsyncGenerator[WebServer]:
    """Serve until the end of the block."""
    running = WebServer(port=0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = await _read(reader)
            running.requests.append(asked)
            answered = answer(asked)
            if answered is not None:
                writer.write(_head(answered) + answered.body)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client under test hung up, which some tests are about
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    running.port = server.sockets[0].getsockname()[1]
    async with server:
        yield running


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ", 2)
    pairs = (line.split(":", 1) for line in head[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(method=method, target=target, headers=headers, body=body)


def _head(answered: Answered) -> bytes:
    headers = {"Content-Length": str(len(answered.body)), **answered.headers, "Connection": "close"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {answered.status} Said\r\n{lines}\r\n".encode("latin-1")
