"""Attempts over HTTP: one request inside another, and bytes cut where it hurts, against the server as it is served."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from tests.attacks.conftest import Attack

SERVER = """
import anyio
from trysquare import Declarations
from trysquare.server import HttpOptions, serve_http

class Calls:
    made = 0

tools = Declarations()

@tools.declare
def count(note: str) -> int:
    "Count the calls."
    Calls.made += 1
    return Calls.made

anyio.run(lambda: serve_http(tools.toolset(), None, HttpOptions(port=0), started=lambda url: print(url, flush=True)))
"""


@asynccontextmanager
async def connected() -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a server in a process of its own, as `serve_http` runs it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, stdout=asyncio.subprocess.PIPE, env=dict(os.environ)
    )
    assert process.stdout is not None
    try:
        parts = urlsplit((await asyncio.wait_for(process.stdout.readline(), 60)).decode().strip())
        assert parts.hostname is not None
        assert parts.port is not None
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        try:
            yield reader, writer
        finally:
            writer.close()
            await writer.wait_closed()
    finally:
        process.terminate()
        await process.wait()


def body_of(number: int, length: int, note: str = "") -> bytes:
    """A call in the JSON of a given length: the note fills it up."""
    message = {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/call",
        "params": {
            "name": "count",
            "arguments": {"note": note},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    }
    text = json.dumps(message).encode()
    return text + b" " * (length - len(text))


def head_of(length: int, path: str = "/mcp", padding: int = 0) -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        "Mcp-Name: count",
        f"X-Padding: {'x' * padding}",
        f"Content-Length: {length}",
    ]
    return "\r\n".join(lines).encode()


def head_two_bytes_longer_than_its_body() -> tuple[bytes, int]:
    """A head after which, cut one byte behind its end, its own bytes have just the length of the body that it tells."""
    for length in range(300, 2000):
        head = head_of(length, padding=400)
        if len(head) - 2 == length:
            return head, length
    raise AssertionError("no such length")


async def answers(reader: asyncio.StreamReader, patience: float = 1.0) -> list[int]:
    """The statuses of all responses that come until the server is silent, or has closed the connection."""
    statuses: list[int] = []
    while True:
        try:
            line = await asyncio.wait_for(reader.readline(), patience)
        except TimeoutError:
            return statuses
        if not line:
            return statuses
        statuses.append(int(line.split()[1]))
        length = 0
        while (header := await reader.readline()) not in (b"\r\n", b""):
            name, _, value = header.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        await reader.readexactly(length)


async def test_a_body_is_never_taken_for_the_next_request(attack: Attack) -> None:
    attack(door="HTTP", attempt="smuggle a request by cutting one byte behind a head that was sent before")
    head, length = head_two_bytes_longer_than_its_body()
    smuggled = head_of(2, "/smuggled", 0) + b"\r\n\r\n{}"
    inner = smuggled + b" " * (length - len(smuggled))
    async with connected() as (reader, writer):
        writer.write(head + b"\r\n\r\n" + body_of(1, length))
        assert await answers(reader) == [200]
        writer.write(head + b"\r")
        await writer.drain()
        assert await answers(reader) == [], "nothing is answered before its request is whole"
        writer.write(b"\n\r\n" + inner)
        assert await answers(reader) == [400], "one request, whose body is not a message"


@pytest.mark.parametrize("cut", ["head", "line", "end", "body"])
async def test_a_request_means_the_same_wherever_it_is_cut(attack: Attack, cut: str) -> None:
    attack(door="HTTP", attempt=f"send a request again in two pieces, cut in its {cut}")
    length = 900
    head = head_of(length)
    whole = head + b"\r\n\r\n" + body_of(1, length)
    where = {"head": 20, "line": len(head) + 1, "end": len(head) + 4, "body": len(head) + 40}[cut]
    async with connected() as (reader, writer):
        writer.write(whole)
        assert await answers(reader) == [200]
        writer.write(whole[:where])
        await writer.drain()
        assert await answers(reader, 0.3) == []
        writer.write(whole[where:] + whole)
        assert await answers(reader) == [200, 200]


def _with(line: str, body: bytes) -> bytes:
    """A call whose head has one more line."""
    return head_of(len(body)) + b"\r\n" + line.encode("latin-1") + b"\r\n\r\n" + body


INNER = head_of(2, "/smuggled") + b"\r\n\r\n{}"
CHUNKED_INNER = b"0\r\n\r\n" + INNER
AMBIGUOUS = {
    "a length and chunks": _with("Transfer-Encoding: chunked", CHUNKED_INNER),
    "chunks under another spelling": _with("Transfer-Encoding: xchunked", CHUNKED_INNER),
    "chunks that are not last": _with("Transfer-Encoding: chunked, identity", CHUNKED_INNER),
    "chunks named twice": _with("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", CHUNKED_INNER),
    "a blank before the colon": _with("Transfer-Encoding : chunked", CHUNKED_INNER),
    "two lengths": _with("Content-Length: 4", INNER),
    "a length with a sign": head_of(0).replace(b"Length: 0", b"Length: +2") + b"\r\n\r\n" + INNER,
    "a length in hexadecimal": head_of(0).replace(b"Length: 0", b"Length: 0x2") + b"\r\n\r\n" + INNER,
    "a folded line": _with("X-Folded: a\r\n Transfer-Encoding: chunked", INNER),
    "a line that ends with a carriage return alone": _with("X-Odd: a\rTransfer-Encoding: chunked", INNER),
    "a zero byte in a header": _with("X-Odd: a\0b", INNER),
}


@pytest.mark.parametrize("how", AMBIGUOUS)
async def test_a_head_that_two_servers_could_read_in_two_ways_hides_no_request(attack: Attack, how: str) -> None:
    attack(door="HTTP", attempt=f"smuggle a request by a head with {how}")
    async with connected() as (reader, writer):
        writer.write(AMBIGUOUS[how])
        statuses = await answers(reader)
    assert statuses in ([400], []), "refused as a whole, and nothing behind it is answered"
