"""HTTP requests that a client should never send, as raw bytes, and a reader for what comes back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from tests.fuzz.frames import MODERN, modern_meta, random_frame, random_request
from trysquare.core.json import JsonObject

_CONTENT_TYPES = (
    "application/json",
    "application/json; charset=utf-8",
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/json; charset=utf-99",
    "",
    "\xff",
)
_ACCEPTS = (
    "application/json, text/event-stream",
    "application/json",
    "text/event-stream",
    "*/*",
    "image/png",
    "",
    ";;,",
)
_ODD = (
    "",
    " ",
    "x" * 2000,
    "\x7f",
    "=?base64?!!!?=",
    "=?base64?YWJj?=",
    "null",
    "0",
    "-1",
    "../..",
    "\xe9",
    "2099-01-01",
    "2025-11-25",
    "tools/call",
    "echo",
)
_HEADERS = (
    "MCP-Protocol-Version",
    "Mcp-Method",
    "Mcp-Name",
    "Mcp-Session-Id",
    "Mcp-Param-Text",
    "Last-Event-ID",
    "Authorization",
    "Origin",
    "Host",
    "Transfer-Encoding",
    "Content-Length",
    "Expect",
    "Content-Encoding",
    "X-" + "h" * 300,
)
_METHODS = ("POST", "GET", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD", "BREW")


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the server said: None as status means that it closed the connection without a word."""

    status: int | None
    head: bytes = b""
    body: bytes = b""

    def messages(self) -> list[JsonObject]:
        """The JSON-RPC messages inside, whether they came as JSON or as events."""
        text = self.body.decode("utf-8")
        if text.lstrip().startswith("{"):
            return [json.loads(text)]
        lines = [line.removeprefix("data:").strip() for line in text.splitlines() if line.startswith("data:")]
        return [json.loads(line) for line in lines if line]


@dataclass(frozen=True, kw_only=True)
class RawRequest:
    """The bytes of a request. One that promises more than it holds is cut off, so that nobody waits for the rest."""

    data: bytes
    whole: bool = True


def good_call(number: int, host: str) -> RawRequest:
    """A call of the 2026-07-28 era as it should be."""
    params: JsonObject = {"name": "add", "arguments": {"left": number}, "_meta": modern_meta()}
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()
    return RawRequest(data=written("POST", "/mcp", {**_headers_of("tools/call", "add"), "Host": host}, body))


def random_http_request(random: Random, host: str, session: str | None = None) -> RawRequest:
    """One bad request: some for nobody, some with wrong headers, most wrong only inside."""
    kind = random.randrange(10)
    if kind == 0:
        return RawRequest(data=_noise(random, host), whole=False)
    message = random_request(random)
    name = message["params"].get("name")
    headers = _headers_of(message["method"], name if isinstance(name, str) else "")
    body = random_frame(random) if random.randrange(4) == 0 else json.dumps(message).encode()
    method, path = "POST", "/mcp"
    if kind <= 3:
        headers = _spoilt(random, headers)
    if kind == 4:
        method, path = random.choice(_METHODS), random.choice(_PATHS)
    # An odd method may be a DELETE, which would end the session under the requests beside it.
    if session is not None and kind != 4 and random.randrange(2):
        headers = {"Content-Type": headers.get("Content-Type", ""), "Accept": headers.get("Accept", "")}
        headers |= {"MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": session}
    data = written(method, path, {"Host": host, **headers}, body)
    return RawRequest(data=data, whole=not _LENGTHS & set(headers))


_PATHS = ("/", "/mcp", "/mcp/", "/mcp?profile=none", "/mcp?profile=levels", "/mcp/%00", "/%ff", "//mcp", "/healthz")


def _spoilt(random: Random, headers: dict[str, str]) -> dict[str, str]:
    kept = {key: value for key, value in headers.items() if random.randrange(8)}
    odd = {name: random.choice(_ODD) for name in random.sample(_HEADERS, random.randrange(3))}
    types = {"Content-Type": random.choice(_CONTENT_TYPES), "Accept": random.choice(_ACCEPTS)}
    return {**kept, **odd, **{key: value for key, value in types.items() if random.randrange(4) == 0}}


_LENGTHS = {"Content-Length", "Transfer-Encoding", "Expect"}


def _noise(random: Random, host: str) -> bytes:
    noises = (
        random.randbytes(200),
        b"GET\r\n\r\n",
        b"POST /mcp HTTP/9.9\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: " + host.encode() + b"\r\nContent-Length: nine\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: " + host.encode() + b"\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
        b"POST /mcp HTTP/1.1\r\nHost: " + host.encode() + b"\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /mcp HTTP/1.1\r\nNo-Colon\r\n\r\n",
        b"POST " + b"/" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    )
    return random.choice(noises)


def _headers_of(method: str, name: str) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": _one_line(method),
        "Mcp-Name": _one_line(name),
    }


def opening(host: str) -> RawRequest:
    """The request that opens a session of the 2025-11-25 era."""
    client = {"name": "fuzz", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    body = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).encode()
    headers = {"Host": host, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    return RawRequest(data=written("POST", "/mcp", headers, body))


def session_of(reply: Reply) -> str:
    """The session's id in the answer to an opening."""
    for line in reply.head.decode("latin-1").splitlines():
        name, _, value = line.partition(":")
        if name.lower() == "mcp-session-id":
            return value.strip()
    raise AssertionError(f"no session in {reply}")


def _one_line(text: str) -> str:
    return "".join(sign for sign in text if " " <= sign <= "~")[:500]


def written(method: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """A request as it goes over the wire; the connection ends with the answer."""
    whole = {"Content-Length": str(len(body)), "Connection": "close", **headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in whole.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


async def exchanged(request: RawRequest, port: int, *, seconds: float = 30) -> Reply:
    """Send a request and read what comes back; a stream that stays open is left after its first event."""
    async with asyncio.timeout(seconds):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(request.data)
            await writer.drain()
            if not request.whole:
                writer.write_eof()
            return await _read(reader, request.data.startswith(b"GET"))
        except OSError:
            return Reply(status=None)
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader, is_get: bool) -> Reply:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as end:
        head = end.partial
    if not head.startswith(b"HTTP/"):
        return Reply(status=None, body=head)
    status = int(head.split(b" ", 2)[1])
    if b"text/event-stream" in head.lower():
        # A stream may stay open for good: its first event, or for a GET its headers, is all that counts here.
        first = b"" if is_get else await _first_event(reader)
        return Reply(status=status, head=head, body=first)
    return Reply(status=status, head=head, body=await reader.read())


async def _first_event(reader: asyncio.StreamReader) -> bytes:
    read = b""
    while chunk := await reader.read(65536):
        read += chunk
        if b"data:" in read and b"\n\r\n" in read.split(b"data:", 1)[1]:
            break
    return read
