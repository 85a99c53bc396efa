"""Whatever comes in over HTTP, the server answers the next good call and shows nothing of its inside."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator
from random import Random
from urllib.parse import urlsplit

import pytest

from tests.e2e.servers import served_over_http
from tests.fuzz.frames import modern_meta
from tests.fuzz.http_requests import (
    RawRequest,
    Reply,
    exchanged,
    good_call,
    opening,
    random_http_request,
    session_of,
    written,
)
from tests.fuzz.properties import left_behind, require_no_traceback
from tests.fuzz.shares import share
from tests.fuzz.toolset import fuzz_toolset
from tests.support import size
from trysquare.core.json import JsonObject

pytestmark = pytest.mark.timeout(size(120, 1800))

BATCH = 25
TOGETHER = 5


@contextlib.asynccontextmanager
async def fuzzed_server(caplog: pytest.LogCaptureFixture) -> AsyncGenerator[int]:
    """The port of a server; in the end no task may be left and nothing but incidents may have a traceback."""
    before = asyncio.all_tasks()
    with caplog.at_level(logging.WARNING):
        async with served_over_http(fuzz_toolset()) as url:
            yield urlsplit(url).port or 0
    assert left_behind(before) == []
    unexplained = [record for record in caplog.records if record.exc_info and "incident" not in record.getMessage()]
    assert [record.getMessage() for record in unexplained] == []


async def _require_good_call(port: int, number: int) -> None:
    reply = await exchanged(good_call(number, f"127.0.0.1:{port}"), port)
    [message] = [message for message in reply.messages() if message.get("id") == number]
    assert message["result"]["structuredContent"]["result"] == number + 1


def _require_harmless(request: RawRequest, reply: Reply) -> None:
    require_no_traceback(reply.body.decode("utf-8", "replace"))
    assert reply.status is None or reply.status < 500, (
        f"{reply.status} for {request.data[:2000]!r}: {reply.body[:500]!r}"
    )


async def test_random_requests_do_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    async with fuzzed_server(caplog) as port:
        random = Random("requests over HTTP")
        host = f"127.0.0.1:{port}"
        session = session_of(await exchanged(opening(host), port))
        for number in range(0, share("requests over HTTP"), BATCH):
            requests = [random_http_request(random, host, session) for _ in range(BATCH)]
            for start in range(0, BATCH, TOGETHER):
                some = requests[start : start + TOGETHER]
                replies = await asyncio.gather(*(exchanged(request, port) for request in some))
                for request, reply in zip(some, replies, strict=True):
                    _require_harmless(request, reply)
            await _require_good_call(port, number)


def _post(port: int, body: bytes, **headers: str) -> bytes:
    usual = {
        "Host": f"127.0.0.1:{port}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "anything",
    }
    return written("POST", "/mcp", {**usual, **headers}, body)


def _call(value: str) -> bytes:
    meta = json.dumps(modern_meta())
    return (
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"anything","arguments":'
        f'{{"value":{value}}},"_meta":{meta}}}}}'
    ).encode()


EXTREMES = {
    "deep-lists": _call("[" * 100_000 + "]" * 100_000),
    "deep-objects": _call('{"a":' * 100_000 + "1" + "}" * 100_000),
    "ten-megabytes": _call('"' + "x" * 10_000_000 + '"'),
    "forty-megabytes": _call('"' + "x" * 40_000_000 + '"'),
    "long-number": _call("9" * 100_000),
    "surrogates": _call('"\\ud800 \\udfff"'),
    "not-a-number": _call("NaN"),
    "not-utf-8": _call('"x"').replace(b"x", b"\xff\xfe"),
    "empty": b"",
    "batch": b"[" + _call("1") + b"]",
    "truncated": _call("1")[:50],
}


@pytest.mark.parametrize("extreme", EXTREMES)
async def test_an_extreme_request_is_answered_or_refused(caplog: pytest.LogCaptureFixture, extreme: str) -> None:
    async with fuzzed_server(caplog) as port:
        request = RawRequest(data=_post(port, EXTREMES[extreme]))
        _require_harmless(request, await exchanged(request, port, seconds=60))
        await _require_good_call(port, 1)


async def test_a_client_that_goes_away_in_the_middle_of_a_body_leaves_nothing_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with fuzzed_server(caplog) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(_post(port, _call("1"))[:-20])
        await writer.drain()
        writer.close()
        await _require_good_call(port, 1)


async def test_a_client_that_goes_away_during_a_call_leaves_nothing_behind(caplog: pytest.LogCaptureFixture) -> None:
    async with fuzzed_server(caplog) as port:
        params: JsonObject = {"name": "linger", "arguments": {}, "_meta": {**modern_meta(), "progressToken": 1}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(_post(port, body, **{"Mcp-Name": "linger"}))
        async with asyncio.timeout(30):
            await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await _require_good_call(port, 1)


async def test_a_session_that_was_ended_is_gone_and_the_server_is_not(caplog: pytest.LogCaptureFixture) -> None:
    async with fuzzed_server(caplog) as port:
        host = f"127.0.0.1:{port}"
        headers = {"Host": host, "Mcp-Session-Id": session_of(await exchanged(opening(host), port))}
        headers |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
        ended = await exchanged(RawRequest(data=written("DELETE", "/mcp", headers, b"")), port)
        late = await exchanged(RawRequest(data=written("POST", "/mcp", headers, body)), port)
        assert (ended.status, late.status) == (200, 404)
        await _require_good_call(port, 1)
