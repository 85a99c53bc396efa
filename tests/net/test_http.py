"""HTTP client policy: what counts as sent, bounded bodies, Retry-After, messages of refusals, small downloads."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

from trysquare.net import http


@pytest.mark.parametrize(
    ("error", "sent"),
    [
        (httpx2.ConnectError("refused"), False),
        (httpx2.ConnectTimeout("slow"), False),
        (httpx2.PoolTimeout("full"), False),
        (httpx2.UnsupportedProtocol("ftp"), False),
        (httpx2.InvalidURL("bad"), False),
        (httpx2.ReadTimeout("slow"), True),
        (httpx2.ReadError("broken"), True),
        (httpx2.WriteError("broken"), True),
        (httpx2.RemoteProtocolError("closed"), True),
    ],
)
def test_a_request_counts_as_sent_unless_no_connection_was_made(error: Exception, sent: bool) -> None:
    assert http.was_sent(error) is sent


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ("120", 120),
        (" 7 ", 7),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 90),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("-5", None),
        ("1.5", None),
        ("٣", None),
        ("", None),
        ("later", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(given: str, seconds: float | None) -> None:
    assert http.retry_after(given, clock=lambda: 10.0) == seconds


@pytest.mark.parametrize(("limit", "body"), [(5, b"hello"), (4, None)])
async def test_a_body_is_read_up_to_the_limit(limit: int, body: bytes | None) -> None:
    assert await http.read_body(httpx2.Response(200, content=b"hello"), limit) == body


def test_the_type_of_a_body_comes_without_parameters() -> None:
    assert (
        http.content_type(httpx2.Response(200, headers={"content-type": "Application/JSON; charset=utf-8"}))
        == "application/json"
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "no"}}', "no"),
        (b'{"error": "no"}', "no"),
        (b'{"message": "no"}', "no"),
        (b'{"detail": "no"}', ""),
        (b'{"error": {"message": 5}}', ""),
    ],
)
def test_the_message_of_a_refusal_is_found_at_the_top_or_below_error(body: bytes, message: str) -> None:
    found = http.json_object(body)
    assert found is not None
    assert http.error_message(found) == message


@pytest.mark.parametrize("body", [b"", b"[1]", b"{", b"\xff", b"[" * 100_000])
def test_a_body_that_is_not_a_json_object_is_none(body: bytes) -> None:
    assert http.json_object(body) is None


def test_a_download_from_nowhere_is_a_connection_error() -> None:
    with pytest.raises(ConnectionError):
        http.download("http://127.0.0.1:1/", timeout=5, limit=10)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
async def test_what_is_meant_for_this_machine_goes_through_no_proxy(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readline()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(asked) + asked)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, host.strip("[]"), 0)
    proxy = await asyncio.start_server(answer, "127.0.0.1", 0)
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
    url = f"http://{host}:{server.sockets[0].getsockname()[1]}/mcp"
    async with server, proxy, await http.open_client(url, timeout=10) as client:
        # A proxy is asked for the whole address, a server for the path.
        assert (await client.get(url)).text == "GET /mcp HTTP/1.1\r\n"
