"""A client that writes its own frames, over the pipes of a server that runs as a process.

Interpreters start slowly, so each server is started once as a host (see `serving.py`): for every connection it gets the
ends of two fresh pipes, forks, and serves them as its standard streams.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import socket
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

from tests.differential.material import Json
from tests.differential.model import (
    INITIALIZED,
    LEGACY,
    Era,
    Exchange,
    Outcome,
    following_params,
    is_request,
    opening,
    response_to,
    sent_id,
    split_news,
)

REPOSITORY = Path(__file__).parents[2]
SECONDS = 20
"""Until an exchange counts as not answered."""
LONGEST_LINE = 16 * 1024 * 1024


class Unreadable(Exception):
    """The server wrote a line that is not a JSON object."""


class StdioConnection:
    """The client's end of one connection."""

    def __init__(
        self, era: Era, capabilities: Json, reader: asyncio.StreamReader, send: Callable[[bytes], None]
    ) -> None:
        self._era: Era = era
        self._capabilities = capabilities
        self._reader = reader
        self._send = send
        self._ids = itertools.count(1)
        self._received: list[Json] = []

    async def greet(self) -> None:
        """Make the handshake of 2025-11-25."""
        for exchange in (opening(self._capabilities), INITIALIZED):
            outcome = await self.play(exchange)
            if outcome.problem is not None:
                raise AssertionError(f"the handshake failed: {outcome}")

    async def play(self, exchange: Exchange) -> Outcome:
        """Send an exchange and read until everything that belongs to it has come back."""
        self._received, sent, problem = [], [], None
        try:
            async with asyncio.timeout(SECONDS):
                await self._converse(exchange, sent)
                await self._fence()
        except TimeoutError:
            problem = "no response in time"
        except (asyncio.IncompleteReadError, ConnectionError):
            problem = "the server closed the connection"
        except Unreadable as error:
            problem = f"not JSON: {error}"
        messages, news = split_news(self._received)
        return Outcome(messages=messages, news=news, sent_ids=tuple(sent), problem=problem)

    async def _converse(self, exchange: Exchange, sent: list[Any]) -> None:
        more: Json | None = {}
        while more is not None:
            number = next(self._ids)
            frame = exchange.frame(self._era, number, self._capabilities, more)
            identifier = sent_id(frame, exchange.given_id(number))
            sent.append(identifier)
            self._send(frame + b"\n")
            if exchange.cancels:
                await self._read_until(lambda message: "method" in message, exchange)
                self._write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
                return
            is_answered = exchange.raw is None and not exchange.stays_open and is_request(frame)
            more = await self._next_params(exchange, identifier) if is_answered else None
        for method in exchange.until:
            if not any(message.get("method") == method for message in self._received):
                await self._read_until(lambda message, method=method: message.get("method") == method, exchange)

    async def _next_params(self, exchange: Exchange, expected: str | int) -> Json | None:
        """What to call again with, once the response has come; None where nothing follows."""
        response = await self._read_until(lambda message: _answers(message, expected), exchange)
        return following_params(response, exchange.answers) if exchange.follows else None

    async def _fence(self) -> None:
        """Call a tool that answers at once: what belongs to the exchange has come back before it."""
        number = f"fence-{next(self._ids)}"
        fence = Exchange(name="fence", method="tools/call", params={"name": "plain"}, id=number)
        self._send(fence.frame(self._era, 0, self._capabilities) + b"\n")
        await self._read_until(lambda message: message.get("id") == number and "method" not in message, fence)
        self._received.pop()

    async def _read_until(self, holds: Callable[[Json], bool], exchange: Exchange) -> Json:
        """Read messages, and answer the server's requests, until one is the awaited one."""
        while True:
            line = await self._reader.readuntil(b"\n")
            try:
                message: Json = json.loads(line.decode("utf-8"))
            except ValueError as error:
                raise Unreadable(repr(line[:200])) from error
            self._received.append(message)
            if "method" in message and "id" in message:
                self._write(response_to(message, exchange.answers))
            if holds(message):
                return message

    def _write(self, message: Json) -> None:
        self._send(json.dumps(message).encode() + b"\n")


def _answers(message: Json, expected: str | int) -> bool:
    """Whether a message is the response to a request, or an error for something that had no readable id."""
    return "method" not in message and message.get("id", expected) in (expected, None)


class Host:
    """A process that serves one of the two servers, once for every connection."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control

    @contextlib.asynccontextmanager
    async def connected(self, era: Era, capabilities: Json, *, greets: bool) -> AsyncGenerator[StdioConnection]:
        """A fresh connection."""
        loop = asyncio.get_running_loop()
        (their_input, our_output), (our_input, their_output) = os.pipe(), os.pipe()
        socket.send_fds(self._control, [b"c"], [their_input, their_output])
        os.close(their_input)
        os.close(their_output)
        reader = asyncio.StreamReader(limit=LONGEST_LINE)
        incoming, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(our_input, "rb", 0)
        )
        outgoing, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(our_output, "wb", 0))
        connection = StdioConnection(era, capabilities, reader, outgoing.write)
        try:
            if greets and era == LEGACY:
                await connection.greet()
            yield connection
        finally:
            outgoing.close()
            incoming.close()


@contextlib.asynccontextmanager
async def hosted(side: str) -> AsyncGenerator[Host]:
    """The host of one side; it ends with the block, and its children with their connections."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.differential.serving", side, str(theirs.fileno()),
            cwd=REPOSITORY, pass_fds=[theirs.fileno()], stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        theirs.close()
        try:
            yield Host(ours)
        finally:
            ours.close()
            async with asyncio.timeout(SECONDS):
                await process.wait()
