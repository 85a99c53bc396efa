"""Loopback: a small server on this machine to which a browser comes back with the answer of a login."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, urlsplit

from trysquare.core.errors import ConfigurationError

_PATH = "/callback"
_LONGEST_REQUEST = 16 * 1024
_READ_SECONDS = 10.0
_PAGE = (
    b"HTTP/1.1 %s\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\n"
    b"Content-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\n\r\n"
    b"<!doctype html><title>Trysquare</title><p>%s</p>"
)


class Loopback:
    """Waits for one answer, that to the question which has this state. Anything else that comes is sent away."""

    def __init__(self) -> None:
        self.address = ""
        self._state: str | None = None
        self._answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()

    def expect(self, question: str) -> None:
        """Learn the address that the person is sent to, which names the state to come back with."""
        self._state = dict(parse_qsl(urlsplit(question).query)).get("state")

    async def answer(self) -> Mapping[str, str]:
        """The parameters that the browser brought."""
        return await self._answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of a browser."""
        try:
            async with asyncio.timeout(_READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            writer.write(self._page(head))
            await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever it was is gone, or no browser
        finally:
            writer.close()

    def _page(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b" ")
        parts = urlsplit(rest.partition(b" ")[0].decode("ascii", "replace"))
        found = dict(parse_qsl(parts.query))
        if method != b"GET" or parts.path != _PATH or not self._is_expected(found.get("state", "")):
            return _PAGE % (b"404 Not Found", b"There is nothing here.")
        if not self._answer.done():
            self._answer.set_result(found)
        if "code" in found:
            return _PAGE % (b"200 OK", b"The answer has arrived. You can close this page and go back to the terminal.")
        return _PAGE % (b"200 OK", b"The login was refused. The terminal says more.")

    def _is_expected(self, state: str) -> bool:
        return self._state is not None and hmac.compare_digest(state.encode(), self._state.encode())


@asynccontextmanager
async def open_loopback(port: int | None) -> AsyncGenerator[Loopback]:
    """Listen on this machine only, on a given port or on any that is free."""
    loopback = Loopback()
    try:
        server = await asyncio.start_server(loopback.serve, "127.0.0.1", port or 0, limit=_LONGEST_REQUEST)
    except OSError as error:
        raise ConfigurationError(
            f"The port {port} for the answer of the login cannot be used: {error.strerror}.",
            hint="Free it, or write another `callbackPort`.",
        ) from None
    async with server:
        loopback.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{_PATH}"
        yield loopback
