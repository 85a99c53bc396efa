"""Whole responses: head and body go out in one write, so that a client is not woken twice for one answer."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_START = b"HTTP/1."
_LENGTH = b"\r\ncontent-length: "
_LARGE = 64 * 1024
"""Bytes of a body above which joining would cost more than a second write."""


class WholeResponses(HttpToolsProtocol):
    """uvicorn's protocol over a transport that joins a head with the body behind it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self._joining = JoiningTransport(transport)
        # It has every method that uvicorn uses; those that it does not join anything in are the transport's own.
        super().connection_made(cast(asyncio.Transport, self._joining))

    def on_response_complete(self) -> None:
        # The answer to HEAD has a length and no body.
        self._joining.flush()
        super().on_response_complete()


class JoiningTransport:
    """A transport that keeps the head of a response whose length is known until the body comes, which it does at once.

    The head of a stream goes out by itself: its first event may be long in coming.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write, or keep a head."""
        if self._head:
            data = self._joined(data)
        elif data.startswith(_START) and data.endswith(b"\r\n\r\n") and _LENGTH in data:
            self._head = data
            return
        self._transport.write(data)

    def flush(self) -> None:
        """Write what is kept."""
        head, self._head = self._head, b""
        if head:
            self._transport.write(head)

    def close(self) -> None:
        """Write what is kept, and close."""
        self.flush()
        self._transport.close()

    def _joined(self, body: bytes) -> bytes:
        if len(body) > _LARGE:
            self.flush()
            return body
        head, self._head = self._head, b""
        return head + body
