"""Writes of one turn of the event loop leave together, and nothing is lost, kept back or sent after the end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from tests.server.clients import served_http
from tests.server.raw_http import connected, listing
from tests.server.sample import declared
from trysquare.server.http.transport import JoiningTransport


class Recorded(asyncio.Transport):
    """A transport that remembers what it was given, in order."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 5)})
        self.calls: list[Any] = []

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.calls.append(b"".join(list_of_data))

    def is_closing(self) -> bool:
        return "close" in self.calls or "abort" in self.calls

    def get_write_buffer_size(self) -> int:
        return 10

    def __getattribute__(self, name: str) -> Any:
        if name in ("close", "abort", "write_eof", "pause_reading", "resume_reading"):
            return lambda: self.calls.append(name)
        return super().__getattribute__(name)


async def turn() -> None:
    await asyncio.sleep(0)


def joined() -> tuple[JoiningTransport, Recorded]:
    inner = Recorded()
    return JoiningTransport(inner), inner


async def test_writes_of_a_turn_leave_together_at_its_end() -> None:
    transport, inner = joined()
    transport.write(b"head ")
    transport.writelines([b"bo", bytearray(b"dy")])
    assert (inner.calls, transport.get_write_buffer_size()) == ([], 19)

    await turn()
    transport.write(b"next")
    assert inner.calls == [b"head body"]

    await turn()
    assert (inner.calls, transport.get_write_buffer_size()) == ([b"head body", b"next"], 10)


async def test_much_does_not_wait_so_that_a_slow_client_holds_up_its_own_stream() -> None:
    transport, inner = joined()
    transport.write(b"x" * 1000)
    transport.write(b"y" * 100_000)
    assert inner.calls == [b"x" * 1000 + b"y" * 100_000]

    transport.write(b"z")
    await turn()
    assert inner.calls[1:] == [b"z"]


async def test_closing_sends_what_was_written_before() -> None:
    for end in ("close", "write_eof"):
        transport, inner = joined()
        transport.write(b"last words")
        getattr(transport, end)()
        await turn()
        assert inner.calls == [b"last words", end]


async def test_nothing_is_sent_after_the_end() -> None:
    transport, inner = joined()
    transport.write(b"lost")
    transport.abort()
    transport.write(b"lost too")
    await turn()
    assert inner.calls == ["abort"]
    assert transport.is_closing()


async def test_everything_else_is_that_of_the_connection() -> None:
    transport, inner = joined()
    transport.pause_reading()
    transport.resume_reading()
    assert inner.calls == ["pause_reading", "resume_reading"]
    assert transport.get_extra_info("peername") == ("127.0.0.1", 5)


async def test_pipelined_requests_are_answered_whole_and_in_order() -> None:
    async with served_http(declared.toolset()) as base, connected(base) as client:
        await client.send(b"".join(map(listing, range(1, 6))))
        assert [(await client.response()).json["id"] for _ in range(5)] == [1, 2, 3, 4, 5]
