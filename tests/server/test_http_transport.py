"""The head of a response leaves with its body, and nothing is lost, kept back or sent after the end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from tests.server.clients import served_http
from tests.server.raw_http import connected, head_of, listing, usual_fields
from tests.server.sample import declared
from trysquare.server.http.transport import JoiningTransport


class Recorded(asyncio.Transport):
    """A transport that remembers what it was given, in order."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 5)})
        self.calls: list[Any] = []

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.calls.append(b"".join(list_of_data))

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self.is_closing():
            self.calls.append(bytes(data))

    def is_closing(self) -> bool:
        return "close" in self.calls or "abort" in self.calls

    def get_write_buffer_size(self) -> int:
        return 10

    def __getattribute__(self, name: str) -> Any:
        if name in ("close", "abort", "write_eof", "pause_reading", "resume_reading"):
            return lambda: self.calls.append(name)
        return super().__getattribute__(name)


def joined() -> tuple[JoiningTransport, Recorded]:
    inner = Recorded()
    return JoiningTransport(inner), inner


def test_what_is_held_leaves_with_what_comes_next() -> None:
    transport, inner = joined()
    transport.holds = True
    transport.write(bytearray(b"head "))
    assert (inner.calls, transport.get_write_buffer_size()) == ([], 15)

    transport.holds = False
    transport.writelines([b"bo", bytearray(b"dy")])
    assert (inner.calls, transport.get_write_buffer_size()) == ([b"head body"], 10)

    transport.write(b"next")
    assert inner.calls == [b"head body", b"next"]


def test_closing_sends_what_was_written_before() -> None:
    for end in ("close", "write_eof"):
        transport, inner = joined()
        transport.holds = True
        transport.write(b"last words")
        getattr(transport, end)()
        assert inner.calls == [b"last words", end]


def test_nothing_is_sent_after_the_end() -> None:
    transport, inner = joined()
    transport.holds = True
    transport.write(b"lost")
    transport.abort()
    transport.holds = False
    transport.write(b"lost too")
    assert inner.calls == ["abort"]
    assert transport.is_closing()


def test_everything_else_is_that_of_the_connection() -> None:
    transport, inner = joined()
    transport.pause_reading()
    transport.resume_reading()
    assert inner.calls == ["pause_reading", "resume_reading"]
    assert transport.get_extra_info("peername") == ("127.0.0.1", 5)


async def test_pipelined_requests_are_answered_whole_and_in_order() -> None:
    async with served_http(declared.toolset()) as base, connected(base) as client:
        await client.send(b"".join(map(listing, range(1, 6))))
        assert [(await client.response()).json["id"] for _ in range(5)] == [1, 2, 3, 4, 5]


async def test_a_head_that_has_no_body_is_sent() -> None:
    async with served_http(declared.toolset()) as base, connected(base) as client:
        await client.send(head_of(usual_fields(), "HEAD", "/healthz") + listing(2))
        assert (await client.head()).status == 200
        assert (await client.response()).json["id"] == 2
