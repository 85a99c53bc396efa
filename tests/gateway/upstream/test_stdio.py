"""The channel to a process: what is sent in one turn goes out together, and nothing waits long for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
import pytest

from trysquare.gateway.server import Place, ServerConfig
from trysquare.gateway.upstream import stdio
from trysquare.gateway.upstream.channel import Loss, Outgoing, RequestId
from trysquare.gateway.upstream.stdio import StdioChannel
from trysquare.processes.nursery import open_nursery


class Heard:
    """Keeps what comes back."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.changed = asyncio.Event()

    def hear(self, message: bytes | bytearray, about: RequestId | None = None) -> None:
        self.lines.append(bytes(message))
        self.changed.set()

    def lose(self, loss: Loss, request_id: RequestId | None = None) -> None:
        raise AssertionError(loss.reason)

    def awaits(self, request_id: RequestId) -> bool:
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

    class Noted(stdio.Outlet):
        def write(self, data: bytes) -> None:
            writes.append(data)
            super().write(data)

    monkeypatch.setattr(stdio, "Outlet", Noted)
    return writes


@asynccontextmanager
async def echoing(heard: Heard) -> AsyncGenerator[StdioChannel]:
    config = ServerConfig(
        name="cat", tool_name="mcp_cat", transport="stdio", command="cat", place=Place(file="mcp.json")
    )
    async with open_nursery() as nursery:
        channel = StdioChannel(config, nursery)
        await channel.open(heard)
        yield channel
        await channel.close()


def messages(count: int) -> list[bytes]:
    return [b'{"id":%d}' % number for number in range(count)]


async def test_the_first_of_a_turn_goes_out_at_once_and_the_others_together(written: list[bytes]) -> None:
    heard = Heard()
    async with echoing(heard) as channel:
        for body in messages(4):
            channel.send(Outgoing(body))
        assert written == [b'{"id":0}\n']
        assert await heard.until(4) == messages(4)
        assert written[1:] == [b'{"id":1}\n{"id":2}\n{"id":3}\n']


async def test_in_a_long_turn_nothing_waits_for_its_end(written: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(stdio, "time", SimpleNamespace(monotonic=lambda: now))
    heard = Heard()
    async with echoing(heard) as channel:
        for body in messages(6):
            channel.send(Outgoing(body))
            now += 0.0015
        assert written == [b'{"id":0}\n', b'{"id":1}\n{"id":2}\n', b'{"id":3}\n{"id":4}\n']
        assert await heard.until(6) == messages(6)
        assert written[3:] == [b'{"id":5}\n']


async def test_a_turn_later_the_first_goes_out_at_once_again(written: list[bytes]) -> None:
    heard = Heard()
    async with echoing(heard) as channel:
        for number, body in enumerate(messages(3)):
            channel.send(Outgoing(body))
            assert written[-1] == body + b"\n"
            assert await heard.until(number + 1) == messages(number + 1)
