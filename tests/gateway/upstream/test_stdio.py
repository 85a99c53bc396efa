"""The channel to a process: what is sent in one turn goes out together, and nothing waits long for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
import pytest

from trysquare.gateway import ServerConfig
from trysquare.gateway.models import ConfigLocation
from trysquare.gateway.upstream import stdio
from trysquare.gateway.upstream.stdio import StdioTransport
from trysquare.gateway.upstream.transport import DisconnectReason, OutgoingMessage, RequestId
from trysquare.processes.supervisor import supervise


class Heard:
    """Keeps what comes back."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.changed = asyncio.Event()

    def receive(self, message: bytes | bytearray, about: RequestId | None = None) -> None:
        self.lines.append(bytes(message))
        self.changed.set()

    def on_disconnect(self, disconnect: DisconnectReason, request_id: RequestId | None = None) -> None:
        raise AssertionError(disconnect.reason)

    def is_pending(self, request_id: RequestId) -> bool:
        return True

    async def until(self, count: int) -> list[bytes]:
        with anyio.fail_after(20):
            while len(self.lines) < count:
                self.changed.clear()
                await self.changed.wait()
        return self.lines


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What is written to the process, each write by itself."""
    writes: list[bytes] = []

    class Noted(stdio.PipeWriter):
        def write(self, data: bytes) -> None:
            writes.append(data)
            super().write(data)

    monkeypatch.setattr(stdio, "PipeWriter", Noted)
    return writes


@asynccontextmanager
async def echoing(heard: Heard) -> AsyncGenerator[StdioTransport]:
    config = ServerConfig(
        name="cat", tool_name="mcp_cat", transport="stdio", command="cat", location=ConfigLocation(file="mcp.json")
    )
    async with supervise() as supervisor:
        channel = StdioTransport(config, supervisor)
        await channel.open(heard)
        yield channel
        await channel.close()


def messages(count: int) -> list[bytes]:
    return [b'{"id":%d}' % number for number in range(count)]


async def test_the_first_of_a_turn_goes_out_at_once_and_the_others_together(written: list[bytes]) -> None:
    heard = Heard()
    async with echoing(heard) as channel:
        for body in messages(4):
            channel.send(OutgoingMessage(body))
        assert written == [b'{"id":0}\n']
        assert await heard.until(4) == messages(4)
        assert written[1:] == [b'{"id":1}\n{"id":2}\n{"id":3}\n']


async def test_in_a_long_turn_nothing_waits_for_its_end(written: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(stdio, "time", SimpleNamespace(monotonic=lambda: now))
    heard = Heard()
    async with echoing(heard) as channel:
        for body in messages(6):
            channel.send(OutgoingMessage(body))
            now += 0.0015
        assert written == [b'{"id":0}\n', b'{"id":1}\n{"id":2}\n', b'{"id":3}\n{"id":4}\n']
        assert await heard.until(6) == messages(6)
        assert written[3:] == [b'{"id":5}\n']


async def test_a_turn_later_the_first_goes_out_at_once_again(written: list[bytes]) -> None:
    heard = Heard()
    async with echoing(heard) as channel:
        for number, body in enumerate(messages(3)):
            channel.send(OutgoingMessage(body))
            assert written[-1] == body + b"\n"
            assert await heard.until(number + 1) == messages(number + 1)
