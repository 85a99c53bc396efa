"""What a client may take before it has proved anything: connections, heads, bodies, time. Byte by byte."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx2
import pytest

from tests.server.clients import served_http
from tests.server.raw_http import RawConnection, connected, head_of, listing, modern, usual_fields, whole_request
from tests.server.sample import declared
from trysquare.server import ConnectionLimits, HttpOptions, StaticTokens
from trysquare.server.http import exchange, streams

SHORT = ConnectionLimits(connections=4, head_bytes=4096, head_seconds=0.2)
ROOMY = ConnectionLimits(connections=4, head_bytes=4096, head_seconds=20)
CHUNKED = [*usual_fields(), ("Transfer-Encoding", "chunked")]


@asynccontextmanager
async def connection(limits: ConnectionLimits = ROOMY, **options: object) -> AsyncGenerator[RawConnection]:
    """A connection to a server of its own with these limits."""
    http = HttpOptions(limits=limits, **options)  # pyright: ignore[reportArgumentType]
    async with served_http(declared.toolset(), None, http) as base, connected(base) as client:
        yield client


@pytest.mark.parametrize("end", [b"", b"\r\n\r\n"])
async def test_a_head_over_the_limit_is_refused(end: bytes) -> None:
    async with connection() as client:
        await client.send(b"GET /healthz HTTP/1.1\r\nX-Long: " + b"x" * 8192 + end)
        assert (await client.response()).status == 431
        assert await client.closed() == b""


async def test_a_head_over_the_limit_is_refused_on_a_connection_in_use_too() -> None:
    async with connection() as client:
        for number in (1, 2):
            await client.send(listing(number))
            assert (await client.response()).json["id"] == number
        await client.send(b"GET /healthz HTTP/1.1\r\n" + b"X-Header: x\r\n" * 1000)
        assert (await client.response()).status == 431
        assert await client.closed() == b""


async def test_a_head_just_under_the_limit_is_served() -> None:
    async with connection() as client:
        await client.send(head_of([("Host", "127.0.0.1"), ("X-Long", "x" * 4000)], "GET", "/healthz"))
        assert (await client.response()).status == 200


@pytest.mark.parametrize("sent", [b"", b"\r\n\r\n", b"GET /healthz HTTP/1.1\r\n", b"GET /healthz HTTP/1.1\r\nHost: x"])
async def test_a_connection_that_sends_no_whole_head_is_closed(sent: bytes) -> None:
    async with connection(SHORT) as client:
        await client.send(sent)
        assert (await client.response()).status == 408
        assert await client.closed() == b""


@pytest.mark.parametrize("sent", [b"\r\n", b"G", b"GET /healthz HTTP/1.1\r\nHost: x"])
async def test_a_connection_that_sends_no_whole_head_after_a_request_is_closed(sent: bytes) -> None:
    async with connection(SHORT) as client:
        await client.send(listing())
        assert (await client.response()).status == 200
        await client.send(sent)
        assert (await client.response()).status == 408
        assert await client.closed() == b""


async def test_a_head_that_comes_byte_by_byte_has_no_longer_than_others() -> None:
    async def drip(client: RawConnection) -> None:
        for byte in b"GET /healthz HTTP/1.1\r\n" + b"X-Header: x\r\n" * 200:
            await client.send(bytes([byte]))
            await asyncio.sleep(0.01)

    async with connection(SHORT) as client:
        dripping = asyncio.create_task(drip(client))
        assert (await client.response()).status == 408
        dripping.cancel()


async def test_a_long_call_is_not_cut_off_by_the_limit_of_its_head() -> None:
    async with connection(SHORT) as client:
        body = modern("tools/call", name="slow", arguments={"seconds": 3 * SHORT.head_seconds})
        await client.send(whole_request(usual_fields("tools/call", "slow"), body))
        assert (await client.response()).json["result"]["structuredContent"]["result"] == "slept"


async def test_empty_lines_before_a_request_are_no_part_of_its_head() -> None:
    async with connection() as client:
        await client.send(b"\r\n\r\n" + listing(1))
        assert (await client.response()).json["id"] == 1
        await client.send(b"\r\n")
        await client.send(b"\r\n\r\n" + listing(2))
        assert (await client.response()).json["id"] == 2


async def test_more_connections_than_the_limit_are_refused_until_one_ends(caplog: pytest.LogCaptureFixture) -> None:
    async with served_http(declared.toolset(), None, HttpOptions(limits=ROOMY)) as base, AsyncExitStack() as stack:
        open_ones = [await stack.enter_async_context(connected(base)) for _ in range(4)]
        for one in open_ones:
            await one.send(listing())
            assert (await one.response()).status == 200
        with caplog.at_level(logging.WARNING):
            async with connected(base) as refused:
                answer = await refused.response()
                assert (answer.status, answer.headers["retry-after"]) == (503, "10")
                assert await refused.closed() == b""
        assert "limit=4" in caplog.text
        await open_ones[0].close()
        async with connected(base) as admitted:
            await admitted.send(listing())
            assert (await admitted.response()).status == 200


async def test_requests_in_one_piece_are_answered_in_order() -> None:
    async with connection() as client:
        await client.send(b"".join(listing(number) for number in range(1, 21)))
        assert [(await client.response()).json["id"] for _ in range(20)] == list(range(1, 21))


@pytest.mark.parametrize("length", [1001, 2**63 - 1])
async def test_a_body_over_the_limit_is_refused_before_any_of_it_has_come(length: int) -> None:
    async with connection(max_body=1000) as client:
        await client.send(head_of([*usual_fields(), ("Content-Length", str(length))]))
        assert (await client.response()).status == 413


async def test_a_body_in_chunks_over_the_limit_is_refused() -> None:
    async with connection(max_body=1000) as client:
        await client.send(head_of(CHUNKED) + b"1f4\r\n" + b" " * 500 + b"\r\n")
        await client.send(b"1f5\r\n" + b" " * 501 + b"\r\n")
        assert (await client.response()).status == 413


async def test_a_body_in_chunks_is_read_wherever_it_is_cut() -> None:
    body = modern("tools/list")
    pieces = [b"%x;name=value\r\n%b\r\n" % (1, body[at : at + 1]) for at in range(len(body))]
    async with connection() as client:
        await client.send(head_of(CHUNKED))
        for piece in [*pieces, b"0\r\nTrailer: x\r\n\r\n"]:
            await client.send(piece)
        assert (await client.response()).status == 200
        await client.send(listing(2))
        assert (await client.response()).json["id"] == 2


@pytest.mark.parametrize("begin", [b"1;", b"0\r\nX-Trailer: "])
async def test_a_flood_that_is_no_body_ends_the_connection(begin: bytes) -> None:
    async with connection(max_body=1000) as client:
        await client.send(head_of(CHUNKED) + begin)
        for _ in range(200):
            await client.send(b"x" * 1024)
        await client.closed()


async def test_a_body_that_stops_coming_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_BODY_SECONDS", 0.2)
    async with connection() as client:
        await client.send(listing()[:-5])
        assert (await client.response()).status == 408
        assert await client.closed() == b""


async def test_a_body_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_BODY_SECONDS", 0.5)

    async def drip(client: RawConnection) -> None:
        while not client.writer.is_closing():
            await client.send(b" ")
            await asyncio.sleep(0.05)

    async with connection() as client:
        await client.send(head_of([*usual_fields(), ("Content-Length", "100000")]))
        dripping = asyncio.create_task(drip(client))
        assert (await client.response()).status == 408
        dripping.cancel()


@pytest.mark.parametrize("size", [10_000, 3_000_000])
async def test_a_request_that_is_refused_before_its_body_was_read_leaves_the_connection_usable(size: int) -> None:
    right, wrong = ("Authorization", "Bearer right"), ("Authorization", "Bearer wrong")
    async with connection(verifier=StaticTokens(["right"])) as client:
        for number in range(3):
            sending = asyncio.create_task(client.send(whole_request([*usual_fields(), wrong], b" " * size)))
            assert (await client.response()).status == 401
            await sending
            await client.send(whole_request([*usual_fields(), right], modern("tools/list", number)))
            assert (await client.response()).json["id"] == number


async def test_a_client_that_sends_a_large_body_with_a_wrong_token_reads_why_it_was_refused() -> None:
    http = HttpOptions(verifier=StaticTokens(["right"]))
    async with (
        served_http(declared.toolset(), None, http) as base,
        httpx2.AsyncClient(headers={"Authorization": "Bearer wrong"}, timeout=20) as client,
    ):
        answers = [await client.post(f"{base}/mcp", content=b" " * 3_000_000) for _ in range(5)]
    assert {answer.status_code for answer in answers} == {401}


async def test_a_client_that_hangs_up_behind_a_pipelined_request_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PING_SECONDS", 0.05)
    async with served_http(declared.toolset()) as base:
        before = asyncio.all_tasks()
        async with connected(base) as client:
            body = modern("subscriptions/listen", notifications={"toolsListChanged": True})
            await client.send(whole_request(usual_fields("subscriptions/listen"), body))
            assert (await client.head()).status == 200
            await client.send(listing(2))
        async with asyncio.timeout(20):
            while open_ones := asyncio.all_tasks() - before:
                await asyncio.wait(open_ones, return_when=asyncio.FIRST_COMPLETED)
